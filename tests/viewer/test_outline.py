"""What the page's script is given of a whole session: where its turns are, and no more than a screen can use."""

import sys
from pathlib import Path

import httpx2

sys.path.insert(0, str(Path(__file__).parent))
from browserkit import claude_lines

from harness.viewer import local_viewer
from harness.viewer.shelf import found_in, key_of


async def test_a_script_gets_the_keys_and_an_embedder_everything(tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    file.write_bytes(claude_lines(0, 11_000))
    path = f"/api/sessions/{key_of(found_in([file])[0])}"
    transport = httpx2.ASGITransport(local_viewer([file], token=None))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost:1") as client:
        script = (await client.get(path, params={"html": "1"})).json()
        whole = (await client.get(path)).json()
    assert sorted(script) == ["children", "html", "outline"]
    assert script["outline"]["keys"] == whole["outline"]["keys"]
    assert [prompt["key"] for prompt in script["outline"]["prompts"]] == [
        prompt["key"] for prompt in whole["outline"]["prompts"]
    ]
    assert (len(whole["outline"]["prompts"]), script["html"].count("data-jump")) == (5_500, 5_000)
    assert "500 earlier prompts" in script["html"]
    assert '<ol start="501">' in script["html"]
