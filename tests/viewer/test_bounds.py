"""However long a turn, a name or a list of faults is: a page stays small, says what it left out, and leads there."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from lines import answer, call, keys, prompt, result, visiting, write

from harness.viewer.bounds import bounded, fitted
from harness.viewer.rows import row_of

SMALL = 400_000
CALLS = 3_000


def numbers_in(html: str) -> list[int]:
    return [int(number) for number in re.findall(r"run number (\d+)<", html)]


async def test_a_turn_of_thousands_of_calls_is_shown_in_parts_that_lead_to_each_other(tmp_path: Path) -> None:
    calls = [call(call_id=f"t{number}", command=f"run number {number}") for number in range(CALLS)]
    file = write(tmp_path / "s.jsonl", [prompt("hi"), answer(calls)])
    async with visiting(file) as visitor:
        link, shown = f"/sessions/{(await keys(visitor))['s']}", []
        while link:
            answered = await visitor.get(link)
            assert len(answered.text) < SMALL
            shown += numbers_in(answered.text)
            found = re.search(r'<a class="rest" [^>]*href="([^"]*)"', answered.text)
            link = found[1] if found else ""
    assert list(dict.fromkeys(shown)) == list(range(CALLS))


async def test_the_twin_for_scripts_is_as_small_and_gives_the_rest(tmp_path: Path) -> None:
    calls = [call(call_id=f"t{number}", command=f"run number {number}") for number in range(CALLS)]
    file = write(tmp_path / "s.jsonl", [prompt("hi"), answer(calls)])
    async with visiting(file) as visitor:
        below = f"/api/sessions/{(await keys(visitor))['s']}/turns"
        first = await visitor.get(below, params={"html": "1"})
        key = first.json()["turns"][1]["key"]
        more = (await visitor.get(f"{below}/{key}", params={"from": "60", "html": "1"})).json()["html"]
        plain = (await visitor.get(f"{below}/{key}", params={"from": "2990"})).json()
        bounded_too = await visitor.get(below)
    assert len(first.content) < SMALL
    assert numbers_in(more)[0] == 60
    assert [block["id"] for block in plain["content"]] == [f"t{number}" for number in range(2990, 3000)]
    assert "left" not in plain
    assert len(bounded_too.content) < SMALL
    turn = bounded_too.json()["turns"][1]
    assert (len(turn["content"]), turn["next"], turn["left"]) == (60, 60, CALLS - 60)


async def test_a_program_gets_every_block_of_a_turn_of_any_size_in_parts(tmp_path: Path) -> None:
    texts = [{"type": "text", "text": f"part {number} " + "x" * 19_000} for number in range(300)]
    async with visiting(
        write(tmp_path / "s.jsonl", [prompt("hi"), answer([*texts, call(command="y" * 50_000)])])
    ) as visitor:
        below = f"/api/sessions/{(await keys(visitor))['s']}/turns"
        answered = await visitor.get(below)
        turn = answered.json()["turns"][1]
        blocks, parts = list(turn["content"]), [len(answered.content)]
        while "next" in turn:
            answered = await visitor.get(f"{below}/{turn['key']}", params={"from": turn["next"]})
            turn = answered.json()
            blocks += turn["content"]
            parts.append(len(answered.content))
    assert max(parts) < SMALL
    assert [block["text"].split()[1] for block in blocks[:-1]] == [str(number) for number in range(300)]
    assert blocks[-1]["more"]["characters"] >= 30_000


async def test_a_call_that_is_answered_at_the_end_of_a_long_session_makes_no_long_page(tmp_path: Path) -> None:
    said = [prompt(f"prompt {number} " + "x" * 100, f"u{number}") for number in range(15_000)]
    file = write(tmp_path / "s.jsonl", [answer([call()], "a0"), *said, result("late")])
    async with visiting(file) as visitor:
        key = (await keys(visitor))["s"]
        for below, where in (("turns", {}), ("turns", {"where": "head"}), ("turns?html=1", {})):
            answered = await visitor.get(f"/api/sessions/{key}/{below}", params=where or None)
            assert len(answered.content) < 3_000_000
        assert len((await visitor.get(f"/sessions/{key}")).content) < 3_000_000
        page, seen = (await visitor.get(f"/api/sessions/{key}/turns")).json(), list[str]()
        while True:
            assert len(page["turns"]) <= 2_000
            seen = [turn["key"] for turn in page["turns"] if turn["kind"] == "prompt"] + seen
            if "before" not in page:
                break
            page = (await visitor.get(f"/api/sessions/{key}/turns", params={"before": page["before"]})).json()
    assert len(seen) == len(set(seen)) == 15_000


@pytest.mark.parametrize("place", ["b0?from=x", "b0?from=-1", "x?from=1", "b" + "9" * 600])
async def test_a_part_of_a_turn_that_is_none_is_refused(tmp_path: Path, place: str) -> None:
    async with visiting(write(tmp_path / "s.jsonl", [prompt("hi"), answer("x")])) as visitor:
        key = (await keys(visitor))["s"]
        for below in ("/sessions", "/api/sessions"):
            assert (await visitor.get(f"{below}/{key}/turns/{place}")).status_code == 400
        assert (await visitor.get(f"/sessions/{key}/turns/b7")).status_code == 404


async def test_names_of_any_length_are_cut_wherever_they_are_printed(tmp_path: Path) -> None:
    huge = "y" * 60_000
    for number in range(10):
        lines = [
            prompt("hi", cwd=f"/{huge}", gitBranch=huge),
            answer([call(huge, huge)], model=huge),
            result("r", huge),
        ]
        write(tmp_path / f"s{number}.jsonl", [{**line, "sessionId": f"s{number}"} for line in lines])
    async with visiting(tmp_path) as visitor:
        key = (await keys(visitor))["s7"]
        pages = ["/", "/api/sessions", f"/sessions/{key}", f"/sessions/{key}/pictures", f"/api/sessions/{key}"]
        for path in (*pages, f"/api/sessions/{key}?html=1", f"/api/sessions/{key}/turns?html=1"):
            answered = await visitor.get(path)
            assert (path, answered.status_code, len(answered.content) < SMALL) == (path, 200, True)


async def test_of_many_damaged_lines_some_are_told_and_the_others_counted(tmp_path: Path) -> None:
    file = write(tmp_path / "s.jsonl", [prompt("hi"), answer("x")])
    with file.open("a") as end:
        end.write("junk\n" * 1_000)
    async with visiting(file) as visitor:
        key = (await keys(visitor))["s"]
        for path in (f"/api/sessions/{key}", f"/api/sessions/{key}/turns", f"/api/sessions/{key}/turns?html=1"):
            told = (await visitor.get(path)).json()
            if "warnings" in told:
                assert (path, len(told["warnings"]), told["warningsLeftOut"]) == (path, 200, 800)
        assert "1,000 warnings" in (await visitor.get(f"/api/sessions/{key}?html=1")).json()["html"]


def texts(count: int, length: int) -> dict[str, object]:
    return {"key": "b0", "kind": "answer", "content": [{"type": "text", "text": "x" * length} for _ in range(count)]}


def test_a_turn_shows_as_many_blocks_as_have_room_and_at_least_one() -> None:
    assert [len(bounded(texts(4, 25_000))["content"]), bounded(texts(4, 25_000))["left"]] == [2, 2]
    assert len(bounded(texts(1, 90_000))["content"]) == 1
    assert "left" not in bounded(texts(3, 10))


def test_turns_that_are_too_much_together_are_cut_and_say_so() -> None:
    made = fitted([texts(1, 20_000) for _ in range(100)])
    rows = [row_of(turn) for turn in made]
    assert {len(row.parts[0].text) + row.parts[0].more for row in rows} == {20_000}
    assert sum(len(row.parts[0].text) for row in rows) <= 600_000


def test_what_a_reader_had_cut_before_is_counted_with_what_is_cut_now() -> None:
    turns = [texts(1, 20_000) for _ in range(100)]
    turns[3]["content"] = [{"type": "text", "text": "x" * 20_000, "more": {"characters": 500}}]
    part = row_of(fitted(turns)[3]).parts[0]
    assert len(part.text) + part.more == 20_500


def test_names_within_arguments_are_cut_too() -> None:
    block = {"type": "toolUse", "id": "t", "name": "Bash", "input": {"k" * 500_000: 1}}
    [part] = row_of({"key": "b0", "kind": "answer", "content": [block]}).parts
    assert len(part.calls[0].arguments) < 21_000


def test_a_result_of_very_many_blocks_says_how_many_are_not_shown() -> None:
    content = [{"type": "text", "text": ""}] * 500
    block = {"type": "toolUse", "id": "t", "name": "Bash", "input": {}, "result": {"content": content}}
    [part] = row_of({"key": "b0", "kind": "answer", "content": [block]}).parts
    assert (len(part.calls[0].result), part.calls[0].left) == (20, 480)
