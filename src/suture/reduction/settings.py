"""The settings of a reduction with their defaults and checks, and the values that handlers take and return."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, TypeAlias, cast

from msgspec import Struct

from suture.errors import ConfigError
from suture.messages import ToolArgument, ToolContext, ToolResult
from suture.tokens import CharacterCounter, Counter, WholeCounter, is_incremental

READ_EARLIER = "read_earlier"
"""The name of the tool that reads what a compaction saved, if there is another `read_file`."""


class Writer(Protocol):
    """The least that a backend needs: `write(path, content)`, plain or async.

    >>> from suture.stores import MemoryBackend
    >>> writer: Writer = MemoryBackend()
    """

    def write(self, path: str, content: str, /) -> Any:
        """Keep `content` under `path`."""


class ToolDetail(Struct, frozen=True, kw_only=True):
    """One tool call with its `tool_result`, or with `stream_tool_result` while the tool is streaming.

    >>> detail = ToolDetail(tool_context=ToolContext("search", "call_1"), tool_argument=ToolArgument("{}"))
    >>> detail.tool_context.call_id
    'call_1'
    """

    tool_context: ToolContext
    tool_argument: ToolArgument
    tool_result: ToolResult | None = None
    stream_tool_result: AsyncIterator[ToolResult] | None = None


class TruncResult(Struct, frozen=True, kw_only=True):
    """The decision of a `trunc_handler` about new output.

    With `need_trunc` it has the result to use instead: `tool_result`, or `stream_tool_result` for a streaming
    tool. With `need_offload` it says what to save under which path.

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
    """The decision of a `clear_handler` about an old call: the arguments and the result that replace its own.

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
"""Decides about new output, instead of the default."""
ClearHandler: TypeAlias = Callable[[ToolDetail], ClearResult | Awaitable[ClearResult]]
"""Decides about an old call, instead of the default."""
PathMaker: TypeAlias = Callable[[ToolDetail], str | Awaitable[str]]
"""Returns the path that output is saved under."""


class ToolReductionConfig(Struct, frozen=True, kw_only=True):
    """Settings for one tool. They override the general ones; `None` keeps the general one.

    A flag of the tool comes first, then its handler, then the default handler, with the tool's backend.

    >>> ToolReductionConfig(skip_clear=True).clear_handler is None
    True
    """

    backend: Writer | None = None
    skip_truncation: bool | None = None
    trunc_handler: TruncHandler | None = None
    skip_clear: bool | None = None
    clear_handler: ClearHandler | None = None


Rewriter = Callable[[Any, Sequence[Any]], Sequence[Any] | Awaitable[Sequence[Any]]]
"""Takes a turn with calls and the messages with its results; returns the messages that replace them."""


def _is_size(value: Any) -> bool:
    return type(value) is int and value >= 0


def _are_names(value: Any) -> bool:
    if isinstance(value, str) or not isinstance(value, Collection):
        return False
    return all(isinstance(each, str) for each in cast("Collection[Any]", value))


_CHECKS: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    int: ("an integer, 0 or more", _is_size),
    int | None: ("an integer, 0 or more", _is_size),
    bool: ("True or False", lambda value: type(value) is bool),
    str: ("the name of a tool", lambda value: isinstance(value, str) and bool(value)),
    str | None: ("a path", lambda value: isinstance(value, str)),
    Collection[str]: ("a list of tool names", _are_names),
    Counter | WholeCounter | None: ("a counter", lambda value: is_incremental(value) or True),  # it raises by itself
    Mapping[str, ToolReductionConfig]: ("a mapping of tool names", lambda value: isinstance(value, Mapping)),
}
"""By type of a setting, its description for errors and its check; all other settings are functions."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Settings:
    """How tool output is reduced. `None` means "not given"; zero means zero.

    >>> Settings(max_tokens_for_clear=None).max_tokens_for_clear
    160000
    """

    skip_truncation: bool = False
    """Leave long output as it is when it comes."""
    skip_clear: bool = False
    """Leave old output as it is, and count nothing."""
    read_file_tool_name: str = "read_file"
    """The reading tool that notices name."""
    root_dir: str | None = None
    """The root of the paths of saved output: `{root_dir}/trunc/{call_id}` and `{root_dir}/clear/{call_id}`."""
    gen_trunc_offload_file_path: PathMaker | None = None
    """Returns the path of truncated output, instead of `root_dir`."""
    gen_clear_offload_file_path: PathMaker | None = None
    """Returns the path of cleared output, instead of `root_dir`."""
    max_length_for_trunc: int = 50_000
    """How many characters of text one result may have."""
    max_length_per_turn: int = 200_000
    """How many characters of text the parallel results of one turn may have together."""
    trunc_exclude_tools: Collection[str] = ()
    """Tools whose output is never truncated."""
    token_counter: Counter | WholeCounter | None = None
    """Counts tokens: an object with `count(message)`, or a function `(messages, tool_infos)`. Characters / 4."""
    max_tokens_for_clear: int = 160_000
    """Old results are cleared when the history has more tokens than this."""
    clear_down_to_tokens: int | None = None
    """Clear only the oldest, until the history has this many tokens; `None` clears everything allowed."""
    clear_retention_suffix_limit: int = 1
    """How many of the latest rounds with tool calls are never cleared."""
    clear_at_least_tokens: int = 0
    """Do nothing unless clearing frees this many tokens, because it breaks the prompt cache."""
    clear_exclude_tools: Collection[str] = ()
    """Tools whose results are never cleared."""
    clear_message_rewriter: Rewriter | None = None
    """`(turn, results)` to the messages that take their place, before anything is cleared; `[]` removes them."""
    clear_post_process: Callable[[Any], Any] | None = None
    """Called with the state after something was cleared."""
    tool_config: Mapping[str, ToolReductionConfig] = field(default_factory=dict[str, ToolReductionConfig])
    """Settings for single tools."""

    def __post_init__(self) -> None:
        for item in fields(self):
            if getattr(self, item.name) is None and item.default is not None:
                default = dict[str, ToolReductionConfig]() if item.name == "tool_config" else item.default
                object.__setattr__(self, item.name, default)
        for item in fields(Settings):
            value: Any = getattr(self, item.name)
            what, is_right = _CHECKS.get(item.type, ("a function", callable))
            if value is not None and not is_right(value):
                raise ConfigError(f"{item.name} must be {what}, found {value!r}")
        for name, config in self.tool_config.items():
            if not isinstance(config, ToolReductionConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(f"tool_config[{name!r}] must be a ToolReductionConfig, found {type(config).__name__}")
        for name in ("trunc_exclude_tools", "clear_exclude_tools"):
            object.__setattr__(self, name, frozenset(getattr(self, name)))
        object.__setattr__(self, "tool_config", dict(self.tool_config))

    @property
    def measure(self) -> Callable[[str], int]:
        """The function that counts the tokens of a text: the counter's, if it has one, else characters / 4."""
        return getattr(self.token_counter, "count_text", CharacterCounter().count_text)

    def config_of(self, name: str) -> ToolReductionConfig:
        """Return the settings for the tool `name`."""
        return self.tool_config.get(name, _DEFAULT)

    def truncates(self, name: str) -> bool:
        """Return whether output of the tool `name` may be truncated: excluded, then skipped, then its handler."""
        config = self.config_of(name)
        if name in self.trunc_exclude_tools or name in {self.read_file_tool_name, READ_EARLIER}:
            return False
        is_skipped = self.skip_truncation and config.trunc_handler is None
        return not (is_skipped if config.skip_truncation is None else config.skip_truncation)

    def clears(self, name: str) -> bool:
        """Return whether old results of the tool `name` may be cleared."""
        config = self.config_of(name)
        is_skipped = self.skip_clear and config.clear_handler is None
        return name not in self.clear_exclude_tools and not (
            is_skipped if config.skip_clear is None else config.skip_clear
        )

    @property
    def truncates_any(self) -> bool:
        """Whether output of any tool may be truncated."""
        return not self.skip_truncation or any(map(self.truncates, self.tool_config))

    @property
    def clears_any(self) -> bool:
        """Whether old results of any tool may be cleared."""
        return not self.skip_clear or any(map(self.clears, self.tool_config))


_DEFAULT = ToolReductionConfig()
