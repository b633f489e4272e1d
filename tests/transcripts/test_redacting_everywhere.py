"""What is taken out of an export is in no byte and no name of it, in whatever way it may be written there."""

import base64
import json
import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness.sessions.lines.assigned import assignments_to, without_values
from harness.transcripts import Transcript, read
from harness.transcripts.export import TARGETS, Redaction, export, redact_transcript

SECRET = "Zq&<7>p\u00e4ss'w"
"""With signs that every form escapes in a way of its own."""


def said(kind: str, *content: dict[str, Any], number: int, **fields: Any) -> dict[str, Any]:
    roles = {"prompt": "user", "queued": "user", "answer": "assistant", "results": "tool", "orphan": "tool"}
    message = {"id": f"b{number}", "role": roles.get(kind, "system"), "content": list(content), **fields}
    return {"type": "turn", "kind": kind, "at": f"2026-03-01T10:00:{number:02}.000Z", "message": message}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def written(folder: Path, lines: list[dict[str, Any]], name: str = "transcript.jsonl", **header: Any) -> Transcript:
    head = {"type": "transcript", "version": 1, "format": "other", "harness": "Other", "sessionId": "s1", **header}
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in [head, *lines]))
    return read(path)


def with_a_secret_everywhere(folder: Path) -> Transcript:
    s = SECRET
    given = {"deep": [{"deeper": {s: f"x {s}"}}], "json": json.dumps({"a": s}), "twice": json.dumps(json.dumps([s]))}
    opaque = {"provider": "p", "data": {"type": "thinking", "thinking": s, "note": {s: s}}}
    media = {"mediaType": f"image/{s}", "bytes": 3, "name": f"{s}.png"}
    lines = [
        said("prompt", text(f"the word is {s}"), number=1, name=s),
        said("queued", text(s), number=2),
        said("context", text(f"<note>{s}</note>"), number=3),
        said("meta", {"type": "event", "kind": s, "data": {s: s}}, number=4),
        said(
            *("answer", {"type": "thinking", "text": s, "opaque": opaque}, text(f"```{s}\n{s}\n```")),
            {"type": "toolUse", "id": f"call {s}", "name": f"tool {s}", "input": given},
            {"type": "provider.error", "error": s, s: s},
            {"type": f"kind {s}", "x": 1},
            number=5,
            model=f"model {s}",
            provider=f"of {s}",
            stop=s,
        ),
        said(
            "results",
            {"type": "toolResult", "id": f"call {s}", "name": f"tool {s}", "content": [text(s), {"type": s}]},
            number=6,
        ),
        said(
            "orphan",
            {"type": "toolResult", "id": s, "name": s, "content": [{"type": "image", "media": media}]},
            number=7,
        ),
        said("prompt", {"type": "image", "url": f"https://host/{s}.png"}, number=8),
        said("compaction", text(s), number=9),
        {"type": f"kind {s}"},
    ]
    named = {name: f"{name} {s}" for name in ("sessionId", "title", "cwd", "branch", "parent", "forkedFrom", "model")}
    agents = [{"sessionId": s, "title": s, "call": f"call {s}"}]
    more = {"harness": f"Other {s}", "models": [f"model {s}"], "subagents": agents}
    return written(folder, lines, f"{s}.jsonl", **named, **more)


def forms_of(secret: str) -> Iterator[bytes]:
    """The ways in which a text may stand in a file, encoded ones included."""
    raw = secret.encode()
    for shown in (secret, secret.replace("'", "&#x27;"), escape(secret), escape(secret, quote=False), quote(secret)):
        yield shown.encode()
        yield json.dumps(shown)[1:-1].encode()
        yield json.dumps(json.dumps(shown))[3:-3].encode()
    for before in range(3):
        encoded = base64.b64encode(b"x" * before + raw + b"x" * 3)
        yield encoded[4 if before else 0 : -8]
    yield re.sub(rb"([\\`*_\[\]|~<])", rb"\\\1", raw)


def leaks(place: Path, secret: str) -> list[str]:
    files = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    assert files
    named = [str(path) for path in files if any(form in str(path).encode() for form in forms_of(secret))]
    return named + [str(path) for path in files if any(form in path.read_bytes() for form in forms_of(secret))]


@pytest.mark.parametrize("target", list(TARGETS))
def test_a_pattern_is_in_no_byte_and_no_name_of_an_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    before = with_a_secret_everywhere(tmp_path / "source")
    (tmp_path / "plain").mkdir()
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "plain")
    assert leaks(tmp_path / "plain" / export(before, target).out, SECRET)
    monkeypatch.chdir(tmp_path / "out")

    made = export(before, target, redaction=Redaction(patterns=(re.escape(SECRET),), defaults=False))

    assert leaks(tmp_path / "out", SECRET) == []
    assert (made.redaction is not None and list(made.redaction.hits)) == [f"pattern:{re.escape(SECRET)}"]


