"""Somebody who has a session open while it grows, and does with each page what `page` says."""

from pathlib import Path

from harness.transcripts import Page, Turn, page, read

CAP = 20_000


class Follower:
    """The turns that are there for somebody who began at the end, by their keys."""

    def __init__(self, path: Path, window: int = 1024 * 1024) -> None:
        self.path = path
        self.window = window
        self.page = page(path, window=window)
        self.turns = {turn.key: turn for turn in self.page.turns}
        self.start = self.page.start

    def look(self) -> Page:
        """Ask once whether there is something new."""
        self.page = here = page(self.path, where="after", cursor=self.page.after, window=self.window)
        stays = {} if here.gap else {key: turn for key, turn in self.turns.items() if turn.offset < here.start}
        self.start = here.start if here.gap else min(self.start, here.start)
        self.turns = stays | {turn.key: turn for turn in here.turns}
        return here

    @property
    def texts(self) -> dict[str, str]:
        """What is said, by keys."""
        return {key: turn.text for key, turn in self.turns.items()}


def told_anew(path: Path, start: int = 0) -> dict[str, Turn]:
    """What a new reader of the whole gets of the lines from `start` on."""
    return {turn.key: turn for turn in read(path, cap=CAP).turns if turn.offset >= start}
