"""No string of a transcript steers anything, wherever a page or a script's twin prints it."""

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from lines import AT, answer, call, keys, prompt, result, visiting, write

STEERS = "a\x1b]0;t\x07\x9b1m\u202egnp.exe\u2066\u200f"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def hostile(folder: Path) -> None:
    """A session whose names, ids, texts and sub-agent all would steer a terminal, or turn the reading round."""
    task = call(STEERS, STEERS, **{STEERS: STEERS, "file_path": STEERS})
    lines = [
        {"type": "custom-title", "customTitle": STEERS, "sessionId": "s"},
        prompt(STEERS, cwd=STEERS, gitBranch=STEERS),
        answer([{"type": "thinking", "thinking": STEERS}, task, {"type": STEERS, STEERS: STEERS}], model=STEERS),
        {**result(STEERS, STEERS), "timestamp": "2026-03-02T09:00:09.000Z"},
        prompt([{"type": "tool_result", "tool_use_id": "nobody", "content": STEERS}], "u7"),
        {"type": STEERS, "uuid": "u8", "sessionId": "s"},
    ]
    write(folder / "s.jsonl", lines)
    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    payloads = {
        "session_meta": {"id": STEERS, "cwd": STEERS},
        "turn_context": {"model": STEERS},
        "response_item": asked,
    }
    codex = [{"timestamp": AT, "type": kind, "payload": payload} for kind, payload in payloads.items()]
    write(folder / "rollout-1.jsonl", codex)
    inside = folder / "s" / "subagents"
    child = prompt("You count.", agentId="a1b2", isSidechain=True)
    write(inside / "agent-a1b2.jsonl", [child, answer("42")])
    meta = {"agentType": STEERS, "description": STEERS, "toolUseId": STEERS, "spawnDepth": 1}
    (inside / "agent-a1b2.meta.json").write_text(json.dumps(meta))


def strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [words for member in members for words in strings(member)]


async def test_no_page_and_no_twin_for_scripts_holds_a_sign_that_steers(tmp_path: Path) -> None:
    hostile(tmp_path)
    async with visiting(tmp_path) as visitor:
        found = await keys(visitor)
        key, other = found["s"], found[STEERS]
        turn = (await visitor.get(f"/api/sessions/{key}/turns")).json()["turns"][1]["key"]
        pages = ["", "/pictures", "/search?q=gnp", f"/turns/{turn}"]
        twins = ["?html=1", "/turns?html=1", "/search?q=gnp", f"/turns/{turn}?html=1"]
        paths = [
            "/",
            *(f"/sessions/{key}{below}" for below in pages),
            *(f"/api/sessions/{key}{below}" for below in twins),
        ]
        paths += [f"/sessions/{other}", f"/api/sessions/{other}/turns?html=1", f"/api/sessions/{other}?html=1"]
        for path in paths:
            answered = await visitor.get(path)
            said = strings(answered.json()) if path.startswith("/api/") else [answered.text]
            raw = [words for words in said if RAW.search(words)]
            assert (path, answered.status_code, raw) == (path, 200, [])
        assert "gnp.exe" in (await visitor.get(f"/sessions/{key}/pictures")).text
        children = (await visitor.get(f"/api/sessions/{key}?html=1")).json()["children"]
    assert [child["title"] for child in children] == ["a␛]0;t␇⟨U+009B⟩1m⟨U+202E⟩gnp.exe⟨U+2066⟩⟨U+200F⟩"]
