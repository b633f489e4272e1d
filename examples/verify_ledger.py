"""Verify a ledger after docs/file-formats.md, with the standard library: `python verify_ledger.py s-1.log.jsonl`."""

import json
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

WAYS = {"message": ["content"], "content": ["stored"], "system": ["stored"], "tools": ["stored"], "stored": ["media"]}
WAYS |= {"line": ["message", "system", "tools", "media"], "data": ["media"], "result": []}  # the rest is what was said


def parsed(line: bytes) -> dict:
    try:
        return {**json.loads(line.decode())}
    except (TypeError, ValueError, RecursionError):
        return {}  # no object: half a line that a crash left, or damage


def named(value: object, key: str = "line") -> Iterator[str]:
    """The contents that a line names, at the places which the page lists."""
    if isinstance(value, list):
        yield from (name for member in value for name in named(member, key))
    if not isinstance(value, dict):
        return
    if key in ("stored", "media"):
        yield str(value.get("sha256"))
    ways = {*WAYS.get(key, []), *(["media"] if value.get("type") in ("image", "audio", "video", "file") else [])}
    ways |= {"data"} if key == "line" and value.get("kind") == "eviction" else set()
    for name, member in value.items():
        if name in ways:
            yield from named(member, name)
        elif key in ("line", "message") and isinstance(member, dict) and [*member] == ["stored"]:
            yield from named(member["stored"], "stored")
        elif name == "content" and value.get("type") == "toolResult" and "stored" not in value:
            yield from named(member, "result")


def problems(ledger: Path) -> Iterator[str]:
    """What is wrong, in sentences. The anchor is read first: a writer may be at work."""
    beside = Path(str(ledger).replace(".log.jsonl", ".head.json"))
    block = beside.read_bytes() if beside.is_file() else b""
    body, _, rest = block.partition(b',"sum":"')
    anchor = json.loads(block) if len(block) == 512 and rest[:64] == sha256(body).hexdigest().encode() else {}
    data = ledger.read_bytes()
    lines = data.removesuffix(b"\n").split(b"\n")
    for number, (before, entry) in enumerate(zip([b"", *lines[:-1]], map(parsed, lines), strict=True), 1):
        if entry and entry.get("seq") != number:
            yield f"line {number} was written as line {entry.get('seq')}"
        if entry and number > 1 and entry.get("prevHash") != sha256(before).hexdigest():
            yield f"line {number - 1} is not the one that line {number} was written behind"
        if entry.get("type") == "event" and entry.get("kind") == "damage":
            yield f"line {number} notes damage that was found before it: {json.dumps(entry['data'])}"
        for name in named(entry):
            file = ledger.parent / "files" / name[:2] / Path(name).name
            if not file.is_file() or sha256(file.read_bytes()).hexdigest() != name:
                yield f"line {number} names a file that is missing or changed: {name}"
    if data.endswith(b"\n") and lines[-1].strip() and not parsed(lines[-1]):
        yield f"line {len(lines)} cannot be read, and no crash leaves a whole line so"
    end = data[: anchor.get("bytes", 0)].removesuffix(b"\n").split(b"\n")[-1]
    if not anchor:
        yield "there is no anchor, so nobody can say whether the end is missing"
    elif len(data) < anchor["bytes"] or sha256(end).hexdigest() != anchor["hash"]:
        yield f"line {anchor['count']}, the last one that the anchor names, is missing or changed"


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        sys.exit("give one ledger that is there: python verify_ledger.py SESSION.log.jsonl")
    found = list(problems(Path(sys.argv[1])))
    print("\n".join(found) or "as it was written")
    sys.exit(bool(found))
