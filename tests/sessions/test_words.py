"""Words to compare texts by, in any script."""

import pytest

from harness.sessions.view.words import plain_words, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Read the README.md file!", {"read", "the", "readme", "md", "file"}),
        ("read_file", {"read", "file"}),
        ("STRASSE Straße", {"strasse"}),
        ("ＡＢＣ１２３", {"abc123"}),
        ("e\u0301te\u0301 été", {"été"}),
        ("हिन्दी भाषा", {"हिन्दी", "भाषा"}),
        ("火箭发射代码", {"火箭", "箭发", "发射", "射代", "代码"}),
        ("它", {"它"}),
        ("python代码v2", {"python", "代码", "v2"}),
        ("한국어를", {"한국", "국어", "어를"}),
        ("привет, Мир", {"привет", "мир"}),
        ("  …  --- ", set()),
    ],
)
def test_words_are_told_apart(text: str, words: set[str]) -> None:
    assert words_of(text) == words


def test_plain_words_keep_their_order_and_are_not_taken_apart() -> None:
    assert plain_words("What's the 发射代码, then?") == ["what", "s", "the", "发射代码", "then"]
