"""What only our own ledgers can tell: what each request saw, branches, and whether every line is there."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from conversations import compacted, edit

from harness.errors import SessionNotFound
from harness.transcripts import read
from harness.viewer import ledgers
from harness.viewer.branches import branches
from harness.viewer.ledgers import Ledger
from harness.viewer.seen import seen_by


@pytest.fixture
async def ledger_file(tmp_path: Path) -> Path:
    return await compacted(tmp_path / "ws")


@pytest.fixture
async def ledger(ledger_file: Path) -> Ledger:
    return ledgers.open_ledger(ledger_file)


def texts(messages: object) -> list[str]:
    return [block.get("text", block["type"]) for message in messages for block in message["content"]]


async def test_what_the_model_saw_is_exact_for_every_request_of_the_conversation(ledger: Ledger) -> None:
    executed = [each for each in ledgers.usage(ledger).rows if each.purpose == "execute"]
    assert len(executed) == 5
    assert [seen_by(ledger, each.request).context.exact for each in executed] == [True] * 5


async def test_after_a_compaction_the_model_saw_the_summary_and_the_log_kept_everything(ledger: Ledger) -> None:
    seen = seen_by(ledger, ledgers.usage(ledger).rows[-1].request)
    sent = " ".join(texts(seen.context.messages))
    assert "ALICE TOLD US HER NAME" in sent
    assert "Weather in Oslo?" not in sent
    spoken = [(line.row.name, line.row.parts[0].text, line.sent) for line in seen.log if line.row.kind == "prompt"]
    asked = [(text, was_sent) for name, text, was_sent in spoken if name == "You"]
    assert asked == [
        ("I am Alice.", False),
        ("Weather in Oslo?", False),
        ("The word is blue-fox.", True),
        ("Bye", True),
    ]


async def test_what_a_hook_added_counts_as_sent_with_the_prompt_it_was_added_to(ledger: Ledger) -> None:
    seen = seen_by(ledger, ledgers.usage(ledger).rows[-1].request)
    hooked = [line.sent for line in seen.log if line.row.name == "Hook, for the model"]
    assert hooked == [False, False, False, True]


async def test_a_line_of_the_log_leads_to_its_turn(ledger: Ledger, ledger_file: Path) -> None:
    seen = seen_by(ledger, ledgers.usage(ledger).rows[-1].request)
    keys = {turn.key for turn in read(ledger_file).turns}
    leading = {line.row.key for line in seen.log if line.row.name == "You"}
    assert len(leading) == 4
    assert leading <= keys


async def test_the_request_for_a_summary_is_exact_too_and_said_to_be_a_selection(ledger: Ledger) -> None:
    summarised = next(each for each in ledgers.usage(ledger).rows if each.purpose == "summarize")
    seen = seen_by(ledger, summarised.request)
    assert (seen.context.exact, {choice.form for choice in seen.choices}) == (True, {"whole", "line"})


async def test_a_changed_message_is_not_called_exact(ledger_file: Path) -> None:
    edit(ledger_file, lambda raw: raw.replace(b"I am Alice.", b"I am Malice", 1))
    ledger = ledgers.open_ledger(ledger_file)
    first = ledgers.usage(ledger).rows[0]
    assert seen_by(ledger, first.request).context.exact is False


async def test_requests_say_how_they_ended_and_what_they_used(ledger: Ledger) -> None:
    found = ledgers.usage(ledger).rows
    assert [each.status for each in found] == ["completed"] * 6
    assert {each.model for each in found} == {"scripted"}
    assert [each.tokens["output"] for each in found] == [40] * 6
    assert ledgers.context_window(ledger) == 8_000


async def test_compactions_are_told_with_their_reason(ledger: Ledger) -> None:
    kinds = [each["kind"] for each in ledgers.events(ledger)]
    assert "compaction" in kinds
    summary = next(each for each in ledgers.events(ledger) if each["kind"] == "compaction")
    assert "ALICE TOLD US HER NAME" in summary["details"]["summary"]


async def test_a_request_of_another_ledger_is_not_found(ledger: Ledger) -> None:
    with pytest.raises(SessionNotFound):
        seen_by(ledger, "01a22e3c-0000-7000-8000-000000000000")


async def test_a_whole_ledger_is_found_whole(ledger: Ledger) -> None:
    assert (ledger.report.ok, list(ledger.report.findings)) == (True, [])


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (lambda raw: raw.replace(b"blue-fox", b"blue-cat", 1), "edited"),
        (lambda raw: raw.replace(raw.split(b"\n")[4] + b"\n", b""), "gap"),
        (lambda raw: raw[: raw[:-1].rindex(b"\n") + 1], "truncated"),
    ],
)
async def test_damage_is_named(ledger_file: Path, damage: object, kind: str) -> None:
    edit(ledger_file, damage)
    ledger = ledgers.open_ledger(ledger_file)
    assert not ledger.report.ok
    assert kind in {finding.kind for finding in ledger.report.findings}


async def test_a_ledger_without_its_anchor_says_so(ledger_file: Path) -> None:
    ledger_file.with_name("monday.head.json").unlink()
    assert [finding.kind for finding in ledgers.open_ledger(ledger_file).report.findings] == ["unanchored"]


def line(entry_id: str, parent: str | None, kind: str = "message", **fields: object) -> bytes:
    link = {"parentId": parent} if parent else {}
    return json.dumps(
        {"type": kind, "id": entry_id, **link, "seq": 1, "timestamp": "2026-01-01T00:00:00Z", **fields}
    ).encode()


def said(text: str) -> dict[str, object]:
    return {"via": "user", "message": {"id": text, "role": "user", "content": [{"type": "text", "text": text}]}}


async def test_branches_are_a_tree_with_the_active_one_marked(tmp_path: Path) -> None:
    file = tmp_path / "s.log.jsonl"
    lines = [
        line("h", None, "header"),
        line("a", "h", **said("first")),
        line("b", "a", **said("left here")),
        line("c", "b", **said("more of it")),
        line("d", "a", **said("went on here")),
        line("l", "d", "label", target="d", name="better"),
    ]
    file.write_bytes(b"\n".join(lines) + b"\n")
    tree = [piece.to_dict() for piece in branches(ledgers.open_ledger(file))]
    assert [(each["id"], each.get("parent"), each["active"], each["messages"], each["words"]) for each in tree] == [
        ("h", None, True, 1, "first"),
        ("b", "h", False, 2, "left here"),
        ("d", "h", True, 1, "went on here"),
    ]
    assert tree[2]["label"] == "better"
