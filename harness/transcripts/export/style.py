"""The look of the HTML export: one style sheet, light and dark, for screen, phone and paper."""

from __future__ import annotations

__all__ = ["STYLE"]

STYLE = """
:root { color-scheme: light dark; --back: #fff; --ink: #1c1c1a; --soft: #5d5d57; --line: #d9d8d0; --pale: #f5f4ef;
  --accent: #0b5c8f; --bad: #a3261c; }
@media (prefers-color-scheme: dark) {
  :root { --back: #191a1c; --ink: #e8e6e1; --soft: #a5a39b; --line: #3a3b3e; --pale: #232427;
    --accent: #7cbcf0; --bad: #ff8f82; } }
body { margin: 0 auto; max-width: 54rem; padding: 1rem; background: var(--back); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; margin: 0 0 .5rem; }
h2 { font-size: .9rem; margin: 0; display: inline; }
dl { margin: 0; font-size: .9rem; }
dl div { display: flex; gap: .5rem; }
dt { flex: 0 0 6rem; color: var(--soft); }
dd { margin: 0; }
a { color: var(--accent); }
time, .mark, .note, summary span { color: var(--soft); font-size: .85rem; font-weight: normal; }
article { border-top: 1px solid var(--line); padding: .75rem 0 .75rem .75rem; }
article.prompt, article.queued { border-left: 4px solid var(--accent); background: var(--pale); }
article.final { border-left: 4px solid var(--soft); }
article:target { outline: 2px solid var(--accent); }
.text { white-space: pre-wrap; margin: .25rem 0; }
pre { background: var(--pale); border: 1px solid var(--line); border-radius: .25rem; padding: .5rem; margin: .25rem 0;
  overflow-x: auto; white-space: pre-wrap; font: .85rem/1.4 ui-monospace, monospace; }
summary { cursor: pointer; }
.call.failed > summary, .call.open > summary { color: var(--bad); }
.result { border-left: 2px solid var(--line); padding-left: .5rem; }
img { max-width: 100%; height: auto; }
@media print { body { max-width: none; } article { break-inside: avoid-page; } }
"""
