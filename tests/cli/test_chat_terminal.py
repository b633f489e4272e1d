"""The chat at a real pseudo-terminal. The model there says a word every fifth of a second."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from driver import Terminal, harness_json

WHO = ("--workspace", "ws", "--user", "alice", "--session", "s")
CHAT = ("chat", "--model", "slow", *WHO)
# The prompt asks the terminal for bracketed paste just before it takes keys.
READY = "\x1b[?2004h"
UP = "\x1b[A"
CTRL_C, CTRL_D = "\x03", "\x04"


def test_ctrl_c_stops_the_answer_keeps_the_turn_and_the_chat_goes_on(tmp_path: Path) -> None:
    with Terminal(*CHAT, cwd=tmp_path) as terminal:
        terminal.wait_for(READY)
        terminal.type("My name is Alice and I have a great many things to say this morning.\r")
        terminal.wait_for("Noted:")
        terminal.type(CTRL_C)
        terminal.wait_for("[stopped]")
        terminal.wait_for(READY)
        terminal.type("What is my name?\r")
        terminal.wait_for("You said:")
        terminal.wait_for("morning")
        terminal.wait_for(READY)
        terminal.type(CTRL_D)
        assert terminal.wait_for_exit() == 0
    messages = harness_json("sessions", "show", "s", "--workspace", "ws", "--user", "alice", cwd=tmp_path)["messages"]
    assert messages[0]["content"][0]["text"] == "My name is Alice and I have a great many things to say this morning."
    assert messages[-1]["content"][0]["text"].startswith("You said: “My name is Alice")


def test_the_arrow_key_brings_back_what_was_said_in_an_earlier_process(tmp_path: Path) -> None:
    harness_json("chat", *WHO, "--message", "It rains.", cwd=tmp_path)
    with Terminal(*CHAT, cwd=tmp_path) as terminal:
        terminal.wait_for(READY)
        terminal.type(UP)
        terminal.wait_for("It rains.")
        terminal.type(" Again.\r")
        terminal.wait_for("Noted:")
        terminal.wait_for("Again.”")
        terminal.wait_for(READY)
        terminal.type(CTRL_D)
        assert terminal.wait_for_exit() == 0


def test_a_line_can_be_edited_before_it_is_sent(tmp_path: Path) -> None:
    left, backspace = "\x1b[D", "\x7f"
    with Terminal(*CHAT, cwd=tmp_path) as terminal:
        terminal.wait_for(READY)
        terminal.type("It snowx." + left + backspace + "s\r")
        terminal.wait_for("Noted:")
        terminal.wait_for("snows.”")
        terminal.wait_for(READY)
        terminal.type(CTRL_D)
        assert terminal.wait_for_exit() == 0


def test_ctrl_c_at_the_prompt_clears_the_line_and_stays(tmp_path: Path) -> None:
    with Terminal(*CHAT, cwd=tmp_path) as terminal:
        terminal.wait_for(READY)
        terminal.type("never sent" + CTRL_C)
        terminal.wait_for(READY)
        terminal.type("It rains.\r")
        terminal.wait_for("rains.”")
        terminal.wait_for(READY)
        terminal.type(CTRL_D)
        assert terminal.wait_for_exit() == 0
    messages = harness_json("sessions", "show", "s", "--workspace", "ws", "--user", "alice", cwd=tmp_path)["messages"]
    assert [message["content"][0]["text"] for message in messages] == ["It rains.", "Noted: “It rains.”"]


def test_an_error_in_a_turn_is_one_line_and_the_chat_goes_on(tmp_path: Path) -> None:
    with Terminal("chat", "--model", "small", *WHO, cwd=tmp_path) as terminal:
        terminal.wait_for(READY)
        terminal.type("It rains.\r")
        terminal.wait_for("error:")
        terminal.wait_for(READY)
        terminal.type(CTRL_D)
        assert terminal.wait_for_exit() == 0


def test_ctrl_c_in_a_single_turn_leaves_with_130_and_keeps_the_turn(tmp_path: Path) -> None:
    said = "It rains, " * 60 + "still."  # half a minute of answer: a slow machine has time to press the key
    with Terminal(*CHAT, "--message", said, cwd=tmp_path) as terminal:
        terminal.wait_for("Noted:")
        terminal.type(CTRL_C)
        assert terminal.wait_for_exit() == 130
    messages = harness_json("sessions", "show", "s", "--workspace", "ws", "--user", "alice", cwd=tmp_path)["messages"]
    assert messages[0]["content"][0]["text"] == said


def test_json_is_refused_at_a_terminal(tmp_path: Path) -> None:
    with Terminal(*CHAT, "--json", cwd=tmp_path) as terminal:
        assert terminal.wait_for_exit() == 2
