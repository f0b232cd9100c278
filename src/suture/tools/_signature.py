"""What a function takes and gives, read once from its signature: what the model fills in, and what it never sees."""

import functools
import inspect
from collections.abc import Callable, Container, Iterator
from types import FunctionType, MethodType, NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from suture.errors import ConfigError
from suture.messages import ToolArgument, ToolContext


class _Inject:
    """The mark of `Injected`."""

    def __repr__(self) -> str:
        return "INJECT"


INJECT = _Inject()
NOTHING: Any = inspect.Parameter.empty
"""Stands for a default or an annotation that is not there."""

Namespaces: TypeAlias = tuple[dict[str, Any], dict[str, Any]]
"""Global and local names."""

T = TypeVar("T")
Injected: TypeAlias = Annotated[T, INJECT]
"""`Injected[Database]` is a `Database` that the run passes in, of which the model knows nothing."""


class Parameter(NamedTuple):
    """A parameter that the model fills in."""

    name: str
    hint: Any
    default: Any

    @property
    def required(self) -> bool:
        """Whether the model must fill it in."""
        return self.default is NOTHING


class Hidden(NamedTuple):
    """A parameter that is filled in from the run: by the first dependency of one of `kinds`, or by the context."""

    name: str
    kinds: tuple[type, ...]
    default: Any


class Signature(NamedTuple):
    """All parameters of a function, by who fills them in.

    `raw` names the one parameter that takes the arguments unread. `positional` names those that cannot be passed
    by name, in order.
    """

    visible: tuple[Parameter, ...]
    hidden: tuple[Hidden, ...] = ()
    raw: str = ""
    positional: tuple[str, ...] = ()
    takes_options: bool = False


def read_signature(function: Callable[..., Any], tool: str, *, described: Container[str] = ()) -> Signature:
    """Read the signature of a function; refuse what no model could fill in.

    The types of parameters that are `described` elsewhere need not be known.

    >>> from suture.messages import ToolContext
    >>> from suture.tools._signature import read_signature
    >>> def search(query: str, context: ToolContext, limit: int = 3): ...
    >>> signature = read_signature(search, "search")
    >>> [parameter.name for parameter in signature.visible], [parameter.name for parameter in signature.hidden]
    (['query', 'limit'], ['context'])
    """
    parameters = _parameters(function, tool)
    namespaces = _namespaces(function)
    visible: list[Parameter] = []
    hidden: list[Hidden] = []
    raw: list[str] = []
    for each in parameters.values():
        where = f"tool {tool!r}, parameter {each.name!r}"
        if each.kind is each.VAR_POSITIONAL:
            raise ConfigError(f"{where}: a model passes arguments by name; take a list instead of *{each.name}")
        if each.kind is each.VAR_KEYWORD:
            continue
        hint = _hint(each, namespaces, where, described)
        kinds = _hidden_kinds(hint, where)
        if kinds:
            hidden.append(Hidden(each.name, kinds, _default(each, hint)))
        elif _bare(hint) is ToolArgument:
            raw.append(each.name)
        else:
            visible.append(Parameter(each.name, hint, each.default))
    if len(raw) + len(visible) > 1 and raw:
        raise ConfigError(f"tool {tool!r}: a function that takes a ToolArgument reads all arguments from it itself")
    return Signature(
        tuple(visible),
        tuple(hidden),
        "".join(raw),
        tuple(each.name for each in parameters.values() if each.kind is each.POSITIONAL_ONLY),
        any(each.kind is each.VAR_KEYWORD for each in parameters.values()),
    )


def _parameters(function: Callable[..., Any], tool: str) -> dict[str, inspect.Parameter]:
    try:
        parameters = dict(inspect.signature(function).parameters)
    except (NameError, TypeError, ValueError) as error:
        raise ConfigError(f"tool {tool!r}: its signature cannot be read ({error}); wrap it in a function") from error
    if isinstance(function, FunctionType):
        owner = function.__qualname__.rpartition(".")[0]
        first = next(iter(parameters.values()), None)
        if first and first.name == "self" and first.annotation is NOTHING and owner and not owner.endswith("<locals>"):
            raise ConfigError(f"tool {tool!r} is a method; make the tool from an object's: tool({owner}().{tool})")
    # What a partial fills in is settled, and may be a secret: the model neither sees it nor changes it.
    while isinstance(function, functools.partial):
        settled = cast("functools.partial[Any]", function)
        parameters = {name: each for name, each in parameters.items() if name not in settled.keywords}
        function = settled.func
    return parameters


