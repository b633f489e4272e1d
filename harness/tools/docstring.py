"""What a docstring says of a tool and its parameters: Google, NumPy and `:param x:` styles."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

__all__ = ["Docs", "parse_docstring"]

_SECTION = re.compile(
    r"(args|arguments|parameters|params|returns?|yields?|raises|examples?|notes?|see also|warnings?)\s*:?\s*",
    re.IGNORECASE,
)
_PARAMETER_SECTIONS = {"args", "arguments", "parameters", "params"}
# `name: text`, `name (type): text`, and NumPy's `name : type`.
_PARAMETER = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*(:)\s*(.*)")
_FIELD = re.compile(r":(\w+)\s*(?:[^:]*?\s)?(\w+)?:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Docs:
    """The text before the first section, and the text of each parameter."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def parse_docstring(text: str | None) -> Docs:
    """Read a docstring. What is no parameter section and comes after the description is left out."""
    lines = inspect.cleandoc(text or "").split("\n")
    end = next((n for n in range(len(lines)) if _is_section(lines, n) or lines[n].startswith(":")), len(lines))
    parameters: dict[str, str] = {}
    for n in range(end, len(lines)):
        if _is_section(lines, n) and _title(lines[n]) in _PARAMETER_SECTIONS:
            parameters.update(_section_parameters(_section_body(lines, n)))
    parameters.update(_field_parameters(lines[end:]))
    return Docs("\n".join(lines[:end]).strip(), parameters)


def _title(line: str) -> str:
    return line.strip().rstrip(":").strip().lower()


def _is_section(lines: list[str], n: int) -> bool:
    """A known word alone on its line, with a colon behind it or a rule under it."""
    line = lines[n]
    if line[:1].isspace() or not _SECTION.fullmatch(line):
        return False
    return line.rstrip().endswith(":") or _is_rule(lines, n + 1)


def _is_rule(lines: list[str], n: int) -> bool:
    return n < len(lines) and len(lines[n].strip()) >= 3 and set(lines[n].strip()) == {"-"}


def _section_body(lines: list[str], n: int) -> tuple[list[str], bool]:
    numpy = _is_rule(lines, n + 1)
    start = n + 2 if numpy else n + 1
    end = next((m for m in range(start, len(lines)) if _is_section(lines, m)), len(lines))
    return lines[start:end], numpy


def _section_parameters(body: tuple[list[str], bool]) -> dict[str, str]:
    lines, numpy = body
    filled = [line for line in lines if line.strip()]
    indent = min((_indent(line) for line in filled), default=0)
    parameters: dict[str, list[str]] = {}
    current: list[str] = []
    for line in filled:
        match = _PARAMETER.fullmatch(line.strip()) if _indent(line) == indent else None
        if match:
            current = parameters.setdefault(match[1], [])
        if not match or not numpy:
            current.append(match[3] if match else line.strip())
    return {name: " ".join(words).strip() for name, words in parameters.items()}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _field_parameters(lines: list[str]) -> dict[str, str]:
    parameters: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        match = _FIELD.match(line)
        if match:
            current = parameters.setdefault(match[2], []) if match[1] == "param" and match[2] else None
        if current is not None:
            current.append(match[3] if match else line.strip())
    return {name: " ".join(words).strip() for name, words in parameters.items()}
