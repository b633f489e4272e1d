"""The requests of a ledger, however many: a page of them at a time, each once, in order, from every side."""

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from conversations import branched, compacted
from lines import keys, visiting

from harness.errors import ConfigError, SessionNotFound
from harness.sessions.catalog import request_pages
from harness.sessions.catalog.request_pages import RequestPage, request_page

COUNT = 10_000
FAR = 2**38


def ledger(file: Path, count: int, *, words: int = 0) -> Path:
    """A ledger with so many requests: the first goes unanswered, every third fails, `words` characters lie between."""
    last, rows = "h", [line("h", None, "header", session="s", agent="notes", tenant=["alice"], format=1)]
    rows.append(line("bind", "h", "binding", provider="demo", model="demo-model"))
    last = "bind"
    for number in range(count):
        text = [{"type": "text", "text": f"prompt {number} " + "x" * words}]
        said = {"via": "user", "message": {"id": f"m{number}", "role": "user", "content": text}}
        rows.append(line(f"p{number}", last, "message", **said))
        rows.append(
            line(f"r{number}", f"p{number}", "request_begin", requestId=f"r{number}", binding="bind", leaf=f"p{number}")
        )
        last = f"r{number}"
        if number:
            status = "failed" if number % 3 == 0 else "completed"
            end = {"requestId": f"r{number}", "status": status, "usage": {"input": number, "output": 1}}
            rows.append(line(f"e{number}", last, "request_end", **end))
            last = f"e{number}"
    file.write_bytes(b"\n".join(rows) + b"\n")
    return file


def line(entry_id: str, parent: str | None, type_: str, **fields: object) -> bytes:
    link = {"parentId": parent} if parent else {}
    stamp = {"seq": 1, "timestamp": "2026-01-01T00:00:00Z"}
    return json.dumps({"type": type_, "id": entry_id, **link, **stamp, **fields}, separators=(",", ":")).encode()


def ids(page: RequestPage) -> list[str]:
    return [row.request for row in page.rows]


def back(file: Path, most: int) -> list[RequestPage]:
    pages = [request_page(file, "s", most=most)]
    while pages[0].before:
        pages.insert(0, request_page(file, "s", "before", pages[0].before, most=most))
    return pages


def forth(file: Path, most: int) -> list[RequestPage]:
    pages = [request_page(file, "s", "head", most=most)]
    while pages[-1].after:
        pages.append(request_page(file, "s", "after", pages[-1].after, most=most))
    return pages


@pytest.mark.parametrize(("count", "most", "words"), [(0, 5, 0), (1, 5, 0), (5, 5, 0), (23, 5, 0), (40, 7, 60_000)])
def test_pages_from_the_end_and_from_the_beginning_give_each_request_once(
    tmp_path: Path, count: int, most: int, words: int
) -> None:
    file = ledger(tmp_path / "s.log.jsonl", count, words=words)
    expected = [f"r{number}" for number in range(count)]
    for pages in (back(file, most), forth(file, most)):
        assert [each for page in pages for each in ids(page)] == expected
        assert all(len(page.rows) <= most for page in pages)
        rows = [row for page in pages for row in page.rows]
        ends = ["unfinished", *("failed" if each % 3 == 0 else "completed" for each in range(1, count))]
        assert [row.status for row in rows] == ends[:count]
        assert {row.model for row in rows} <= {"demo-model"}


def test_a_page_from_the_end_reads_the_end_only(tmp_path: Path) -> None:
    end = ledger(tmp_path / "end.log.jsonl", 100).read_bytes()
    file = tmp_path / "s.log.jsonl"
    with file.open("wb") as out:
        out.truncate(FAR)  # a hole: nobody could read it through
        out.seek(FAR)
        out.write(b"\n" + end)
    page = request_page(file, "s", "tail", most=20)
    assert ids(page) == [f"r{number}" for number in range(80, 100)]
    assert ids(request_page(file, "s", "before", page.before, most=20)) == [f"r{number}" for number in range(60, 80)]
    assert {row.model for row in page.rows} == {"demo-model"}


def test_a_request_is_found_by_its_id_with_those_around_it(tmp_path: Path) -> None:
    file = ledger(tmp_path / "s.log.jsonl", 100)
    assert ids(request_page(file, "s", "around", "r50", most=10)) == [f"r{number}" for number in range(45, 55)]
    assert ids(request_page(file, "s", "around", "r0", most=10)) == [f"r{number}" for number in range(10)]
    assert ids(request_page(file, "s", "around", "r99", most=10)) == [f"r{number}" for number in range(94, 100)]
    for nothing in ("r100", "p5", "m5", "", '"', "r1\n"):
        with pytest.raises(SessionNotFound):
            request_page(file, "s", "around", nothing)