def test_a_secret_that_is_itself_the_pattern_is_not_in_the_report_that_goes_along(tmp_path: Path) -> None:
    before = written(tmp_path / "source", [said("prompt", text("hunter22"), number=1)])
    for target in TARGETS:
        export(before, target, tmp_path / "out" / target, redaction=Redaction(patterns=("hunter22", "other")))
    assert leaks(tmp_path / "out", "hunter22") == []
    manifest = json.loads((tmp_path / "out" / "bundle" / "manifest.json").read_bytes())
    assert manifest["redaction"]["rules"] == ["default", "pattern:1", "pattern:2"]
    assert manifest["redaction"]["hits"] == {"pattern:1": 1}


LONG = "crumbs" + "y" * 9000
BY_KEY: dict[str, Any] = {
    "an object": {"cookie": "crumbs"},
    "a deep object": {"a": [{"b": {"Cookie": ["crumbs", {"x": "crumbs"}]}}]},
    "a number": {"cookie": 4711147111},
    "JSON text": {"body": json.dumps({"cookie": "crumbs"})},
    "JSON text of a number": {"body": json.dumps({"cookie": 4711147111})},
    "JSON text of an object": {"body": json.dumps({"cookie": {"a": "crumbs", "b": ["crumbs"]}}, indent=1)},
    "JSON text of a list": {"body": json.dumps([1, {"cookie": ["x", "crumbs"]}])},
    "JSON text in JSON text": {"body": json.dumps({"body": json.dumps({"cookie": 'cr"um crumbs'})})},
    "JSON text with escapes": {"body": '{"c\\u006fokie": "crumbs"}'},
    "JSON lines": {"body": "\n".join(json.dumps({"n": n, "cookie": {"a": "crumbs"}}) for n in range(3))},
    "a command line": {"command": 'curl -d \'{"cookie": "crumbs"}\' -H "cookie: a=1; b=crumbs" x'},
    "an escaped command line": {"command": 'curl -d "{\\"cookie\\": \\"crumbs\\"}" x'},
    "a twice escaped command line": {"command": 'sh -c "curl -d \\"{\\\\\\"cookie\\\\\\": \\\\\\"crumbs\\\\\\"}\\""'},
    "a header": {"text": "GET /\nCookie: a=1; b=crumbs\nHost: x"},
    "a header of two words": {"text": "cookie: Bearer crumbs"},
    "an assignment": {"text": "cookie = crumbs"},
    "long quotes": {"text": 'cookie = """\ncrumbs "a" crumbs\n"""\nnext = 1'},
    "an arrow": {"text": "[ :cookie => 'crumbs', 'cookie' => crumbs ]"},
    "a flag": {"text": "fetch --cookie crumbs --cookie=crumbs -cookie 'crumbs'"},
    "a query": {"text": "https://host/a?x=1&cookie=crumbs&y=2"},
    "a header in escaped text": {"text": 'say "GET /\\r\\nCookie: a=1; b=crumbs\\r\\nHost: x"'},
    "a long text": {"text": f'cookie="{LONG}"'},
    "a long word": {"text": f"cookie={LONG}"},
    "an open quote": {"text": 'cookie="crumbs'},
    "a quote in a quote": {"text": 'cookie="a\\"crumbs" end'},
    "what is aligned": {"text": "a               = 1\ncookie          = crumbs\ncookie\t\t\t\t: crumbs"},
    "an aligned flag": {"text": "fetch --cookie      crumbs"},
    "what has a type": {"text": "cookie: str = 'crumbs'\ndef f(cookie: Optional[str] | None = \"crumbs\"): ..."},
    "what looks like a type": {"text": "the cookie: crumbs="},
    "what has a prefix": {"text": "{'cookie': b'crumbs'}, f(cookie=f\"crumbs\"), export COOKIE=$'crumbs'"},
    "what begins like no value": {"text": "cookie=null-crumbs cookie=None.crumbs"},
    "signs within": {"text": "cookie=ab,crumbs\nexport COOKIE=ab;crumbs\nCOOKIE=ab\\crumbs\ncookie=ab'c crumbs'"},
    "joined quotes": {"text": "run COOKIE=\"ab\"'crumbs' COOKIE=''crumbs"},
    "a block of YAML": {"text": "a:\n  - cookie: |\n      ab\n\n        crumbs\n      crumbs\n    b: 1"},
    "a call": {"text": "f(cookie=os.environ.get('X', 'crumbs'))\ncookie = get(\n    'X',\n    str('crumbs'),\n)"},
    "what is added": {"text": "cookie += 'crumbs'\ncookie ?= crumbs"},
    "a header with a quote": {"text": 'Cookie: a="b"; c=crumbs'},
    "a scheme": {"text": "cookie = Bearer crumbs"},
}


