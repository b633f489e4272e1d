"""The model that is none."""

import pytest

from harness.errors import ContextOverflow
from harness.messages import Msg, ToolResult, ToolUse
from harness.models import Model, OfflineModel, TextDelta


@pytest.fixture
def talk(ask):
    """`await talk("said", "said", …)`: the last answer of a conversation."""

    async def run(*said, system=""):
        messages = []
        for text in said:
            messages.append(Msg.user(text))
            answer, _ = await ask(OfflineModel(), *messages, system=system)
            messages.append(answer)
        return messages[-1].text

    return run


def test_it_is_a_model_and_says_that_it_is_no_language_model():
    assert isinstance(OfflineModel(), Model)
    assert "Not a language model" in OfflineModel().description


@pytest.mark.parametrize(
    ("said", "question", "found"),
    [
        ("My name is Alice.", "What is my name?", "You said: “My name is Alice.”"),
        ("I live in Oslo", "Where do I live?", "You said: “I live in Oslo”"),
        ("The code word is blue-fox. I like tea.", "What's the code word?", "You said: “The code word is blue-fox.”"),
        ("remember that lunch is at noon", "tell me about lunch", "You said: “remember that lunch is at noon”"),
        ("我的名字是小明。", "我的名字是什么？", "You said: “我的名字是小明。”"),
    ],
)
async def test_a_question_finds_the_statement_it_shares_words_with(talk, said, question, found):
    assert await talk("Hello there.", said, "It rains.", question) == found


async def test_the_newest_of_equal_statements_answers(talk):
    assert await talk("My name is Alice.", "My name is Bob.", "What is my name?") == "You said: “My name is Bob.”"


async def test_whose_it_is_decides_between_statements_about_the_same(talk):
    assert (
        await talk("My name is Alice.", "My dog's name is Rex.", "What is my name?") == "You said: “My name is Alice.”"
    )


async def test_what_was_not_said_is_not_found(talk):
    answer = await talk("My name is Alice.", "What is my shoe size?")

    assert answer == "I do not find that in this conversation."


async def test_an_earlier_question_is_no_source(talk):
    assert await talk("What is the code word?", "What is the code word?") == "I do not find that in this conversation."


async def test_each_question_of_a_message_is_answered(talk):
    answer = await talk("My name is Alice. I live in Oslo.", "What is my name? Where do I live?")

    assert answer == "You said: “My name is Alice.”\nYou said: “I live in Oslo.”"


async def test_system_text_and_tool_results_are_sources_too(ask):
    call = Msg.assistant(ToolUse(id="c", name="look"))
    result = Msg.tool(ToolResult(id="c", name="look", content="The key is under the mat."))
    messages = (
        Msg.user("Look."),
        call,
        result,
        Msg.assistant("ok"),
        Msg.user("Where is the key? What is the gate code?"),
    )

    answer, _ = await ask(OfflineModel(), *messages, system="# Facts\n- The gate code is 4711.")

    assert answer.text == "A tool result says: “The key is under the mat.”\nMy notes say: “The gate code is 4711.”"


async def test_a_statement_is_acknowledged_by_quoting_it(talk):
    assert await talk("My name is Alice.") == "Noted: “My name is Alice.”"


async def test_answers_stream_in_words_and_report_usage(ask):
    answer, chunks = await ask(OfflineModel(), Msg.user("My name is Alice."))

    assert [chunk.text for chunk in chunks] == ["Noted: ", "“My ", "name ", "is ", "Alice.”"]
    assert (answer.usage.input, answer.usage.output) == (9, 12)
    assert (answer.provider, answer.model, answer.stop) == ("offline", "offline", "stop")


async def test_lines_call_tools_in_parallel(ask):
    asked = Msg.user('Please look.\n/tool look {"at": "north"}\n/tool wait')

    answer, _ = await ask(OfflineModel(), asked)

    assert [(call.name, call.input) for call in answer.tool_uses] == [("look", {"at": "north"}), ("wait", {})]
    assert len({call.id for call in answer.tool_uses}) == 2
    assert answer.stop == "tool_use"


async def test_the_same_request_gives_the_same_call_ids(ask):
    asked = Msg.user("/tool look")

    first, second = [(await ask(OfflineModel(), asked))[0] for _ in range(2)]

    assert first.tool_uses[0].id == second.tool_uses[0].id


async def test_results_are_the_answer_after_a_call(ask):
    call = Msg.assistant(ToolUse(id="a", name="look"), ToolUse(id="b", name="wait"))
    results = Msg.tool(ToolResult(id="a", content="snow"), ToolResult(id="b", content="too late", is_error=True))

    answer, _ = await ask(OfflineModel(), Msg.user("/tool look\n/tool wait"), call, results)

    assert answer.text == "snow\nError: too late"


