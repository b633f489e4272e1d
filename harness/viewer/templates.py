"""The templates, with the words and figures that they print."""

from __future__ import annotations

from datetime import tzinfo
from functools import partial
from typing import Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from harness.viewer.markdown import code, markdown
from harness.viewer.shown import clock, count, day, first_words, printed, size, whole

__all__ = ["Templates"]


class Templates:
    """Pages and pieces of pages. `zone` is the one of every time they show."""

    def __init__(self, zone: tzinfo, zone_name: str) -> None:
        self.zone = zone
        self._environment = Environment(
            loader=PackageLoader("harness.viewer"),
            autoescape=True,
            finalize=printed,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals.update(
            clock=partial(clock, zone=zone),
            code=code,
            count=count,
            day=partial(day, zone=zone),
            first_words=first_words,
            markdown=markdown,
            size=size,
            whole=whole,
            zone=zone_name,
        )

    def render(self, name: str, **values: Any) -> Markup:
        """A template filled in; everything in it is escaped. Blocks while it works."""
        text = self._environment.get_template(name).render(**values)
        return Markup(text)  # noqa: S704 - what the engine made with escaping on
