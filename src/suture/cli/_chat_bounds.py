"""What a tool or a model cannot do to a chat: end its program, or say what can neither be sent nor kept."""

from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from suture.cli._refusal import told
from suture.kernel import ChatModelAgentMiddleware, EnhancedStreamableEndpoint, Model, ModelContext, ModelWrapper
from suture.messages import ToolArgument, ToolContext, ToolResult
from suture.models import closing

__all__ = ["Bounds", "clean"]


def clean(value: Any) -> Any:
    r"""Return a value whose texts are Unicode: half a surrogate pair is U+FFFD, and two halves are their letter.

    >>> clean(["half \ud83d", "two halves \ud83d\ude42"])
    ['half �', 'two halves 🙂']
    """
    if isinstance(value, str):
        return _clean_text(value)
    if isinstance(value, Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        made = {name: clean(field) for name, field in fields.items()}
        changed = {name: field for name, field in made.items() if field is not fields[name]}
        return replace(value, **changed) if changed else value
    if isinstance(value, list | tuple):
        items = cast("list[Any] | tuple[Any, ...]", value)
        cleaned = [clean(item) for item in items]
        same = all(new is old for new, old in zip(cleaned, items, strict=True))
        return items if same else tuple(cleaned) if isinstance(items, tuple) else cleaned
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value)
        parts = {clean(key): clean(item) for key, item in pairs.items()}
        same = all(key in pairs and pairs[key] is item for key, item in parts.items())
        return pairs if same and len(parts) == len(pairs) else parts
    return value


class Bounds(ChatModelAgentMiddleware[Any]):
    """Makes an error of what would end the program, and Unicode of what tools and models say.

    >>> isinstance(Bounds(), ChatModelAgentMiddleware)
    True
    """

    def wrap_model(self, model: Model[Any], model_context: ModelContext, /) -> Model[Any]:
        """Hold the model to it."""
        return _Bounded(model)

    def wrap_tool_call(
        self, endpoint: EnhancedStreamableEndpoint, context: ToolContext, /
    ) -> EnhancedStreamableEndpoint:
        """Hold a tool to it."""

        def call(argument: ToolArgument, /, *args: Any, **options: Any) -> AsyncIterator[ToolResult]:
            return _hold(partial(endpoint, argument, *args, **options))

        return call


class _Bounded(ModelWrapper[Any]):
    def stream(self, request: Any, /) -> AsyncIterator[Any]:
        return _hold(partial(self.inner.stream, request))


def _hold(begin: Callable[[], AsyncIterator[Any]]) -> AsyncIterator[Any]:
    with _survived():
        stream = begin()
    return _held(stream) if hasattr(stream, "__aiter__") else stream  # the kernel says what is wrong with it


async def _held(stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
    with _survived():
        async with closing(stream) as pieces:
            async for piece in pieces:
                yield clean(piece)


@contextmanager
def _survived() -> Generator[None]:
    """The signals of this process are told to the main thread: here, these are what somebody's code raised."""
    try:
        yield
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"it tried to end the program ({told(error)})") from error


def _clean_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
