"""The Markdown export: prose stays Markdown, and nothing in it is a tag, a link or an end of a fence."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_session import answered, call, result, said, sample

from harness.transcripts import read
from harness.transcripts.export import export
from harness.transcripts.export.prose import fenced, pieces, spans

OWN_TAGS = re.compile(r"</?(?:details|summary)>")
FENCE = re.compile(r"^(`{3,})[^`\n]*\n.*?\n\1$", re.MULTILINE | re.DOTALL)


def markdown_of(transcript, tmp_path: Path) -> str:
    return export(transcript, "markdown", tmp_path / "out.md").out.read_text(encoding="utf-8")


def outside_of_code(markdown: str) -> str:
    return OWN_TAGS.sub("", FENCE.sub("", markdown))


def test_prompts_and_answers_are_headings_with_their_text(tmp_path: Path) -> None:
    markdown = markdown_of(sample(tmp_path), tmp_path)
    assert markdown.startswith("# Look at the shop.\n\n- Written by: Claude Code\n")
    assert "\n## Person · 2026-03-01T10:00:12.000Z\n\nOpen it.\n" in markdown
    assert "\n## Assistant · claude-x · 2026-03-01T10:00:09.000Z\n\nThere is a.txt.\n" in markdown


def test_calls_are_folded_with_their_outcome(tmp_path: Path) -> None:
    markdown = markdown_of(sample(tmp_path), tmp_path)
    assert re.findall(r"<summary>(Tool call.*?)</summary>", markdown) == [
        "Tool call: Bash",
        "Tool call: Bash, failed",
        "Tool call: Bash, no result",
    ]


def test_a_picture_is_named_and_counted(tmp_path: Path) -> None:
    made = export(sample(tmp_path), "markdown", tmp_path / "out.md")
    assert "[image: image/png, 32 bytes]" in made.out.read_text(encoding="utf-8")
    assert made.left_out == {"media": 2, "message usage": 4, "sealed reasoning": 2}


def test_html_and_links_of_prose_become_text(tmp_path: Path) -> None:
    text = "<script>x</script> [a](javascript:x) ![i](http://x/y.png) <http://x> &lt;b&gt;\n\n[r]: javascript:y"
    markdown = markdown_of(sample(tmp_path, [said(1, text)]), tmp_path)
    assert (
        "&lt;script>x&lt;/script> [a]\\(javascript:x) ![i]\\(http:&#8203;//x/y.png) &lt;http:&#8203;//x> &amp;lt;b&amp;gt;\n\n"
        "[r]\\: javascript:y\n"
    ) in markdown


LIVE = re.compile(r"[a-z]+://|www\.|\w@\w|@\w|#\d", re.IGNORECASE)


@pytest.mark.parametrize(
    "address", ["http://x.org/a", "HTTPS://x.org", "ftp://x", "www.x.org", "a.b@x.org", "@bob", "#12"]
)
@pytest.mark.parametrize(
    "around",
    [
        *("see {} there", "{}", "({})", "*{}*", "**{}**", "~~{}~~", "> {}", "- {}", "# {}", "| a | {} |", "\\`{}\\`"),
        *("`{}", "{}`", "a ` b\n`{}` c", "``{}`", "| `a | {}` |", "`a\n\n{}`", "\\{}", "[{}]", "<{}>", "&{}"),
    ],
)
def test_no_address_becomes_a_link_by_itself(tmp_path: Path, address: str, around: str) -> None:
    told = around.format(address)
    titled = {"type": "custom-title", "customTitle": told, "sessionId": "s"}
    answer = answered(2, "m", {"type": "text", "text": told}, call("c", a="b"), model=told)
    markdown = markdown_of(sample(tmp_path, [said(1, told, cwd=told, gitBranch=told), answer, titled]), tmp_path)

    assert LIVE.findall(outside_of_code(markdown).replace("&#8203;", "\u200b")) == []
    assert "&#8203;" in markdown


def test_an_address_in_code_stays_as_it_was_written(tmp_path: Path) -> None:
    text = "Open `http://localhost:3000` or ``www.x.org``, ask `a@b.c`.\n\n```\nhttp://x\n```"
    markdown = markdown_of(sample(tmp_path, [said(1, text)]), tmp_path)
    assert f"\n{text}\n" in markdown


@given(st.text(alphabet="` a|\n\\", max_size=40))
def test_no_sign_is_lost_between_spans(text: str) -> None:
    assert "".join(piece.text for piece in spans(text)) == text


def test_a_result_cannot_end_its_fence(tmp_path: Path) -> None:
    output = "````\n</details><script>x</script>\n````````"
    lines = [said(1, "go"), answered(2, "m", call("c", a="b")), said(3, [result("c", output)])]
    markdown = markdown_of(sample(tmp_path, lines), tmp_path)
    assert f"\n`````````\n{output}\n`````````\n" in markdown


def test_an_open_fence_ends_with_its_text(tmp_path: Path) -> None:
    markdown = markdown_of(sample(tmp_path, [said(1, "see\n```py\nx = 1"), said(2, "Next.")]), tmp_path)
    assert "see\n\n```py\nx = 1\n```\n\n## Person" in markdown


def test_the_known_payloads_are_no_tags(shared: Path, tmp_path: Path) -> None:
    markdown = markdown_of(read(shared / "cases/B10/xss.jsonl"), tmp_path)
    assert not re.search(r"<[A-Za-z/!?]", outside_of_code(markdown))
    assert "window" in markdown


@given(st.text(alphabet="`~\n a<", max_size=60))
def test_whatever_stands_in_a_fence_the_fence_ends_behind_it(text: str) -> None:
    opening, *inner, closing = fenced(text).split("\n")
    assert "\n".join(inner) == text
    assert opening == closing
    assert not any(line.strip().startswith(closing) for line in inner)


@given(st.text(alphabet="`~\n ab", max_size=80))
def test_no_line_of_a_text_is_lost_between_its_pieces(text: str) -> None:
    def kept(lines: list[str]) -> list[str]:
        return [line for line in lines if line.strip() and not line.lstrip().startswith(("```", "~~~"))]

    told = [line for piece in pieces(text) for line in piece.text.split("\n")]
    assert kept(told) == kept(text.split("\n"))