@pytest.mark.parametrize("way", list(BY_KEY))
def test_what_stands_under_a_key_goes_however_it_is_written(tmp_path: Path, way: str) -> None:
    call = {"type": "toolUse", "id": "c1", "name": "run", "input": BY_KEY[way]}
    shown = json.dumps(BY_KEY[way])
    results = [text(value) for name, value in BY_KEY[way].items() if name != "cookie" and isinstance(value, str)]
    result = {"type": "toolResult", "id": "c1", "name": "run", "content": results}
    lines = [said("prompt", text("go"), number=1), said("answer", call, number=2), said("results", result, number=3)]
    before = written(tmp_path / "source", lines)

    made, report = redact_transcript(before, Redaction(keys=("cookie",), defaults=False))

    left = json.dumps([turn.blocks for turn in made.turns])
    assert "crumbs" in shown or "4711147111" in shown
    assert not [word for word in ("crumbs", "4711147111") if word in left]
    assert report.hits["key:cookie"] >= 1
    for target in TARGETS:
        export(before, target, tmp_path / "out" / target, redaction=Redaction(keys=("cookie",), defaults=False))
    assert leaks(tmp_path / "out", "crumbs") == leaks(tmp_path / "out", "4711147111") == []


def test_a_number_that_a_pattern_matches_goes_from_what_strangers_wrote_and_our_counts_stay(tmp_path: Path) -> None:
    call = {"type": "toolUse", "id": "c1", "name": "run", "input": {"card": 4111111111111111, "n": [12, True, 1.5]}}
    lines = [said("answer", call, number=2, usage={"input": 12, "output": 7, "cacheRead": 0, "cacheWrite": 0})]
    made, _ = redact_transcript(
        written(tmp_path / "source", lines), Redaction(patterns=(r"\d{16}", "12", "1.5"), defaults=False)
    )
    assert made.turns[0].blocks[0]["input"] == {"card": "[redacted]", "n": ["[redacted]", True, "[redacted]"]}
    assert made.turns[0].message["usage"]["input"] == 12


def test_text_in_which_nothing_is_to_go_stays_as_it_was(tmp_path: Path) -> None:
    body = '{ "a" :1.0,\n "b": [ "cookies" ], "cookie": null, "set-cookie": "x", "e": {"cookie": ""} }'
    call = {"type": "toolUse", "id": "c1", "name": "run", "input": {"body": body}}
    before = written(tmp_path / "source", [said("answer", call, number=2)])
    made, report = redact_transcript(before, Redaction(keys=("cookie",), patterns=("nowhere",), defaults=False))
    assert (made.turns, dict(report.hits)) == (before.turns, {})


@pytest.mark.parametrize(
    ("said_before", "left"),
    [
        ("cookie=x python run.py --now", "cookie=[redacted] python run.py --now"),
        ("get(cookie=load('x'), b=1)", "get(cookie=[redacted], b=1)"),
        ("say \"cookie='x'\" and 'more'", "say \"cookie=[redacted]\" and 'more'"),
        ("a:\n  cookie: |\n    x\n  b: 1", "a:\n  cookie: [redacted]\n  b: 1"),
        ("cookie: str = 'x'\nb = 1", "cookie: [redacted]\nb = 1"),
        ("f(cookie=None), cookie=null. `cookie=None`", "f(cookie=None), cookie=null. `cookie=None`"),
    ],
)
def test_what_stands_behind_a_value_stays(said_before: str, left: str) -> None:
    assert without_values(said_before, assignments_to("cookie"))[0] == left
    assert without_values(left, assignments_to("cookie")) == (left, 0)


WELL_KNOWN = [way for way in BY_KEY if way.startswith("JSON") and "number" not in way and "escapes" not in way]


@pytest.mark.parametrize("way", WELL_KNOWN)
def test_what_stands_under_a_well_known_name_goes_from_json_in_text(tmp_path: Path, way: str) -> None:
    given = json.loads(json.dumps(BY_KEY[way]).replace("cookie", "password"))
    call = {"type": "toolUse", "id": "c1", "name": "run", "input": given}
    made, report = redact_transcript(written(tmp_path / "source", [said("answer", call, number=2)]), Redaction())
    assert "crumbs" not in json.dumps(made.turns[0].blocks)
    assert report.hits["default"] >= 1


@pytest.mark.parametrize("rules", [Redaction(), Redaction(patterns=("hunter22",)), Redaction(keys=("password",))])
def test_no_seal_goes_along_with_reasoning_that_was_changed_by_any_rule(tmp_path: Path, rules: Redaction) -> None:
    shown = "so password=hunter22 it is"
    sealed = {"provider": "anthropic", "data": {"type": "thinking", "thinking": shown, "signature": "c2VhbA=="}}
    block = {"type": "thinking", "text": shown, "opaque": sealed}
    before = written(tmp_path / "source", [said("answer", block, text("ok"), number=2)])
    made = export(before, "claude", tmp_path / "o.jsonl", redaction=rules)
    assert [word for word in (b"hunter22", b"c2VhbA") if word in made.out.read_bytes()] == []
    assert made.left_out == {"sealed reasoning": 1}
    assert b"c2VhbA" in export(before, "claude", tmp_path / "whole.jsonl").out.read_bytes()


def test_the_bytes_and_the_size_of_a_medium_are_not_looked_into(tmp_path: Path) -> None:
    before = written(tmp_path / "source", [said("prompt", {"type": "image", "media": {"sha256": "12"}}, number=1)])
    before.turns[0].blocks[0]["media"] |= {"data": b"12", "bytes": 12, "mediaType": "image/png"}
    made, report = redact_transcript(before, Redaction(patterns=("12",)))
    assert (made.turns, dict(report.hits)) == (before.turns, {})
