"""What a handler is given and gives back, and what was saved where."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from hashlib import sha256
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from suture.messages import ToolArgument, ToolContext, ToolResult

__all__ = [
    "NOTHING",
    "ClearHandler",
    "ClearResult",
    "Ledger",
    "PathMaker",
    "Saved",
    "ToolDetail",
    "ToolReductionConfig",
    "TruncHandler",
    "TruncResult",
    "Writer",
    "digest_of",
]


class Writer(Protocol):
    """The least that output can be saved with: `write(path, content)`, plain or async.

    >>> from suture.stores import MemoryBackend
    >>> writer: Writer = MemoryBackend()
    """

    def write(self, path: str, content: str, /) -> Any:
        """Keep `content` under `path`."""


class ToolDetail(Struct, frozen=True, kw_only=True):
    """One tool call with what came of it: `tool_result`, or `stream_tool_result` while a tool is streaming.

    >>> detail = ToolDetail(tool_context=ToolContext("search", "call_1"), tool_argument=ToolArgument("{}"))
    >>> detail.tool_context.call_id
    'call_1'
    """

    tool_context: ToolContext
    tool_argument: ToolArgument
    tool_result: ToolResult | None = None
    stream_tool_result: AsyncIterator[ToolResult] | None = None


class TruncResult(Struct, frozen=True, kw_only=True):
    """What a `trunc_handler` decides about output that has just come.

    With `need_trunc` it gives the result to use instead: `tool_result`, or `stream_tool_result` for a streaming
    tool. With `need_offload` it says what is to be saved where.

    >>> TruncResult(need_trunc=False).need_offload
    False
    """

    need_trunc: bool = False
    tool_result: ToolResult | None = None
    stream_tool_result: AsyncIterator[ToolResult] | None = None
    need_offload: bool = False
    offload_file_path: str = ""
    offload_content: str = ""


class ClearResult(Struct, frozen=True, kw_only=True):
    """What a `clear_handler` decides about an old call: the arguments and the result to keep in its place.

    `tool_argument=None` leaves the arguments as they are.

    >>> ClearResult(need_clear=False).need_offload
    False
    """

    need_clear: bool = False
    tool_argument: ToolArgument | None = None
    tool_result: ToolResult | None = None
    need_offload: bool = False
    offload_file_path: str = ""
    offload_content: str = ""


TruncHandler: TypeAlias = Callable[[ToolDetail], TruncResult | Awaitable[TruncResult]]
ClearHandler: TypeAlias = Callable[[ToolDetail], ClearResult | Awaitable[ClearResult]]
PathMaker: TypeAlias = Callable[[ToolDetail], str | Awaitable[str]]


class ToolReductionConfig(Struct, frozen=True, kw_only=True):
    """What holds for one tool: it goes before what holds for all, and `None` leaves that as it is.

    A flag of the tool's own comes first, then its handler, then the default handler, with the tool's backend.

    >>> ToolReductionConfig(skip_clear=True).clear_handler is None
    True
    """

    backend: Writer | None = None
    skip_truncation: bool | None = None
    trunc_handler: TruncHandler | None = None
    skip_clear: bool | None = None
    clear_handler: ClearHandler | None = None


class Saved(Struct, frozen=True):
    """Output that was saved: where, of which call, in which phase, and how many characters.

    >>> Saved("/run/trunc/call_1", "call_1", "search", "trunc", 80_000).path
    '/run/trunc/call_1'
    """

    path: str
    call_id: str = ""
    name: str = ""
    phase: str = "clear"
    length: int = 0
    digest: str = ""
    """Of its content, where it was at hand as a whole."""


class Ledger(Struct, frozen=True):
    """What a history's messages cannot say themselves: what of it was saved, and which rounds are done.

    Native messages carry this in `extra`; for all others it is kept beside the history.

    >>> Ledger.of(Ledger((Saved("/run/clear/a"),)).to_dict()).saved[0].path
    '/run/clear/a'
    """

    saved: tuple[Saved, ...] = ()
    rounds: frozenset[str] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "saved": [[getattr(item, field) for field in Saved.__struct_fields__] for item in self.saved],
            "rounds": sorted(self.rounds),
        }

    @staticmethod
    def of(data: Mapping[str, Any] | None) -> "Ledger":
        """Return what `to_dict` made `data` of; `None` is an empty one."""
        if not data:
            return NOTHING
        return Ledger(tuple([Saved(*item) for item in data["saved"]]), frozenset(data["rounds"]))

    def find(self, call_id: str, content: str) -> Saved | None:
        """Return what was saved of a call, if just this content was: a turn that failed may have come so far."""
        mine = [saved for saved in self.saved if saved.call_id == call_id and saved.length == len(content)]
        digest = digest_of(content) if mine else ""
        return next((saved for saved in mine if saved.digest == digest), None)

    def with_saved(self, *saved: Saved) -> "Ledger":
        """Return it with more that was saved."""
        return Ledger((*self.saved, *saved), self.rounds)


def digest_of(content: str) -> str:
    """Return what output is known by.

    >>> digest_of("42")
    '73475cb40a568e8d'
    """
    return sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


NOTHING = Ledger()
