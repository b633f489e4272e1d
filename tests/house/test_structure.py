"""The laws of the house that no linter holds: circles, sizes, doors, and who may touch files."""

import ast
import importlib
import re
import statistics
import sys
import tomllib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from source import ROOT, Module, code_lines, imports, modules

PACKAGES = [name for name, module in modules().items() if module.path.name == "__init__.py"]
# Names of `Path` and `os` that touch the disk and that nothing else here is called.
DISK_CALLS = {
    "hardlink_to", "is_dir", "is_file", "iterdir", "lstat", "mkdir", "read_text", "rglob", "rmdir", "scandir",
    "symlink_to", "touch", "unlink", "write_text",
}  # fmt: skip


def test_nobody_inside_imports_the_face() -> None:
    guests = [
        module.where for module in modules().values() if module.name != "harness" and "harness" in imports(module)
    ]
    assert guests == []


def test_no_circle_of_imports_type_only_ones_included() -> None:
    assert circles({name: imports(module) for name, module in modules().items()}) == []


def test_the_circle_finder_finds_a_circle_of_three() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_no_function_has_more_than_fifty_lines_of_code() -> None:
    assert {name: size for name, size in function_sizes().items() if size > 50} == {}


def test_functions_are_short_in_the_middle_and_in_the_tail() -> None:
    sizes = sorted(function_sizes().values())
    assert statistics.median(sizes) <= 6
    assert sizes[len(sizes) * 9 // 10] <= 25


def test_no_file_of_the_library_has_more_than_400_lines() -> None:
    assert {module.where: lines(module.path) for module in modules().values() if lines(module.path) > 400} == {}


def test_half_the_files_of_the_library_have_fewer_than_150_lines() -> None:
    assert statistics.median(lines(module.path) for module in modules().values()) < 150


def test_no_test_file_has_more_than_500_lines() -> None:
    tests = [path for path in (ROOT / "tests").rglob("*.py") if lines(path) > 500]
    assert [str(path.relative_to(ROOT)) for path in tests] == []


def test_only_the_filesystem_room_touches_files() -> None:
    touches = [place for module in modules().values() if module.room != "filesystem" for place in disk_touches(module)]
    assert touches == []


@pytest.mark.parametrize(
    "name", [name for name in PACKAGES if name != "harness" and not name.startswith("harness.sessions.")]
)
def test_a_room_exports_exactly_what_its_door_names(name: str) -> None:
    package = importlib.import_module(name)
    assert package.__all__ == sorted(package.__all__, key=door_order)
    assert [exported for exported in package.__all__ if not hasattr(package, exported)] == []


@pytest.mark.parametrize("name", sorted(modules()))
def test_every_public_name_a_module_defines_is_in_its_all(name: str) -> None:
    module = modules()[name]
    declared = declared_all(module)
    if declared is None:
        pytest.skip("the module declares no __all__")
    assert sorted(public_definitions(module) - set(declared)) == []


def test_every_ignore_has_its_code_and_its_reason() -> None:
    bare = [
        f"{module.where}:{number}"
        for module in modules().values()
        for number, line in enumerate(module.text.splitlines(), 1)
        if re.search(r"#\s*(type:\s*ignore|noqa|pragma)", line)
        and not re.search(
            r"#\s*(type:\s*ignore\[[\w,-]+\]|noqa:\s*[A-Z0-9, ]+?|pragma: no cover)\s+(#|\(|-)\s*\S", line
        )
    ]
    assert bare == []


def test_there_are_at_most_ten_loose_any_and_one_ignore_in_a_thousand_lines() -> None:
    total = sum(lines(module.path) for module in modules().values())
    ignores = sum(module.text.count("type: ignore") for module in modules().values())
    assert sum(map(loose_anys, modules().values())) * 1000 / total <= 10
    assert ignores * 1000 / total <= 1


def test_the_newest_version_of_the_changelog_is_the_version_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    released = re.findall(r"^## \[(\d[^\]]*)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert released[0] == project["version"]


def test_the_note_for_agents_is_under_sixty_lines() -> None:
    assert lines(ROOT / "AGENTS.md") < 60


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of nodes that reach each other, each sorted."""
    reach = {node: _reachable(graph, node) for node in graph}
    groups = {
        tuple(sorted(other for other in reach[node] if node in reach[other])) for node in graph if node in reach[node]
    }
    return [list(group) for group in sorted(groups)]


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    queue = [*graph[start]]
    while queue:
        node = queue.pop()
        if node not in seen:
            seen.add(node)
            queue.extend(graph.get(node, ()))
    return seen


def function_sizes() -> dict[str, int]:
    return {
        f"{module.where}:{node.lineno} {node.name}": code_lines(module, node)
        for module in modules().values()
        for node in module.functions()
    }


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def door_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as ruff sorts `__all__`."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def disk_touches(module: Module) -> list[str]:
    awaited = {id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Await)}
    calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call) and id(node) not in awaited]
    return [f"{module.where}:{node.lineno}" for node in calls if _touches_disk(node.func)]


def _touches_disk(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id == "open"
    if not isinstance(function, ast.Attribute):
        return False
    of_os = isinstance(function.value, ast.Name) and function.value.id in {"os", "io"}
    return function.attr in DISK_CALLS or (of_os and function.attr in {"open", "remove", "replace", "rename", "stat"})


def loose_anys(module: Module) -> int:
    """Every `Any` but those in `dict[str, Any]` and `Mapping[str, Any]`, which is how JSON objects are spelt."""
    return sum(_anys(module.tree)) - sum(sum(_anys(node)) for node in ast.walk(module.tree) if _is_json_object(node))


def _anys(tree: ast.AST) -> list[bool]:
    return [isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree)]


def _is_json_object(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and ast.unparse(node) in {"dict[str, Any]", "Mapping[str, Any]"}


def declared_all(module: Module) -> list[str] | None:
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            return list(ast.literal_eval(node.value))
    return None


def public_definitions(module: Module) -> set[str]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name for node in module.tree.body if isinstance(node, kinds) and not node.name.startswith("_")}
