"""The library's source as the structure tests see it: one `Module` per file, parsed once."""

import ast
import io
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "harness"
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else ""

    @property
    def where(self) -> str:
        return str(self.path.relative_to(ROOT))

    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


@cache
def modules() -> dict[str, Module]:
    found = [_parse(path) for path in sorted(LIBRARY.rglob("*.py"))]
    return {module.name: module for module in found}


def code_lines(module: Module, node: ast.AST) -> int:
    """Lines of a function that hold code: no docstring, comment or blank line."""
    return len(_code_lines(module).intersection(range(node.lineno, node.end_lineno + 1)) - _docstring_lines(node))


def imports(module: Module) -> set[str]:
    """Every module of ours that this one names: type-only imports and those inside functions too."""
    named: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            named.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, node)
            named.update(
                f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules() else base for alias in node.names
            )
    return {name for name in named if name in modules()} - {module.name}


def _parse(path: Path) -> Module:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = path.read_text("utf-8")
    return Module(name, path, text, ast.parse(text))


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.name.split(".")
    up = node.level - (module.path.name == "__init__.py")
    base = package[: len(package) - up] if up else package
    return ".".join([*base, *([node.module] if node.module else [])])


@cache
def _code_lines_of(text: str) -> frozenset[int]:
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return frozenset(lines)


def _code_lines(module: Module) -> frozenset[int]:
    return _code_lines_of(module.text)


def _docstring_lines(node: ast.AST) -> set[int]:
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return set(range(first.lineno, first.end_lineno + 1))
    return set()
