"""Words of a text, in any script, to compare texts by."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

__all__ = ["is_joined", "plain_words", "words_of"]

# Between words: white space, punctuation and symbols. Told by ranges, for marks that belong to a letter are no `\w`.
_BETWEEN = re.compile(
    "[\\s\x00-/:-@\\[-`{-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7\u055a-\u055f\u0589\u05be\u05c0\u05c3"
    "\u060c\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965\u0e2f\u0e5a\u0e5b\u104a-\u104f\u1361-\u1368\u17d4-\u17da"
    "\u2000-\u206f\u20a0-\u20cf\u2190-\u2bff\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u30fb\ufe10-\ufe6f]+"
)
# Scripts that put no space between words, or endings straight behind them.
_JOINED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]+"
)


def plain_words(text: str) -> list[str]:
    """The words in their order, without regard to case or width of letters. Chinese or Thai is not taken apart."""
    return [word for word in _BETWEEN.split(unicodedata.normalize("NFKC", text.casefold()).casefold()) if word]


def words_of(text: str) -> frozenset[str]:
    """The words, each once; where a script does not part them, every two neighbouring characters stand for one."""
    return frozenset(part for word in plain_words(text) for part in _parts(word))


def is_joined(word: str) -> bool:
    """Whether it is of a script that puts no space between words, or endings straight behind them."""
    return _JOINED.fullmatch(word) is not None


def _parts(word: str) -> Iterator[str]:
    if word.isascii():
        yield word
        return
    end = 0
    for run in _JOINED.finditer(word):
        if end < run.start():
            yield word[end : run.start()]
        end = run.end()
        yield from _pairs(run.group())
    if end < len(word):
        yield word[end:]


def _pairs(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    yield from (run[index : index + 2] for index in range(len(run) - 1))
