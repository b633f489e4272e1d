"""Twenty payloads, and a session that has one in every place a transcript has."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

PAYLOADS = [
    "<script>window.__p=1</script>",
    "<img src=x onerror=window.__p=2>",
    "<svg/onload=window.__p=3>",
    "</textarea></title></pre></code><script>window.__p=4</script>",
    '"><script>window.__p=5</script>',
    "'-(window.__p=6)-'",
    "<iframe srcdoc='<script>parent.__p=7</script>'></iframe>",
    "</script><script>window.__p=8</script>",
    "${window.__p=9}",
    "{{constructor.constructor('window.__p=10')()}}",
    '<a href="javascript:window.__p=11">x</a>',
    "<style>*{display:none}</style>",
    "&lt;b&gt;kept&lt;/b&gt;",
    "<!--<script>window.__p=12</script>",
    "<math><mtext></p><script>window.__p=13</script>",
    "</noscript></template><script>window.__p=14</script>",
    "[x](javascript:window.__p=15)",
    "![x](https://evil.invalid/pixel.png)",
    "<https://evil.invalid/>",
    "[x]: javascript:window.__p=16\n\n[x]",
]
LITERAL = PAYLOADS[:16]
"""Those that are shown to the letter; the others are Markdown."""


def places(payload: str) -> list[dict[str, Any]]:
    """A session with the payload in every place that a transcript has."""
    shared = {"sessionId": "s", "cwd": f"/srv/{payload}", "gitBranch": payload, "timestamp": "2026-03-02T09:00:00.000Z"}
    call = {
        "type": "tool_use",
        "id": f"t-{payload}",
        "name": payload,
        "input": {payload: payload, "file_path": payload},
    }
    image = {"type": "image", "source": {"type": "base64", "media_type": payload, "data": "AAAA"}}
    texts = [payload, f"```html\n{payload}\n```", f"```{payload}\nx\n```", f"- {payload}\n\n| {payload} |\n|---|"]
    content = [{"type": "thinking", "thinking": payload}, *({"type": "text", "text": text} for text in texts), call]
    answer = {"id": f"m-{payload}", "role": "assistant", "model": payload, "content": content}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": [{"type": "text", "text": payload}, image]}
    plain = {"type": "tool_result", "tool_use_id": "nobody", "content": payload, "is_error": True}
    system = f"<system-reminder>{payload}</system-reminder>"
    return [
        {"type": "custom-title", "customTitle": payload, "sessionId": "s"},
        {"type": "user", "uuid": f"u-{payload}", **shared, "message": {"role": "user", "content": payload}},
        {"type": "user", "uuid": "u2", **shared, "message": {"role": "user", "content": system}},
        {"type": "assistant", "uuid": "u3", **shared, "message": answer},
        {"type": "user", "uuid": "u4", **shared, "message": {"role": "user", "content": [result]}},
        {"type": "user", "uuid": "u5", **shared, "message": {"role": "user", "content": [plain]}},
        {"type": payload, "uuid": "u6", **shared},
        {"type": "system", "subtype": "compact_boundary", "content": payload, **shared},
    ]


def write(folder: Path, payload: str, name: str = "s.jsonl") -> Path:
    file = folder / name
    lines = [json.dumps(line, ensure_ascii=False) for line in places(payload)]
    file.write_text("\n".join(lines) + "\n")
    return file


ALLOWED = {"id", "class", "href", "src", "rel", "type", "lang", "charset", "name", "content", "method", "action", "for",
           "placeholder", "value", "role", "title", "tabindex", "hidden", "datetime", "open", "start"}  # fmt: skip
SCRIPTS = {"/static/theme.js", "/static/session.js", "/static/unlock.js", "/static/ledger.js"}


class Live(HTMLParser):
    """Everything in a page that could act and is not of the viewer's own making."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in {"style", "iframe", "object", "embed", "math", "base", "textarea", "img"}:
            self.found.append(f"<{tag}>")
        if tag == "script" and values.get("src") not in SCRIPTS:
            self.found.append(f"<script {values}>")
        for name, value in attrs:
            if name in {"href", "src", "action"} and not (value or "").startswith(("/", "#")):
                self.found.append(f"{name}={value}")
            if (
                name not in ALLOWED
                and not name.startswith(("data-", "aria-"))
                and tag not in {"svg", "rect", "line", "text"}
            ):
                self.found.append(f"{tag}.{name}")
