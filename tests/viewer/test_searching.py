"""A search that goes on tells of all that was searched; without a script its hits are a page of links."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from lines import answer, keys, prompt, visiting, write


def many(folder: Path) -> Path:
    pairs = [(prompt(f"needle {n} " + "x " * 500, f"u{n}"), answer("y " * 2_000, f"a{n}")) for n in range(450)]
    return write(folder / "s.jsonl", [line for pair in pairs for line in pair])


async def test_a_search_that_went_on_tells_of_all_that_was_searched(tmp_path: Path) -> None:
    file = many(tmp_path)
    async with visiting(file) as visitor:
        path, params = f"/api/sessions/{(await keys(visitor))['s']}/search", {"q": "needle"}
        answers = [(await visitor.get(path, params=params)).json()]
        while "cursor" in answers[-1]:
            answers.append((await visitor.get(path, params={**params, "cursor": answers[-1]["cursor"]})).json())
    assert len(answers) > 1
    assert [len(answers[0]["hits"]) < 450, sum(len(each["hits"]) for each in answers)] == [True, 450]
    assert answers[0]["said"].startswith(f"{len(answers[0]['hits'])} matches in the first ")
    assert answers[-1]["said"].startswith("450 matches in the whole session (")
    assert answers[-1]["coveredBytes"] == answers[-1]["size"] == file.stat().st_size


@pytest.mark.parametrize("cursor", ["a100", "1.2", "x.1.a0", "1.2.x", "-1.2.a0", "1." + "9" * 30 + ".a0"])
async def test_a_place_from_which_no_search_goes_on_is_refused(tmp_path: Path, cursor: str) -> None:
    async with visiting(write(tmp_path / "s.jsonl", [prompt("hi")])) as visitor:
        key = (await keys(visitor))["s"]
        for below in ("/sessions", "/api/sessions"):
            answered = await visitor.get(f"{below}/{key}/search", params={"q": "a", "cursor": cursor})
            assert (below, answered.status_code) == (below, 400)


async def test_without_a_script_the_box_leads_to_a_page_of_hits_that_goes_on(tmp_path: Path) -> None:
    async with visiting(many(tmp_path)) as visitor:
        page = (await visitor.get(f"/sessions/{(await keys(visitor))['s']}")).text
        form = re.search(r'<form [^>]*id="find"[^>]*>', page)[0]  # type: ignore[index]
        assert 'method="get"' in form
        link, hits = re.search(r'action="([^"]*)"', form)[1] + "?q=needle", list[str]()  # type: ignore[index]
        while link:
            found = (await visitor.get(link)).text
            hits += re.findall(r'<li><a href="([^"]*\?at=[^"]*)">prompt: <mark>needle</mark>', found)
            on = re.search(r'<a href="([^"]*)">Search on</a>', found)
            link = on[1].replace("&amp;", "&") if on else ""
        assert len(set(hits)) == 450
        assert "450 matches in the whole session" in found
        assert "needle 0 " in (await visitor.get(hits[0])).text


async def test_the_page_of_hits_without_words_asks_for_some(tmp_path: Path) -> None:
    async with visiting(write(tmp_path / "s.jsonl", [prompt("hi")])) as visitor:
        key = (await keys(visitor))["s"]
        assert "Type what to look for." in (await visitor.get(f"/sessions/{key}/search")).text
        assert (await visitor.get(f"/sessions/{key}/search", params={"q": "x" * 401})).status_code == 400
