"""Priority 50: a tool result that is too large is shown with its beginning and its end, and kept whole.

What the model sees is what the ledger and the state hold too. The whole text lies beside the ledger,
and the model reads on in it with the file tools.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from harness.errors import ConfigError
from harness.filesystem import AbstractFilesystem
from harness.filesystem.treefs import TreeFilesystem
from harness.hooks.events import PostActing
from harness.messages import Block, Msg, TextBlock, ToolResult
from harness.models.base import Model
from harness.models.tokens import estimate_tokens
from harness.sessions import SessionTree
from harness.sessions.tree.results import keep_result
from harness.sessions.view.metering import window_of

__all__ = ["ToolResultEvictionConfig", "ToolResultEvictionHook"]

READERS = frozenset(
    {
        "glob_files", "grep_files", "list_files", "memory_get", "memory_search", "read_file", "recall",
        "session_history", "session_list", "session_search",
    }
)  # fmt: skip
"""Tools whose results can be asked for again, in smaller parts: those are cut, but not kept once more."""
_SHARE_OF_WINDOW = 4
_ALWAYS_FITS = 1_000


@dataclass(frozen=True, slots=True)
class ToolResultEvictionConfig:
    """When a result is too large.

    max_chars      characters of text a result may have; where the model's window is known, also at most a quarter of it
    preview_chars  how much of the beginning, and of the end, is shown of a larger one
    excluded       tools whose results stay as they are, whatever their size

    Raises `ConfigError`.
    """

    max_chars: int = 80_000
    preview_chars: int = 2_000
    excluded: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.max_chars < 1_000 or not 0 < self.preview_chars <= self.max_chars // 2:
            raise ConfigError(
                "tool_result_eviction: max_chars must be 1 000 or more, and preview_chars between 1 and half of it"
            )


class ToolResultEvictionHook:
    """Cuts large results as they come in. Pictures and other media in them are stored by reference anyway."""

    priority = 50
    events = (PostActing,)

    def __init__(self, config: ToolResultEvictionConfig | None = None, own_tools: Set[str] = frozenset()) -> None:
        self.config = config or ToolResultEvictionConfig()
        self._readers = READERS - own_tools  # a user's own tool of such a name is any tool: its results are kept

    async def on_event(self, event: PostActing) -> PostActing | None:
        """The event with a shorter result, where it was too large."""
        name = event.tool_use.name
        tree = event.scope.get(SessionTree)
        text = event.result.text
        if name in self.config.excluded or len(text) <= _ALWAYS_FITS:
            return None
        limit = self._limit(event, tree, text)
        if len(text) <= limit:
            return None
        if name in self._readers:
            return event.change(result=_with_text(event.result, _first_part(text, limit)))
        if not isinstance(event.scope.get(AbstractFilesystem), TreeFilesystem):  # type: ignore[type-abstract]  # looked up by its base class
            return None  # a place of the user's own, in which nothing can be laid over: better whole than out of reach
        return event.change(result=self._evicted(event, tree, min(self.config.preview_chars, limit // 3)))

    def _limit(self, event: PostActing, tree: SessionTree, text: str) -> int:
        """Characters of this text that may be shown."""
        model = event.scope.find(Model)  # type: ignore[type-abstract]  # looked up by its protocol
        window = window_of(tree.path(), model.provider, model.name, model.context_window) if model else None
        if window is None:
            return self.config.max_chars
        tokens = estimate_tokens(text)
        share = len(text) * (window // _SHARE_OF_WINDOW) // max(tokens, 1)
        return min(self.config.max_chars, max(share, 600))

    @staticmethod
    def _evicted(event: PostActing, tree: SessionTree, preview: int) -> ToolResult:
        call = event.tool_use
        result = _as_stored(event.result, tree)
        text = result.text
        path = keep_result(tree, call.id, call.name, text, request=event.request_id)
        note = (
            f"[{len(text) - 2 * preview} of {len(text)} characters are left out here. The whole result of call "
            f"{call.id} is the file {path} ({len(text.splitlines())} lines): read_file shows it in parts, "
            "grep_files finds lines in it]"
        )
        shown = f"{text[:preview]}\n\n{note}\n\n{text[-preview:]}"
        return _with_text(result, shown).model_copy(update={"evicted": {"path": path, "chars": len(text)}})


def _as_stored(result: ToolResult, tree: SessionTree) -> ToolResult:
    """The result without what must not be stored, and behind the text edge: so it is kept."""
    message = Msg.tool(result).cleaned()
    stored = Msg.from_dict(dict(tree.redacted(message.to_dict())))
    [block] = stored.tool_results
    return block.model_copy(update={"content": tuple(_media_kept(block.content, result.content))})


def _media_kept(stored: tuple[Block, ...], given: tuple[Block, ...]) -> list[Block]:
    """Media as they came in, with their bytes; everything else as it is stored."""
    if len(stored) != len(given):
        return [*stored]
    return [was if hasattr(was, "media") else now for now, was in zip(stored, given, strict=True)]


def _with_text(result: ToolResult, text: str) -> ToolResult:
    """The result with one text in place of all its texts."""
    others = [block for block in result.content if not isinstance(block, TextBlock)]
    return result.model_copy(update={"content": (TextBlock(text=text), *others)})


def _first_part(text: str, limit: int) -> str:
    """The beginning, as whole lines where there are some, and how to see the rest."""
    end = text.rfind("\n", 0, limit) + 1 or limit
    shown = text[:end]
    return (
        f"{shown}\n[cut: {end} of {len(text)} characters ({shown.count(chr(10))} lines) are shown; "
        "ask for a smaller part, as with limit and column of read_file]"
    )
