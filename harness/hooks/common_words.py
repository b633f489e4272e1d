"""Words that say nothing of what a directive is about, and words that point at what was said before.

In a dozen languages, and only a beginning: both can be replaced where they are used.
"""

from __future__ import annotations

__all__ = ["COMMON_WORDS", "REFERENCES"]

REFERENCES: tuple[str, ...] = (
    "that", "it", "again", "the same", "previous", "above", "this one", "continue", "go on", "those", "them",
    "das", "nochmal", "noch einmal", "weiter", "dasselbe", "vorherige", "oben",
    "ça", "cela", "encore", "continuez", "le même", "la même", "précédent",
    "eso", "otra vez", "lo mismo", "anterior", "continúa", "sigue",
    "isso", "de novo", "o mesmo", "questo", "quello", "ancora", "di nuovo", "lo stesso",
    "это", "этого", "ещё раз", "то же", "продолжай", "дальше",
    "这个", "那个", "它", "继续", "再", "上面", "刚才", "之前",
    "それ", "これ", "もう一度", "続け", "さっき", "同じ",
    "그것", "이것", "다시", "계속", "같은", "아까",
)  # fmt: skip
"""Words and phrases by which a directive points at the turn before it."""

_COMMON = (
    "a about all also am an and any are as at be been but by can could did do does for from get give had has have he",
    "her here him his how i if in into is it its just know let like make me more my no not now of on one or our out",
    "please say said see she should show so some tell than thank thanks that the their them then there these they",
    "this those to too up us use was we were what when where which who why will with would yes you your",
    "aber als auch auf aus bei bin bist bitte da das dass dein dem den der des die dir du ein eine einen er es für",
    "hat ich ihr im in ist kann mein mich mir mit nach nicht noch nur oder sein sie sind so über um und uns von war",
    "was welche wer wie wir wird wo zu zum zur",
    "au aux avec ce cette dans de des du elle en est et il je la le les leur ma mais me moi mon ne nous on ou où par",
    "pas pour que quel quelle qui quoi sa se ses son sont sur ton tu un une vous",
    "al como con cuál de del donde dónde el ella en era es esta este fue hay la las lo los más mi muy no nos o para",
    "pero por que qué se ser si sobre su sus te tu un una y ya yo",
    "ao com como da do dos e ela ele em eu foi isso mais meu minha na não nos o os ou para por qual quando se sua um",
    "uma você",
    "che chi ci come con cosa da dei del della di e gli ha ho i il io la le mi mia mio nel non per più quale sono su",
    "ti un una",
    "а в во вы где для до его ее её же за и из или как какая какой кто мне мы на не но о он она они от по при с со так",  # noqa: RUF001 (Russian)
    "там ты у что это я",  # noqa: RUF001 (Russian)
)
COMMON_WORDS: frozenset[str] = frozenset(word for words in _COMMON for word in words.split())
"""Words that a directive is not searched by."""
