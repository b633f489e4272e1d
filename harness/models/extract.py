"""Finding sentences in a conversation by the words they share with a question. No language is understood here."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Source", "best_source", "is_question", "key_sentences", "lasting_sentences", "sentences", "unlabelled"]

# Characters of CJK scripts are words of their own. Full-width marks and typographic quotes stand as escapes.
_WORD = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\\W_]+(?:[-'_\u2019][^\\W_]+)*")
_CLOSERS = "\"')\u201d\u2019"
_SENTENCE_END = re.compile(f"(?<=[.!?])[{_CLOSERS}]*\\s+|(?<=[\u3002\uff01\uff1f])")
_QUESTION_MARKS = ("?", "\uff1f")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_LABEL = re.compile(
    r"^\s*\[?(user|human|assistant|model|ai|system|tool|tool result)(?:\s+[^:\]\n]{1,60})?\]?\s*:\s*", re.IGNORECASE
)
_MARKUP = re.compile(r"^\s*(?:#{1,6}\s|</?[a-z][\w-]*[^>]*>\s*$|```|---)")
_QUESTION_OPENERS = frozenset(
    "what who whom whose where when which why how do does did is are was were can could will would should"  # noqa: SIM905 - prose reads better
    " tell list show name describe explain".split()
)
_STOP_WORDS = (_QUESTION_OPENERS - {"name"}) | frozenset(
    "a an the of in on at to from for with by and or but not no so as if it its this that these those there"  # noqa: SIM905 - as above
    " be been being am has have had me you your yours please again now know remember recall said say told think about"
    " still also any some than then just really currently mine anything something ever".split()
)
_OWNERS = frozenset({"my", "our", "i", "we", "his", "her", "he", "she", "their", "they"})
_LASTING = frozenset(
    "my i i'm i've our we always never prefer prefers remember live lives work works name called decided must like"  # noqa: SIM905 - as above
    " likes".split()
)
_TELLING = _LASTING - {"i", "we", "must"}
_MARK = len("- \n")


@dataclass(frozen=True, slots=True)
class Source:
    """A sentence and who said it: `user`, `tool` or `system`."""

    text: str
    speaker: str


def sentences(text: str) -> Iterator[str]:
    """The sentences of `text`, line by line, without list marks, headings and lines of markup."""
    for line in text.split("\n"):
        if _MARKUP.match(line):
            continue
        for sentence in _SENTENCE_END.split(_BULLET.sub("", line)):
            if _WORD.search(sentence):
                yield sentence.strip()


def unlabelled(line: str) -> tuple[str, str]:
    """The speaker that a transcript line is labelled with, in lower case, and the rest; no label gives an empty one."""
    bare = _BULLET.sub("", line)
    found = _LABEL.match(bare)
    return (found[1].lower(), bare[found.end() :]) if found else ("", line)


def is_question(sentence: str) -> bool:
    """Whether a sentence asks: by its mark at the end or its first word."""
    if sentence.rstrip(f"{_CLOSERS} ").endswith(_QUESTION_MARKS):
        return True
    first = _WORD.search(sentence.lower())
    return first is not None and first[0] in _QUESTION_OPENERS


def best_source(question: str, sources: Iterable[Source]) -> Source | None:
    """The sentence that shares most words with the question, at least half of them. The first of equals wins."""
    asked, pairs = _words(question), _pairs(question)
    content = asked - _OWNERS
    best, best_score = None, 0.0
    for source in sources:
        words = _words(source.text)
        shared = len(content & words)
        # Whose it is and what stands beside it decide only between sentences about the same thing.
        score = shared + 0.1 * len(asked & words & _OWNERS) + 0.1 * len(pairs & _pairs(source.text))
        if 2 * shared >= len(content) and shared and score > best_score:
            best, best_score = source, score
    return best


def _pairs(text: str) -> set[tuple[str, str]]:
    words = _WORD.findall(text.lower())
    return set(itertools.pairwise(words))


def _words(text: str) -> set[str]:
    return {_stem(word) for word in _WORD.findall(text.lower().replace("\u2019", "'")) if word not in _STOP_WORDS}


def _stem(word: str) -> str:
    word = word.removesuffix("'s")
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def key_sentences(lines: Iterable[str], budget: int, earlier: Iterable[str] = ()) -> list[str]:
    """Statements of people and tools worth a place in a summary, oldest first, at most `budget` characters.

    `earlier` are the lines of a summary that is among them: what it tells for good is taken over first, up to two
    thirds of the budget, so that no number of summaries wears it away.
    """
    found = list(dict.fromkeys(_statements(lines)))
    known = frozenset(_statements(earlier))
    held = [n for n, sentence in enumerate(found) if sentence in known and _tells(sentence)]
    ranked = sorted(range(len(found)), key=lambda n: (not _tells(found[n]), not _lasts(found[n]), -n))
    kept = _fitting(found, held, budget * 2 // 3)
    rest = budget - sum(len(found[n]) + _MARK for n in kept)
    kept |= _fitting(found, [n for n in ranked if n not in kept], rest)
    return [found[n] for n in sorted(kept)]


def _fitting(found: Sequence[str], chosen: Iterable[int], budget: int) -> set[int]:
    """The first of the chosen that fit."""
    kept: set[int] = set()
    for n in chosen:
        budget -= len(found[n]) + _MARK
        if budget < 0:
            break
        kept.add(n)
    return kept


def lasting_sentences(lines: Iterable[str]) -> list[str]:
    """Statements that are about the people in the conversation and so stay true beyond it."""
    return [sentence for sentence in dict.fromkeys(_statements(lines)) if _lasts(sentence)]


def _statements(lines: Iterable[str]) -> Iterator[str]:
    speaker = ""
    for line in lines:
        label, rest = unlabelled(line)
        speaker = label or speaker
        if speaker in ("assistant", "model", "ai", "system"):
            continue
        yield from (sentence[:300] for sentence in sentences(rest) if not is_question(sentence))


def _lasts(sentence: str) -> bool:
    words: Sequence[str] = _WORD.findall(sentence.lower().replace("\u2019", "'"))
    return not _LASTING.isdisjoint(words)


def _tells(sentence: str) -> bool:
    """Whether a sentence names something for good, rather than that somebody did something."""
    words: Sequence[str] = _WORD.findall(sentence.lower().replace("\u2019", "'"))
    return not _TELLING.isdisjoint(words)