def _hint(parameter: inspect.Parameter, namespaces: Namespaces, where: str, described: Container[str]) -> Any:
    if parameter.annotation is NOTHING:
        return Any
    try:
        hint = resolve(parameter.annotation, namespaces, where)
        return Any if hint is object else hint
    except ConfigError:
        if parameter.name in described:
            return Any
        raise


def _default(parameter: inspect.Parameter, hint: Any) -> Any:
    if parameter.default is NOTHING and NoneType in _members(_bare(hint)):
        return None
    return parameter.default


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _hidden_kinds(hint: Any, where: str) -> tuple[type, ...]:
    """Return the classes that a hidden parameter is one of, and nothing for a parameter that is not hidden."""
    members = _members(_bare(hint))
    wanted = tuple(_bare(each) for each in members if each is not NoneType)
    if wanted == (ToolContext,):
        return wanted
    if not any(note is INJECT for each in (hint, *members) for note in getattr(each, "__metadata__", ())):
        return ()
    kinds = tuple(get_origin(each) or each for each in wanted)
    try:
        isinstance(None, kinds)
    except TypeError as error:
        raise ConfigError(f"{where}: no dependency can be found for {hint}; Injected takes a class") from error
    return kinds


# --- annotations that are text ------------------------------------------------------------------


def origin_of(function: Any) -> Callable[..., Any]:
    """Return the function behind partials, bound methods, wrappers and objects that can be called.

    >>> from functools import partial
    >>> from suture.tools._signature import origin_of
    >>> def power(base, exponent): ...
    >>> origin_of(partial(power, exponent=2)) is power
    True
    """
    behind: Any = function
    while behind is not None:
        function, behind = behind, None
        if isinstance(function, functools.partial):
            behind = cast("functools.partial[Any]", function).func
        elif isinstance(function, MethodType):
            behind = function.__func__
        elif hasattr(function, "__wrapped__"):
            behind = function.__wrapped__
        elif not inspect.isroutine(function) and not isinstance(function, type):
            behind = type(function).__call__
    return cast("Callable[..., Any]", function)


def _namespaces(function: Callable[..., Any]) -> Namespaces:
    """Return what a function's annotations can name: its module's names, and those of where it was defined."""
    origin = origin_of(function)
    names: dict[str, Any] = getattr(origin, "__globals__", {})
    local: dict[str, Any] = {}
    for frame in reversed(list(_frames_around(origin, names))):
        local.update(frame)
    local.update({each.__name__: each for each in getattr(origin, "__type_params__", ())})
    code = getattr(origin, "__code__", None)
    for name, cell in zip(getattr(code, "co_freevars", ()), getattr(origin, "__closure__", None) or (), strict=False):
        try:
            local[name] = cell.cell_contents
        except ValueError:  # not filled yet
            continue
    return names, local


def _frames_around(origin: Callable[..., Any], names: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the local names of the functions and classes that the origin stands in, if they are running now."""
    owner = getattr(origin, "__qualname__", "").rpartition(".")[0]
    owners: set[str] = set()
    while owner:
        owners.add(owner)
        owner = owner.rpartition(".")[0]
    frame = inspect.currentframe() if owners else None
    while frame is not None:
        if frame.f_code.co_qualname in owners and frame.f_globals is names:
            yield frame.f_locals
        frame = frame.f_back


def resolve(annotation: Any, namespaces: Namespaces, where: str) -> Any:
    """Turn an annotation into the type it names, or say where one stands that names nothing.

    >>> from suture.tools._signature import resolve
    >>> resolve("list[int]", ({}, {}), "here")
    list[int]
    """
    holder = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(holder, *namespaces, include_extras=True)["it"]
    except Exception as error:
        raise ConfigError(
            f"{where}: the annotation {annotation!r} cannot be resolved ({error}); "
            "define or import what it names where the module can see it"
        ) from error


def return_hint(function: Callable[..., Any], tool: str) -> Any:
    """Return what a function says it returns, `Any` if it does not say.

    >>> from suture.tools._signature import return_hint
    >>> def search(query: str) -> "list[str]": ...
    >>> return_hint(search, "search")
    list[str]
    """
    annotation = inspect.signature(function).return_annotation
    if annotation is NOTHING:
        return Any
    return resolve(annotation, _namespaces(function), f"tool {tool!r}, what it returns")
