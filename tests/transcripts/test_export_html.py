"""The HTML export: whole, readable without anything beside it, and nothing of a transcript alive in it."""

import base64
import hashlib
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sample_session import PICTURE, answered, call, result, said, sample

from harness.transcripts import read
from harness.transcripts.export import Redaction, export

OURS = {
    *("html", "head", "meta", "title", "style", "body", "header", "nav", "main", "article", "h1", "h2", "dl", "div"),
    *("dt", "dd", "p", "ol", "li", "a", "details", "summary", "span", "b", "time", "pre", "code", "img"),
}
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "aria-label", "id", "class", "href", "alt", "src"}
PAYLOAD = "<script>window.__p=1</script><img src=x onerror=alert(1)></pre></title>\"'><style>*{}</style>"


class Page(HTMLParser):
    """What a browser would make of a page: its tags, its attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.attributes if key == name]


def page_of(transcript, tmp_path: Path, **options) -> tuple[str, Page]:
    made = export(transcript, "html", tmp_path / "out.html", **options)
    html = made.out.read_text(encoding="utf-8")
    return html, Page(html)


def is_harmless(page: Page) -> bool:
    own = all(re.fullmatch(r"#t\d+", value) for value in page.values("href"))
    inline = all(re.fullmatch(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+", v) for v in page.values("src"))
    return page.tags <= OURS and {name for name, _ in page.attributes} <= ATTRIBUTES and own and inline


def test_a_session_is_readable_with_all_it_holds(tmp_path: Path) -> None:
    _, page = page_of(sample(tmp_path), tmp_path)
    for words in ("Look at the shop.", "Looking.", "I look first.", "failed badly", "And hurry.", "Hidden work."):
        assert words in page.text
    assert "1 reasoning record without readable text" in page.text
    assert "3 prompts, 4 answers, 3 tool calls (1 failed, 1 without a result)" in page.text


def test_a_call_without_a_result_says_so(tmp_path: Path) -> None:
    html, _ = page_of(sample(tmp_path), tmp_path)
    assert html.count('<details class="call open">') == 1
    assert html.count('<details class="call failed">') == 1
    assert html.count('<details class="call ok">') == 1


def test_every_prompt_is_in_the_outline_with_a_link_that_leads_to_it(tmp_path: Path) -> None:
    html, page = page_of(sample(tmp_path), tmp_path)
    links = page.values("href")
    assert len(links) == 3
    assert all(html.count(f'<article id="{link[1:]}" ') == 1 for link in links)


def test_pictures_are_in_the_page(tmp_path: Path) -> None:
    _, page = page_of(sample(tmp_path), tmp_path)
    wanted = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"
    assert page.values("src") == [wanted, wanted]


def test_the_policy_allows_this_style_sheet_and_nothing_else(tmp_path: Path) -> None:
    html, page = page_of(sample(tmp_path), tmp_path)
    style = html.split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = page.values("content")[0]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def test_markup_in_every_place_of_a_transcript_stays_text(tmp_path: Path) -> None:
    lines = [
        {"type": "custom-title", "customTitle": PAYLOAD, "sessionId": PAYLOAD},
        said(1, PAYLOAD, cwd=PAYLOAD, gitBranch=PAYLOAD),
        answered(
            2,
            PAYLOAD,
            {"type": "thinking", "thinking": PAYLOAD},
            {"type": "text", "text": f"{PAYLOAD}\n```{PAYLOAD}\n{PAYLOAD}\n```"},
            {"type": "tool_use", "id": PAYLOAD, "name": PAYLOAD, "input": {PAYLOAD: PAYLOAD}},
            {"type": PAYLOAD, "x": PAYLOAD},
        ),
        said(3, [result(PAYLOAD, [{"type": "image", "source": {"media_type": PAYLOAD, "data": "QUJD"}}])]),
        said(4, f"<x-y>{PAYLOAD}</x-y>"),
    ]
    lines[2]["message"]["model"] = PAYLOAD
    _, page = page_of(sample(tmp_path, lines), tmp_path)
    assert is_harmless(page)
    assert page.text.count("<script>window.__p=1</script>") >= 12


def test_the_known_payloads_stay_text(shared: Path, tmp_path: Path) -> None:
    source = tmp_path / "<img src=x onerror=alert(1)>.jsonl"
    source.write_bytes((shared / "cases/B10/xss.jsonl").read_bytes())
    _, page = page_of(read(source), tmp_path)
    assert is_harmless(page)
    assert "<script>window.__p=1</script>" in page.text
    assert "<img src=x onerror=alert(1)>" in page.text


def test_control_codes_are_shown_as_signs(tmp_path: Path) -> None:
    html, page = page_of(sample(tmp_path, [said(1, "a\x1b[31mred\x1b]0;t\x07 \u202eb\x00")]), tmp_path)
    assert "ared␛]0;t␇ ⟨U+202E⟩b␀" in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", html)


@pytest.mark.parametrize("case", ["B19/surrogate.jsonl", "B66/stamps.jsonl", "B71/nan.jsonl", "B75/ansi.jsonl"])
def test_odd_sessions_make_a_page_of_valid_utf_8(shared: Path, tmp_path: Path, case: str) -> None:
    html, page = page_of(read(shared / "cases" / case), tmp_path)
    assert html.endswith("</html>\n")
    assert is_harmless(page)
    assert "1970" not in page.text


def test_what_was_redacted_is_not_in_the_page(tmp_path: Path) -> None:
    lines = [said(1, "take it"), answered(2, "m1", call("c1", command="login", cookie="c0ffee-secret"))]
    html, page = page_of(sample(tmp_path, lines), tmp_path, redaction=Redaction(keys=("cookie",)))
    assert "c0ffee" not in html
    assert "Redacted before it was written: 1 place." in page.text
