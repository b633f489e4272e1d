"""Pictures: on demand, by their bytes, capped; never inside a page."""

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from harness.viewer import files, local_viewer
from harness.viewer.files import picture_type

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 40
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.__p=1'/>"


def session(folder: Path, data: bytes, claimed: str) -> Path:
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": claimed, "data": base64.b64encode(data).decode()},
    }
    content = [{"type": "text", "text": "look"}, image]
    file = folder / "s.jsonl"
    line = {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": content}}
    file.write_text(json.dumps(line) + "\n")
    return file


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(local_viewer([tmp_path], token=None))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:1") as made:
        yield made


async def ask(client: httpx2.AsyncClient) -> httpx2.Response:
    key = (await client.get("/api/sessions")).json()["sessions"][0]["key"]
    turn = (await client.get(f"/api/sessions/{key}/turns")).json()["turns"][0]
    ref = next(block["media"]["ref"] for block in turn["content"] if block["type"] == "image")
    return await client.get(f"/sessions/{key}/media", params={"ref": ref})


async def test_a_picture_is_sent_when_asked_for(client: httpx2.AsyncClient, tmp_path: Path) -> None:
    session(tmp_path, PNG, "image/png")
    answer = await ask(client)
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "image/png", PNG)
    assert "sandbox" in answer.headers["content-security-policy"]


async def test_a_page_holds_a_link_to_it_and_no_byte_of_it(client: httpx2.AsyncClient, tmp_path: Path) -> None:
    session(tmp_path, PNG * 50, "image/png")
    key = (await client.get("/api/sessions")).json()["sessions"][0]["key"]
    encoded = base64.b64encode(PNG * 50).decode()[:60]
    for path in (f"/sessions/{key}", f"/api/sessions/{key}/turns", f"/api/sessions/{key}"):
        assert encoded not in (await client.get(path)).text
    assert "Image, image/png" in (await client.get(f"/sessions/{key}")).text


@pytest.mark.parametrize("claimed", ["image/png", "image/svg+xml", "text/html"])
async def test_what_is_no_picture_by_its_bytes_is_a_download_whatever_it_claims(
    client: httpx2.AsyncClient, tmp_path: Path, claimed: str
) -> None:
    session(tmp_path, SVG, claimed)
    answer = await ask(client)
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")


async def test_a_picture_over_the_cap_is_refused_in_a_sentence(
    client: httpx2.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_MEDIA", 10)
    session(tmp_path, PNG, "image/png")
    answer = await ask(client)
    assert answer.status_code == 404
    assert "too large to be shown" in answer.text


@pytest.mark.parametrize("ref", ["", "nothing", "../../etc/passwd", "x" * 501])
async def test_an_odd_reference_finds_nothing(client: httpx2.AsyncClient, tmp_path: Path, ref: str) -> None:
    session(tmp_path, PNG, "image/png")
    key = (await client.get("/api/sessions")).json()["sessions"][0]["key"]
    answer = await client.get(f"/sessions/{key}/media", params={"ref": ref})
    assert 400 <= answer.status_code < 500


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a..", "image/gif"),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 ", "image/webp"),
        (SVG, None),
        (b"", None),
        (b"<html>", None),
    ],
)
def test_a_type_is_what_the_bytes_say(data: bytes, kind: str | None) -> None:
    assert picture_type(data) == kind
