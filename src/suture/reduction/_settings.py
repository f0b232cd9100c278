"""How output is reduced: every setting, its default, and what is refused."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, cast

from suture.errors import ConfigError
from suture.reduction._values import PathMaker, ToolReductionConfig
from suture.tokens import Counter, WholeCounter, is_incremental

__all__ = ["Rewriter", "Settings"]

Rewriter = Callable[[Any, Sequence[Any]], Sequence[Any] | Awaitable[Sequence[Any]]]
"""A turn with calls and the messages with its results, to the messages that take their place."""

_SIZES = (
    "max_length_for_trunc",
    "max_length_per_turn",
    "max_tokens_for_clear",
    "clear_down_to_tokens",
    "clear_retention_suffix_limit",
    "clear_at_least_tokens",
)
_FUNCTIONS = (
    "gen_trunc_offload_file_path",
    "gen_clear_offload_file_path",
    "clear_message_rewriter",
    "clear_post_process",
)
_NAMES = ("trunc_exclude_tools", "clear_exclude_tools")


@dataclass(frozen=True, kw_only=True, eq=False)
class Settings:
    """How tool output is reduced. `None` means "not given"; zero means zero.

    >>> Settings(max_tokens_for_clear=None).max_tokens_for_clear
    160000
    """

    skip_truncation: bool = False
    """Leave long output as it is when it comes."""
    skip_clear: bool = False
    """Leave old output as it is. Nothing is counted, then."""
    read_file_tool_name: str = "read_file"
    """The tool that notices tell the model to use."""
    root_dir: str | None = None
    """Where output is kept: `{root_dir}/trunc/{call_id}` and `{root_dir}/clear/{call_id}`."""
    gen_trunc_offload_file_path: PathMaker | None = None
    """Names the file of output that is truncated, in place of `root_dir`."""
    gen_clear_offload_file_path: PathMaker | None = None
    """Names the file of output that is cleared, in place of `root_dir`."""
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
    """Stop clearing, oldest first, when the history has so few tokens; `None` clears all that may be."""
    clear_retention_suffix_limit: int = 1
    """How many of the latest rounds with tool calls are never cleared."""
    clear_at_least_tokens: int = 0
    """Do nothing at all unless clearing frees so many tokens: it breaks the prompt cache."""
    clear_exclude_tools: Collection[str] = ()
    """Tools whose results are never cleared."""
    clear_message_rewriter: Rewriter | None = None
    """`(turn, results)` to the messages that take their place, before anything is cleared; `[]` removes them."""
    clear_post_process: Callable[[Any], Any] | None = None
    """Called with the state after something was cleared."""
    tool_config: Mapping[str, ToolReductionConfig] = field(default_factory=dict[str, ToolReductionConfig])
    """What holds for single tools."""

    def __post_init__(self) -> None:
        for item in fields(self):
            if getattr(self, item.name) is None and item.default is not None:
                given = dict[str, ToolReductionConfig]() if item.name == "tool_config" else item.default
                object.__setattr__(self, item.name, given)
        for name in _SIZES:
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 0):
                raise ConfigError(f"{name} must be an integer, 0 or more; found {value!r}")
        for name in ("skip_truncation", "skip_clear"):
            if type(getattr(self, name)) is not bool:
                raise ConfigError(f"{name} must be True or False, found {getattr(self, name)!r}")
        for name in _FUNCTIONS:
            value = getattr(self, name)
            if value is not None and not callable(value):
                raise ConfigError(f"{name} must be a function, found {type(value).__name__}")
        name: Any = self.read_file_tool_name
        if not isinstance(name, str) or not name:
            raise ConfigError(f"read_file_tool_name must be the name of a tool, found {name!r}")
        root: Any = self.root_dir
        if root is not None and not isinstance(root, str):
            raise ConfigError(f"root_dir must be a path, found {root!r}")
        if self.token_counter is not None:
            is_incremental(self.token_counter)  # refuses what is no counter
        self._check_tools()

    def _check_tools(self) -> None:
        for name in _NAMES:
            value = getattr(self, name)
            if isinstance(value, str) or not isinstance(value, Collection):
                raise ConfigError(f"{name} must be a list of tool names, found {value!r}")
            names = frozenset(cast("Collection[Any]", value))
            if not all(isinstance(each, str) for each in names):
                raise ConfigError(f"{name} must be a list of tool names, found {value!r}")
            object.__setattr__(self, name, names)
        if not isinstance(self.tool_config, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"tool_config maps names of tools to ToolReductionConfigs, found {self.tool_config!r}")
        for name, config in self.tool_config.items():
            if not isinstance(config, ToolReductionConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(f"tool_config[{name!r}] must be a ToolReductionConfig, found {type(config).__name__}")
        object.__setattr__(self, "tool_config", dict(self.tool_config))

    def config_of(self, name: str) -> ToolReductionConfig:
        """Return what holds for the tool `name`."""
        return self.tool_config.get(name, _DEFAULT)

    def truncates(self, name: str) -> bool:
        """Tell whether output of the tool `name` may be truncated: excluded, then skipped, then its handler."""
        config = self.config_of(name)
        if name in self.trunc_exclude_tools or name == self.read_file_tool_name:
            return False
        if config.skip_truncation is not None:
            return not config.skip_truncation
        return not self.skip_truncation or config.trunc_handler is not None

    def clears(self, name: str) -> bool:
        """Tell whether old results of the tool `name` may be cleared."""
        config = self.config_of(name)
        if name in self.clear_exclude_tools:
            return False
        if config.skip_clear is not None:
            return not config.skip_clear
        return not self.skip_clear or config.clear_handler is not None

    @property
    def truncates_any(self) -> bool:
        """Whether output of any tool may be truncated."""
        return not self.skip_truncation or any(map(self.truncates, self.tool_config))

    @property
    def clears_any(self) -> bool:
        """Whether old results of any tool may be cleared."""
        return not self.skip_clear or any(map(self.clears, self.tool_config))


_DEFAULT = ToolReductionConfig()