@pytest.mark.parametrize("most", [1, 2, 3, 10])
def test_the_page_around_a_request_holds_it_however_few_it_may_hold_and_however_much_lies_in_front(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    near, far = ledger(tmp_path / "near.log.jsonl", 30), ledger(tmp_path / "far.log.jsonl", 30, words=3000)
    monkeypatch.setattr(request_pages, "_WINDOW", 4096)
    monkeypatch.setattr(request_pages, "_CEILING", 4096)
    for file in (near, far):
        for number in range(30):
            page = request_page(file, "s", "around", f"r{number}", most=most)
            assert f"r{number}" in ids(page)
            assert len(page.rows) <= most


@pytest.mark.parametrize("mark", ["~", "a turn ", "\u00fc\u2028", "%7E", "x" * 5000])
def test_pages_lead_on_whatever_the_ids_of_the_lines_are(tmp_path: Path, mark: str) -> None:
    rows = [line(f"{mark}h", None, "header", session="s", agent="notes", tenant=["alice"], format=1)]
    for number in range(9):
        parent = f"{mark}r{number - 2 if number == 5 else number - 1}" if number else f"{mark}h"
        rows.append(line(f"{mark}r{number}", parent, "request_begin", requestId=f"{mark}r{number}", binding="none"))
    file = tmp_path / "s.log.jsonl"
    file.write_bytes(b"\n".join(rows) + b"\n")
    pages = back(file, 2)
    assert [each for page in pages for each in ids(page)] == [f"{mark}r{number}" for number in range(9)]
    assert [row.active for page in pages for row in page.rows] == [number != 4 for number in range(9)]
    assert all(len(page.before or "") < 100 for page in pages)


@pytest.mark.parametrize("cursor", ["", "x", "b", "b-1", "a5", "b" + "9" * 30, "b5~\n"])
def test_a_cursor_that_is_none_is_refused(tmp_path: Path, cursor: str) -> None:
    with pytest.raises(ConfigError):
        request_page(ledger(tmp_path / "s.log.jsonl", 3), "s", "before", cursor)


def test_any_place_can_be_begun_from_and_an_end_that_is_being_written_is_no_fault(tmp_path: Path) -> None:
    file = ledger(tmp_path / "s.log.jsonl", 9)
    with file.open("ab") as end:
        end.write(b'{"type":"request_beg')
    for place in range(0, file.stat().st_size + 99, 7):
        for page in (request_page(file, "s", "before", f"b{place}"), request_page(file, "s", "after", f"a{place}")):
            assert ids(page) == sorted(ids(page))
    assert ids(request_page(file, "s")) == [f"r{number}" for number in range(9)]


async def test_a_branch_that_was_left_is_known_from_the_end_on(tmp_path: Path) -> None:
    file = await branched(tmp_path)
    pages = back(file, 1)
    assert [[row.active for row in page.rows] for page in pages] == [[True], [False], [True]]
    assert {page.unknown for page in pages} == {frozenset()}
    [page] = back(file, 50)
    assert [row.active for row in page.rows] == [True, False, True]
    first = request_page(file, "monday", "head", most=1)
    assert first.unknown == {first.rows[0].request}
    assert "active" not in first.to_dict()["requests"][0]


async def test_a_ledger_of_ten_thousand_requests_is_a_small_page_and_each_of_them_has_an_address(
    tmp_path: Path,
) -> None:
    file = ledger(tmp_path / "s.log.jsonl", COUNT, words=300)
    async with visiting(file) as visitor:
        path = f"/sessions/{(await keys(visitor))['s']}"
        page = (await visitor.get(f"{path}/ledger")).text
        assert page.count('">show</a>') == 100
        assert "follow when the whole ledger has been read" in page
        link = re.search(r'href="([^"]*)">Earlier requests', page)
        assert link is not None
        earlier = await visitor.get(link[1])
        assert earlier.text.count('">show</a>') == 100
        assert "/requests/r9899" in earlier.text
        assert "Later requests" in earlier.text
        deep = (await visitor.get(f"{path}/requests?at=r4321")).text
        assert '<tr class="at" id="at" aria-current="true">' in deep
        assert "prompt 4321" in (await visitor.get(f"{path}/requests/r4321")).text
        twin = (await visitor.get(f"/api{path}/requests")).json()
        assert [row["request"] for row in twin["requests"]] == [f"r{number}" for number in range(9_900, 10_000)]
        whole = (await visitor.get(f"/api{path}/ledger")).json()
        assert (len(whole["usage"]["requests"]), whole["usage"]["billed"]["requests"]) == (100, COUNT)
        assert whole["usage"]["before"] == twin["before"]
        for asked in ("where=before&cursor=x", "where=around&cursor=" + "r" * 600, "where=sideways"):
            assert (await visitor.get(f"/api{path}/requests?{asked}")).status_code == 400
        assert (await visitor.get(f"/api{path}/requests?where=around&cursor=nothing")).status_code == 404


async def test_decisions_and_findings_are_told_a_page_at_a_time(tmp_path: Path) -> None:
    rows = [line("h", None, "header", session="s", agent="notes", tenant=["alice"], format=1)]
    rows += [
        line(f"e{number}", f"e{number - 1}" if number else "h", "event", kind=f"kind-{number}") for number in range(450)
    ]
    file = tmp_path / "s.log.jsonl"
    file.write_bytes(b"\n".join(rows) + b"\n")
    async with visiting(file) as visitor:
        link, told = f"/sessions/{(await keys(visitor))['s']}/ledger", list[str]()
        first = (await visitor.get(f"/api{link}")).json()
        while link:
            page = (await visitor.get(link)).text
            told = re.findall(r'<span class="chip">(kind-\d+)</span>', page) + told
            found = re.search(r'href="([^"]*)">Earlier decisions', page)
            link = found[1] if found else ""
    assert told == [f"kind-{number}" for number in range(450)]
    assert (len(first["events"]), first["eventsLeftOut"]) == (200, 250)
    assert len(first["findings"]) == 200
    assert first["findingsLeftOut"] > 200


async def test_the_request_page_leads_to_its_place_in_the_list(tmp_path: Path) -> None:
    async with visiting(await compacted(tmp_path)) as visitor:
        path = f"/sessions/{(await keys(visitor))['monday']}"
        request = (await visitor.get(f"/api{path}/requests")).json()["requests"][2]["request"]
        page = (await visitor.get(f"{path}/requests/{request}")).text
        link = re.search(r'href="([^"]*)">Among the other requests', page)
        assert link is not None
        assert f"/requests/{request}" in (await visitor.get(link[1])).text
