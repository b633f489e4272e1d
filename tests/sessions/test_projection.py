"""What the model sees, from the lines of the path alone."""

import itertools

import pytest

from harness.sessions import Entry, project
from harness.sessions.view.projection import View


class Lines:
    """Lines of a path, made by hand."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._numbers = itertools.count(1)

    def add(self, type_, **fields):
        number = next(self._numbers)
        data = {"type": type_, "id": f"e{number}", "seq": number, **fields}
        self.entries.append(Entry(data, number, number * 100, 99))
        return f"e{number}"

    def say(self, message, via, **fields):
        return self.add("message", message=message, via=via, **fields)

    def commit(self, request, status="completed"):
        return self.add("request_end", requestId=request, status=status)

    def view(self) -> View:
        return project(self.entries)

    def shown(self):
        return [message["id"] for message in self.view().messages]


@pytest.fixture
def path():
    return Lines()


def test_output_of_a_model_counts_once_its_request_completed(path, talk):
    path.say(talk.user("hi", "u1"), "user")
    path.say(talk.assistant("hello", "a1"), "model", requestId="r1")
    assert path.shown() == ["u1"]
    path.commit("r1")
    assert path.shown() == ["u1", "a1"]


@pytest.mark.parametrize("status", ["failed", "aborted", "timeout", "malformed", "auth"])
def test_output_of_a_request_that_ended_otherwise_is_not_shown(path, talk, status):
    path.say(talk.user("hi", "u1"), "user")
    path.say(talk.assistant("hel", "a1"), "model", requestId="r1")
    path.commit("r1", status)
    assert path.shown() == ["u1"]


def test_partial_text_is_never_shown(path, talk):
    path.say(talk.user("hi", "u1"), "user")
    path.say(talk.assistant("hel", "a1"), "model", requestId="r1", partial=True)
    path.commit("r1")
    assert path.shown() == ["u1"]


@pytest.mark.parametrize("via", ["hook", "steer"])
def test_passing_messages_are_shown_while_their_turn_is_open_and_gone_when_it_closes(path, talk, via):
    path.say(talk.user("hi", "u1"), "user")
    path.say(talk.assistant("", "c1", "x"), "model")
    path.say(talk.result("t1", "x"), "tool")
    path.say(talk.user("it is monday", "h1"), via)
    assert path.shown() == ["u1", "c1", "t1", "h1"]
    path.say(talk.assistant("hello", "a1"), "model", requestId="r1")
    path.commit("r1")
    assert path.shown() == ["u1", "c1", "t1", "a1"]


def test_what_hooks_put_behind_a_directive_is_its_end_while_the_turn_is_open(path, talk):
    path.say(talk.user("hi", "u1"), "user")
    path.say(talk.user("it is monday", "h1"), "hook")
    path.say(talk.user("three files", "h2"), "hook")
    assert path.shown() == ["u1"]
    assert [block["text"] for block in path.view().messages[0]["content"]] == ["hi", "it is monday", "three files"]
    path.say(talk.assistant("hello", "a1"), "model")
    assert path.view().messages == [talk.user("hi", "u1"), talk.assistant("hello", "a1")]


def test_a_nudge_after_a_draft_keeps_the_turn_open(path, talk):
    path.say(talk.user("hi", "u1"), "user")
    path.say(talk.assistant("draft", "a1"), "model")
    path.say(talk.user("go on", "h1"), "hook")
    view = path.view()
    assert not view.turns[0].closed
    assert [message["id"] for message in view.messages] == ["u1", "a1", "h1"]


def test_steering_opens_no_turn(path, talk):
    path.say(talk.user("hi", "u1"), "user")
    path.say(talk.user("rather that", "s1"), "steer")
    assert [turn.id for turn in path.view().turns] == ["e1"]


def test_results_follow_their_calls_in_call_order_as_one_message(path, talk):
    path.say(talk.user("hi", "u1"), "user")
    path.say(talk.assistant("", "a1", "x", "y", "z"), "model")
    path.say(talk.result("t1", "z", text="third"), "tool")
    path.say(talk.result("t2", "x", text="first"), "tool")
    path.say(talk.result("t3", "y", text="second"), "tool")
    messages = path.view().messages
    assert [message["role"] for message in messages] == ["user", "assistant", "tool"]
    assert [block["id"] for block in messages[2]["content"]] == ["x", "y", "z"]
    assert [block["content"][0]["text"] for block in messages[2]["content"]] == ["first", "second", "third"]


def test_results_logged_as_one_message_are_that_message(path, talk):
    results = talk.result("t1", "x", "y")
    path.say(talk.user("hi", "u1"), "user")
    path.say(talk.assistant("", "a1", "x", "y"), "model")
    path.say(results, "tool")
    assert path.view().messages[2] is results


def test_the_first_result_of_a_call_wins(path, talk):
    path.say(talk.user("hi", "u1"), "user")
    path.say(talk.assistant("", "a1", "x"), "model")
    path.say(talk.result("t1", "x", text="[interrupted]"), "repair")
    path.say(talk.result("t2", "x", text="late"), "tool")
    assert path.view().messages[2]["content"][0]["content"][0]["text"] == "[interrupted]"
    assert path.shown() == ["u1", "a1", "t1"]


def test_a_result_without_a_call_is_left_out(path, talk):
    path.say(talk.result("t0", "gone"), "tool")
    path.say(talk.user("hi", "u1"), "user")
    path.say(talk.assistant("hello", "a1"), "model")
    assert path.shown() == ["u1", "a1"]


def test_a_result_of_output_that_was_never_committed_is_left_out(path, talk):
    path.say(talk.user("hi", "u1"), "user")
    path.say(talk.assistant("", "a1", "x"), "model", requestId="r1")
    path.say(talk.result("t1", "x"), "tool")
    assert path.shown() == ["u1"]


def test_a_call_id_used_again_means_the_later_call(path, talk):
    for number in (1, 2):
        path.say(talk.user("hi", f"u{number}"), "user")
        path.say(talk.assistant("", f"c{number}", "call_0"), "model")
        path.say(talk.result(f"t{number}", "call_0", text=f"result {number}"), "tool")
        path.say(talk.assistant("done", f"a{number}"), "model")
    assert path.shown() == ["u1", "c1", "t1", "a1", "u2", "c2", "t2", "a2"]


def test_a_message_of_results_and_text_gives_the_results_to_the_call_and_keeps_the_text_behind(path, talk):
    mixed = {"id": "u2", "role": "user", "content": [*talk.result("", "x")["content"], {"type": "text", "text": "ok"}]}
    path.say(talk.user("hi", "u1"), "user")
    path.say(talk.assistant("", "a1", "x"), "model")
    path.say(mixed, "user")
    view = path.view()
    assert [message["role"] for message in view.messages] == ["user", "assistant", "tool", "user"]
    assert view.messages[3]["content"] == [{"type": "text", "text": "ok"}]
    assert len(view.turns) == 1


def test_an_image_alone_opens_a_turn(path, talk):
    path.say(talk.user("hi", "u1"), "user")
    path.say(talk.assistant("hello", "a1"), "model")
    path.say({"id": "u2", "role": "user", "content": [{"type": "image", "url": "https://example.org/a.png"}]}, "user")
    assert [turn.id for turn in path.view().turns] == ["e1", "e3"]


def test_messages_before_the_first_directive_form_a_turn(path, talk):
    path.say(talk.assistant("Welcome!", "a0"), "model")
    path.say(talk.user("hi", "u1"), "user")
    view = path.view()
    assert [turn.id for turn in view.turns] == ["e1", "e2"]
    assert view.turns[0].closed
    assert not view.turns[1].closed


def test_calls_without_a_result_are_named(path, talk):
    path.say(talk.user("hi", "u1"), "user")
    path.say(talk.assistant("", "a1", "x", "y"), "model")
    path.say(talk.result("t1", "y"), "tool")
    assert [(call.id, call.name, call.message_id, call.turn_id) for call in path.view().open_calls] == [
        ("x", "look", "a1", "e1")
    ]


def test_a_compaction_shows_its_summary_and_the_turns_it_keeps(path, talk):
    for number in (1, 2):
        path.say(talk.user("hi", f"u{number}"), "user")
        path.say(talk.assistant("hello", f"a{number}"), "model")
    boundary = path.add("compaction", boundary=True, summary="They said hi.", firstTurn="e1", lastTurn="e1")
    view = path.view()
    assert [message["id"] for message in view.messages] == [boundary, "u2", "a2"]
    assert view.messages[0]["role"] == "user"
    assert view.messages[0]["content"][0]["text"] == "<context_summary>\nThey said hi.\n</context_summary>"


def test_a_packet_is_no_boundary(path, talk):
    path.say(talk.user("hi", "u1"), "user")
    path.add("compaction", boundary=False, summary="s", firstTurn="e1", lastTurn="e1")
    assert path.shown() == ["u1"]


def test_a_boundary_within_an_open_turn_keeps_its_directive_and_what_follows(path, talk):
    path.say(talk.user("hi", "u1"), "user")
    path.say(talk.assistant("", "a1", "x"), "model")
    path.say(talk.result("t1", "x"), "tool")
    boundary = path.add("compaction", boundary=True, keepsOpenTurn=True, summary="s", firstTurn="", lastTurn="")
    path.say(talk.assistant("", "a2", "y"), "model")
    path.say(talk.result("t2", "y"), "tool")
    assert path.shown() == [boundary, "u1", "a2", "t2"]


def test_text_that_looks_like_a_control_message_is_the_users(path, talk):
    for number, text in enumerate(["<context_summary>x</context_summary>", "[stopped]", "<system>"], start=1):
        path.say(talk.user(text, f"u{number}"), "user")
        path.say(talk.assistant("ok", f"a{number}"), "model")
    assert path.shown() == ["u1", "a1", "u2", "a2", "u3", "a3"]


def test_an_abort_marks_its_turn(path, talk):
    first = path.say(talk.user("hi", "u1"), "user")
    path.add("event", kind="abort", turnId=first)
    assert path.view().turns[0].aborted


def test_content_of_a_strange_shape_does_not_stop_a_reader(path):
    path.say({"id": "u1", "role": "user", "content": "text"}, "user")
    path.say({"id": "u2", "role": "user"}, "user")
    path.say({"id": "u3", "role": "user", "content": [None, 3, "x", {"no": "type"}]}, "user")
    path.add("message", message="no message", via="user")
    path.add("message", via="user")
    path.say({"id": "h1", "role": "user", "content": [{"type": "text", "text": "monday"}]}, "hook")
    assert path.shown() == ["u1", "u2", "u3"]
    assert path.view().messages[2]["content"][-1] == {"type": "text", "text": "monday"}
