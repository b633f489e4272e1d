"""Verify a ledger after docs/file-formats.md, with the standard library: `python verify_ledger.py s-1.log.jsonl`.

Files are those that lines list. Lines of version 0.1.0 list none, and theirs are not looked at.
"""

import json
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path


def parsed(line: bytes) -> dict:
    try:
        return {**json.loads(line.decode())}
    except (TypeError, ValueError, RecursionError):
        return {}  # no object: half a line that a crash left, or damage


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
        for name in [str(item.get("sha256")) for item in entry.get("files", ()) if isinstance(item, dict)]:
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
    print("\n".join(found := [*problems(Path(sys.argv[1]))]) or "as it was written")
    sys.exit(bool(found))