async def test_an_error_that_says_so_itself_is_called_one_once(ask):
    result = Msg.tool(ToolResult(id="a", content="Error: ValueError: no", is_error=True))

    answer, _ = await ask(OfflineModel(), Msg.user("/tool look"), Msg.assistant(ToolUse(id="a", name="look")), result)

    assert answer.text == "Error: ValueError: no"


@pytest.mark.parametrize("arguments", ["{", "[1]", "north"])
async def test_arguments_that_are_no_object_are_named(talk, arguments):
    assert await talk(f"/tool look {arguments}") == "I cannot read the arguments of /tool look: give one JSON object."


async def test_notes_in_tags_are_no_directive(ask):
    note = Msg.user("<session>\nToday is Monday. What is this?\n</session>")

    answer, _ = await ask(OfflineModel(), Msg.user("My name is Alice."), note)

    assert answer.text == "Noted: “My name is Alice.”"


async def test_a_summariser_gets_the_statements(ask):
    history = (Msg.user("My name is Alice. How are you?"), Msg.assistant("Fine."), Msg.user("I live in Oslo."))

    answer, _ = await ask(OfflineModel(), *history, Msg.user("Be brief."), system="You summarise conversations.")

    assert answer.text == "- My name is Alice.\n- I live in Oslo."


async def test_a_conversation_given_as_text_is_summarised_without_what_the_model_said(talk):
    text = "Summarise the conversation.\n\nuser: My name is Bob.\nassistant: I am a robot.\nuser: What?\n- I like tea."

    assert await talk(text) == "- My name is Bob.\n- I like tea."


async def test_a_long_conversation_is_summarised_within_bounds_with_what_lasts(talk):
    weather = "\n".join(f"user: It rained {n} times." for n in range(400))

    summary = await talk(f"Summarise the conversation.\nuser: My name is Bob.\n{weather}")

    assert len(summary) <= 1_500
    assert summary.startswith("- My name is Bob.")


async def test_a_summary_request_of_a_conversation_leaves_its_own_instruction_and_session_notes_out(ask):
    history = (
        Msg.user("<context_summary>\n  - My name is Alice.\n</context_summary>"),
        Msg.user("I live in Oslo.\n<session_context>\n  User: alice\n  Date: Monday, 2026-01-05\n</session_context>"),
        Msg.assistant(ToolUse(id="c", name="look")),
        Msg.tool(ToolResult(id="c", content="The key is blue.")),
        Msg.user("Summarise the conversation so far.\nUse these headings: FACTS (names, numbers). Do not call tools."),
    )

    answer, _ = await ask(OfflineModel(), *history, system="You summarise conversations so that nothing is lost.")

    assert answer.text == "- My name is Alice.\n- I live in Oslo.\n- The key is blue."


async def test_no_number_of_summaries_wears_away_what_was_told_for_good(ask):
    summary = "- My code word is blue-fox."
    for day in range(40):
        bought = [Msg.user(f"On day {day} I bought {n} apples, and my day was long.") for n in range(10)]
        earlier = Msg.user(f"<context_summary>\n{summary}\n</context_summary>")
        answer, _ = await ask(
            OfflineModel(), earlier, *bought, Msg.user("Go on."), system="You summarise conversations."
        )
        summary = answer.text
        assert len(summary) <= 1_500
    assert summary.startswith("- My code word is blue-fox.\n")
    assert "On day 39 I bought 9 apples" in summary


async def test_facts_that_are_known_already_are_left_out(ask):
    material = (
        "<memory>\n  - I live in Oslo.\n</memory>\n\n"
        "<conversation>\n  [USER]: My name is Alice. I live in Oslo.\n  [ASSISTANT]: My name is Robot.\n</conversation>"
    )

    answer, _ = await ask(OfflineModel(), Msg.user(material), system="You keep the long-term memory of an assistant.")

    assert answer.text == "- My name is Alice."


async def test_notes_in_tags_answer_questions(ask):
    said = Msg.user("Which date is it?\n<session_context>\n  Date: Monday, 2026-01-05\n</session_context>")

    answer, _ = await ask(OfflineModel(), said)

    assert answer.text == "My notes say: “Date: Monday, 2026-01-05”"


async def test_facts_are_statements_about_people(talk):
    assert await talk("My name is Alice. It rains.", system="You extract facts.") == "- My name is Alice."


async def test_no_facts_are_no_reply(talk):
    assert await talk("What is two?", system="You extract facts.") == "NO_REPLY"


async def test_a_request_beyond_the_window_is_an_overflow(ask):
    with pytest.raises(ContextOverflow, match="takes 20"):
        await ask(OfflineModel(context_window=20), Msg.user("word " * 30))


async def test_closing_the_stream_early_is_no_error():
    from harness.models import ModelRequest

    stream = OfflineModel().stream(ModelRequest(messages=(Msg.user("My name is Alice."),)))

    assert await anext(stream) == TextDelta("Noted: ")
    await stream.aclose()
