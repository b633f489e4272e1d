"""Twenty payloads in sixteen places: nothing of a transcript runs, loads, or becomes an element of a page."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from payloads import LITERAL, PAYLOADS, Live, write

from harness.viewer import local_viewer


@pytest.fixture(params=range(len(PAYLOADS)))
async def hostile(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[httpx2.AsyncClient]:
    write(tmp_path, PAYLOADS[request.param])
    transport = httpx2.ASGITransport(local_viewer([tmp_path], token=None))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:1") as client:
        yield client


async def test_no_page_and_no_piece_of_one_has_anything_live(hostile: httpx2.AsyncClient) -> None:
    key = (await hostile.get("/api/sessions")).json()["sessions"][0]["key"]
    whole = (await hostile.get(f"/api/sessions/{key}?html=1")).json()
    turns = (await hostile.get(f"/api/sessions/{key}/turns?html=1&where=head")).json()["turns"]
    pages = [(await hostile.get(path)).text for path in ("/", f"/sessions/{key}", f"/sessions/{key}/pictures")]
    assert len(turns) >= 5
    for html in (*pages, whole["html"], *(turn["html"] for turn in turns)):
        assert Live(html).found == []


async def test_an_address_made_of_a_payload_is_not_shown_back(hostile: httpx2.AsyncClient) -> None:
    for payload in LITERAL:
        answer = await hostile.get(f"/sessions/{payload}")
        assert answer.status_code == 404
        assert Live(answer.text).found == []
        assert "__p" not in answer.text
        search = await hostile.get("/", params={"q": payload})
        assert Live(search.text).found == []


async def test_escape_codes_of_the_shared_corpus_reach_no_page(shared: Path) -> None:
    transport = httpx2.ASGITransport(local_viewer([shared / "cases/B75/ansi.jsonl"], token=None))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:1") as client:
        key = (await client.get("/api/sessions")).json()["sessions"][0]["key"]
        pages = [(await client.get(path)).text for path in ("/", f"/sessions/{key}")]
    steering = {
        chr(code)
        for code in (*range(9), *range(0xB, 0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    }
    assert [steering & set(page) for page in pages] == [set(), set()]


async def test_half_a_surrogate_pair_of_the_shared_corpus_is_shown_as_a_sign(shared: Path) -> None:
    transport = httpx2.ASGITransport(local_viewer([shared / "cases/B19/surrogate.jsonl"], token=None))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:1") as client:
        key = (await client.get("/api/sessions")).json()["sessions"][0]["key"]
        page = (await client.get(f"/sessions/{key}")).content.decode("utf-8", "strict")
    assert "half � here, tail �, whole 😀" in page
