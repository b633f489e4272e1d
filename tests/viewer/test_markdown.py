"""Text of strangers as markup: formatted, shown to the letter, and dead."""

import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from payloads import LITERAL, PAYLOADS

from harness.viewer.markdown import MAX_HIGHLIGHTED, code, markdown
from harness.viewer.tables import MAX_CELLS


class Elements(HTMLParser):
    """What a browser would find: elements, attributes, and the text that is left."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_of_a_payload_becomes_an_element_that_acts(payload: str) -> None:
    for html in (markdown(payload), code(payload, "html"), markdown(f"```html\n{payload}\n```")):
        found = Elements(str(html))
        assert found.tags <= {"p", "pre", "code", "span", "em", "strong"}
        assert found.attributes <= {"class"}


@pytest.mark.parametrize("payload", LITERAL)
def test_a_payload_can_be_read_to_the_letter(payload: str) -> None:
    assert payload in Elements(str(markdown(payload))).text
    assert payload in Elements(str(code(payload, "html"))).text


@given(st.text(alphabet="<>&\"'`[]()!*_~|#-=:/\\ \nabjsx\x00\u2028", max_size=80))
def test_no_text_at_all_makes_an_address_or_a_handler(text: str) -> None:
    found = Elements(str(markdown(text)))
    assert found.attributes <= {"class", "start"}
    assert not found.tags & {"a", "img", "script", "style", "iframe", "object", "form", "input"}


def test_a_link_is_its_words_and_its_address_as_text() -> None:
    assert markdown("[docs](https://example.org/a)") == (
        '<p>docs <span class="address">(https://example.org/a)</span></p>\n'
    )


def test_an_address_that_is_its_own_words_is_shown_once() -> None:
    assert markdown("<https://example.org/a>") == "<p>https://example.org/a</p>\n"


def test_a_picture_is_its_words_and_its_address() -> None:
    assert markdown("![map](https://example.org/a.png)") == (
        '<p>map <span class="address">(https://example.org/a.png)</span></p>\n'
    )


def test_markdown_is_formatted() -> None:
    html = markdown("# T\n\n- **b**\n\n| a |\n|---|\n| 1 |\n\n3. x")
    assert Elements(str(html)).tags == {"h1", "ul", "ol", "li", "strong", "table", "thead", "tbody", "tr", "th", "td"}


def test_code_of_a_known_language_has_colours() -> None:
    assert markdown("```python\nreturn 1\n```") == (
        '<pre><code><span class="k">return</span> <span class="mi">1</span>\n</code></pre>\n'
    )


def test_long_code_is_left_plain() -> None:
    text = "x = 1\n" * (MAX_HIGHLIGHTED // 6 + 1)
    assert code(text, "python") == text


def test_line_ends_of_a_prompt_stay() -> None:
    assert markdown("one\ntwo") == "<p>one<br>\ntwo</p>\n"


def test_escape_codes_are_pictures_inside_code_too() -> None:
    assert markdown("```\n\x1b]52;c;eA==\x07\n```") == "<pre><code>␛]52;c;eA==␇\n</code></pre>\n"


def test_a_small_text_that_stands_for_a_large_table_stays_text() -> None:
    wide = "a|" * 400 + "\n" + "-|" * 400 + "\n" + "a\n" * 400
    for text in (wide, "\n".join(f"> {line}" for line in wide.splitlines())):
        found = Elements(str(markdown(text)))
        assert "td" not in found.tags
        assert found.text.count("a") == 800


def test_tables_of_a_text_share_what_cells_there_are() -> None:
    table = "a|b|c\n-|-|-\n" + "1|2|3\n" * 400
    html = str(markdown("\n\n".join([table] * 6)))
    assert MAX_CELLS - 1_300 < html.count("<td>") + html.count("<th>") <= MAX_CELLS
    assert html.count("1") == 2_400


def test_a_table_with_short_rows_is_a_table() -> None:
    html = str(markdown("| a | b | c |\n|---|---|---|\n" + "| 1 |\n" * 20))
    assert html.count("<tr>") == 21


@pytest.mark.parametrize("language", ["lilypond", "autohotkey", "easytrieve", "csharp", "make", "nosuch"])
def test_code_of_a_language_that_was_not_measured_is_left_plain(language: str) -> None:
    assert code("a = 1", language) == "a = 1"


@pytest.mark.parametrize("sign", ["\n", "a", "/", "(", "é"])
def test_code_of_one_sign_without_end_is_left_plain(sign: str) -> None:
    assert "<span" not in code("x = 1;" + sign * 1_000, "c")
