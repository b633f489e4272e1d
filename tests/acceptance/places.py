"""A workspace with neighbours, a listing of everything around it, and the corpora of ids."""

import json
import os
import re
from pathlib import Path

from harness.agent import HarnessAgent
from harness.context import RuntimeContext
from harness.errors import InvalidId
from harness.hooks import CompactionConfig
from harness.testing import ScriptedModel

ROOT = Path(__file__).resolve().parent.parent.parent
SHARED = Path(os.environ.get("HARNESS_SHARED") or ROOT.parent / "shared") / "cases"
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')


def own_ids() -> list[dict[str, str]]:
    return json.loads((ROOT / "tests/data/ids.json").read_bytes())


def all_ids() -> list[str]:
    """Our own corpus, and those of the cases where they are there."""
    found = [item["id"] for item in own_ids()]
    for name in ("B05/ids.json", "B58/names.json"):
        if (SHARED / name).is_file():
            found += [item["id"] for item in json.loads((SHARED / name).read_bytes())]
    return list(dict.fromkeys(found))


def echo_model() -> ScriptedModel:
    """Says what it heard, as often as it is asked."""
    return ScriptedModel([lambda request: f"heard: {request.messages[-1].text.splitlines()[0]}"] * 1000)


def agent_in(workspace: Path, agent_id: str = "agent", name: str = "An Agent") -> HarnessAgent:
    builder = HarnessAgent.builder().name(name).agent_id(agent_id).model(echo_model()).workspace(workspace)
    return builder.compaction(CompactionConfig(trigger_messages=50, keep_messages=2)).build()


async def neighbourhood(parent: Path) -> Path:
    """A workspace with two tenants beside a folder and a file that have nothing to do with it."""
    workspace = parent / "workspace"
    (parent / "outside").mkdir()
    (parent / "outside/secret.md").write_text("secret")
    (parent / "secret.md").write_text("secret")
    async with agent_in(workspace, "other") as agent:
        for user in ("bob", "b"):
            await agent.call("I am here.", RuntimeContext(session_id="chat", user_id=user))
    return workspace


def listing(folder: Path) -> dict[str, object]:
    """Everything below a folder by its path: what tells a changed file, the target of a link, None for a folder."""
    found: dict[str, object] = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            key = str(path.relative_to(folder))
            facts = path.lstat()
            if path.is_symlink():
                found[key] = os.readlink(path)
            else:
                found[key] = None if path.is_dir() else (facts.st_size, facts.st_mtime_ns, facts.st_ino)
    return found


def changed_outside(before: dict[str, object], after: dict[str, object], inside: str) -> list[str]:
    """What was made, changed or removed that is not `inside`, a path that ends in `/`, nor on the way to it."""
    keys = [key for key in before.keys() | after.keys() if before.get(key, "?") != after.get(key, "?")]
    return sorted(key for key in keys if not f"{key}/".startswith(inside) and not inside.startswith(f"{key}/"))


def bad_names(folder: Path) -> list[str]:
    """Names that some file system would refuse, change, or take for a device."""
    names = {Path(key).name for key in listing(folder)}
    return sorted(
        name
        for name in names
        if len(os.fsencode(name)) > 255 or _DEVICE.fullmatch(name) or _FORBIDDEN.search(name) or name[-1] in ". "
    )


def is_refused(make: object) -> bool:
    """Whether making something of an id raises the one documented error."""
    try:
        make()  # type: ignore[operator]
    except InvalidId:
        return True
    return False
