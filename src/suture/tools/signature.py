"""The signature and docstring of a function: what the model fills in, what the run fills in, what is described."""

import functools
import inspect
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from types import FunctionType, MethodType, NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, NamedTuple, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

from suture.errors import ConfigError
from suture.messages import ToolArgument, ToolContext
from suture.tools.execution import RunContext

NOTHING: Any = inspect.Parameter.empty
"""Stands for a missing default or annotation."""

Namespaces: TypeAlias = tuple[dict[str, Any], dict[str, Any]]
"""Global and local names."""

_RUN_CONTEXT = r"""['"]?([\w.]+\.)?RunContext\b"""


class Signature(NamedTuple):
    """The parameters of a function by who fills them in, with resolved annotations, and the return annotation.

    The run fills in the `hidden` ones with its `RunContext` or the call's `ToolContext`. `raw` names the one that takes
    the arguments as they came, `positional` those that cannot be passed by name. `self` and `cls` are left out.
    """

    visible: tuple[inspect.Parameter, ...]
    hidden: tuple[inspect.Parameter, ...] = ()
    raw: str = ""
    positional: tuple[str, ...] = ()
    takes_options: bool = False
    returns: Any = Any


def read_signature(function: Callable[..., Any], tool: str, *, lenient: Container[str] = ()) -> Signature:
    """Read the signature of a function; refuse parameters that no model could fill in.

    The annotations of the names in `lenient` (which may include "return") need not be resolvable.
    """
    try:
        whole = inspect.signature(function)
    except (NameError, TypeError, ValueError) as error:
        raise ConfigError(f"tool {tool!r}: its signature cannot be read ({error}); wrap it in a function") from error
    parameters = list(whole.parameters.values())[is_method(function) :]
    filled_in = _partial_names(function)
    namespaces = _namespaces(function)
    visible: list[inspect.Parameter] = []
    hidden: list[inspect.Parameter] = []
    raw: list[str] = []
    for each in parameters:
        where = f"tool {tool!r}, parameter {each.name!r}"
        if each.kind is each.VAR_POSITIONAL:
            raise ConfigError(f"{where}: a model passes arguments by name; take a list instead of *{each.name}")
        if each.kind is each.VAR_KEYWORD or each.name in filled_in:
            continue
        hint = _resolve(each.annotation, namespaces, where, needed=each.name not in lenient)
        if kind := _hidden_kind(hint):
            optional = each.default is NOTHING and NoneType in _alternatives(hint)
            hidden.append(each.replace(annotation=kind, default=None if optional else each.default))
        elif _bare(hint) is ToolArgument:
            raw.append(each.name)
        else:
            visible.append(each.replace(annotation=Any if hint is object else hint))
    if raw and len(raw) + len(visible) > 1:
        raise ConfigError(f"tool {tool!r}: a function that takes a ToolArgument reads all arguments from it itself")
    where = f"tool {tool!r}, what it returns"
    return Signature(
        tuple(visible),
        tuple(hidden),
        "".join(raw),
        tuple(each.name for each in parameters if each.kind is each.POSITIONAL_ONLY),
        any(each.kind is each.VAR_KEYWORD for each in parameters),
        _resolve(whole.return_annotation, namespaces, where, needed="return" not in lenient),
    )


def is_method(function: Callable[..., Any]) -> bool:
    """Return whether this is a function of a class that takes the object, or the class, first."""
    if not isinstance(function, FunctionType):
        return False
    owner = function.__qualname__.rpartition(".")[0]
    if not owner or owner.endswith("<locals>"):
        return False
    return next(iter(inspect.signature(function).parameters), "") in {"self", "cls"}


def _partial_names(function: Any) -> set[str]:
    """Return the names that a partial fills in. They may be secrets, so the model neither sees nor changes them."""
    names: set[str] = set()
    while isinstance(function, functools.partial):
        partial = cast("functools.partial[Any]", function)
        names.update(partial.keywords)
        function = partial.func
    return names


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _alternatives(hint: Any) -> tuple[Any, ...]:
    hint = _bare(hint)
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _hidden_kind(hint: Any) -> type | None:
    """Return the class of the context that a parameter asks for, if any."""
    kinds = [get_origin(_bare(each)) or _bare(each) for each in _alternatives(hint) if each is not NoneType]
    return kinds[0] if kinds in ([RunContext], [ToolContext]) else None


def _resolve(annotation: Any, namespaces: Namespaces, where: str, *, needed: bool) -> Any:
    """Return the type of an annotation, which may be text."""
    if annotation is NOTHING:
        return Any
    holder = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(holder, *namespaces, include_extras=True)["it"]
    except Exception as error:
        # The context, or the type of its `deps`, may be imported only for type checkers.
        named = isinstance(annotation, str) and re.match(_RUN_CONTEXT, annotation)
        if named or get_origin(annotation) is RunContext:
            return RunContext
        if not needed:
            return Any
        raise ConfigError(
            f"{where}: the annotation {annotation!r} cannot be resolved ({error}); "
            "define or import what it names where the module can see it"
        ) from error


def origin_of(function: Any) -> Callable[..., Any]:
    """Return the function behind partials, bound methods, wrappers and callable objects."""
    while True:
        if isinstance(function, functools.partial):
            function = cast("functools.partial[Any]", function).func
        elif isinstance(function, MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif inspect.isroutine(function) or isinstance(function, type):
            return cast("Callable[..., Any]", function)
        else:
            function = type(function).__call__


def _namespaces(function: Callable[..., Any]) -> Namespaces:
    """Return the names that a function's annotations can use: those of its module, and of the scopes around it."""
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
        except ValueError:  # an empty cell
            continue
    return names, local


def _frames_around(origin: Callable[..., Any], names: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the local names of the functions and classes around the origin's definition, if they are running now."""
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


# --- docstrings ---------------------------------------------------------------------------------

_PARAMETERS = frozenset(
    ("args", "arguments", "parameters", "other parameters", "params", "keyword args", "keyword arguments")
)
_OTHERS = ("attribute", "example", "note", "raise", "reference", "return", "todo", "warn", "warning", "yield")
_SECTIONS = _PARAMETERS | {"see also", *_OTHERS, *(f"{name}s" for name in _OTHERS)}
_UNDERLINE = r"-{3,}|={3,}"
_HEADER = r"([A-Z][A-Za-z]*(?: [A-Za-z]+)?):"
_ENTRY = r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:(?:\s+(.*)|$)"
_FIELD = r":(\w+)(?:\s+[^:]*?(\w+))?\s*:\s*(.*)"
_FIELDS_OF_PARAMETERS = frozenset(("param", "parameter", "arg", "argument", "key", "keyword"))


class Docstring(NamedTuple):
    """The text for the model, and one text per parameter."""

    description: str
    parameters: dict[str, str]


def read_docstring(text: str | None) -> Docstring:
    """Read a docstring in Google's or NumPy's style, with `:param name:` fields, or without any of these.

    The description ends where the first section, field or `>>>` example begins.

    >>> read_docstring('''Search the docs.
    ...
    ...     Args:
    ...         query: What to look for,
    ...             in plain words.
    ... ''')
    Docstring(description='Search the docs.', parameters={'query': 'What to look for, in plain words.'})
    """
    text = (text or "").strip()
    # If the first line opens a section, the lines after it have the section's indentation, not the docstring's.
    lines = inspect.cleandoc(f"\n{text}" if _section(text.partition("\n")[0]) else text).splitlines()
    end = 0
    while end < len(lines) and not (_opens(lines, end) or re.match(f">>>|{_FIELD}", lines[end])):
        end += 1
    read = _numpy_parameters if end < len(lines) and _underlined(lines, end) else _parameters
    return Docstring("\n".join(lines[:end]).strip(), read(lines[end:]))


def _section(line: str) -> str:
    """Return the name of the section that this line opens, in lower case, or an empty text."""
    header = re.fullmatch(_HEADER, line.rstrip())
    name = header[1].lower() if header else ""
    return name if name in _SECTIONS else ""


def _underlined(lines: Sequence[str], place: int) -> str:
    """Return the name of the section that this line opens in NumPy's style, in lower case, or an empty text."""
    name = lines[place].strip().lower()
    below = lines[place + 1] if place + 1 < len(lines) else ""
    return name if name in _SECTIONS and re.fullmatch(_UNDERLINE, below.strip()) else ""


def _opens(lines: Sequence[str], place: int) -> str:
    return _section(lines[place]) or _underlined(lines, place)


def _numpy_parameters(lines: Sequence[str]) -> dict[str, str]:
    """Return what NumPy's sections say: lines `name : type`, several names with commas, each with its text below."""
    texts: dict[str, list[str]] = {}
    names: list[str] = []
    inside = False
    for place, line in enumerate(lines):
        section = _underlined(lines, place)
        if section:
            inside, names = section in _PARAMETERS, []
        elif not inside or not line.strip() or re.fullmatch(_UNDERLINE, line.strip()):
            continue
        elif line[0].isspace():
            for name in names:
                texts[name].append(line.strip())
        else:
            names = [name.strip().lstrip("*") for name in line.partition(":")[0].split(",")]
            texts.update({name: [] for name in names})
    return {name: " ".join(said) for name, said in texts.items()}


def _parameters(lines: Iterable[str]) -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    current: list[str] = []
    inside, depth = False, 0
    for line in filter(str.strip, lines):
        bare = line.strip()
        indent = len(line) - len(line.lstrip())
        if not indent:
            inside, depth, current = _section(line) in _PARAMETERS, 0, []
            entry = re.match(_FIELD, line)
            if entry and entry[1] in _FIELDS_OF_PARAMETERS and entry[2]:
                current, bare = texts.setdefault(entry[2], []), entry[3]
        elif inside:
            depth = depth or indent
            entry = re.fullmatch(_ENTRY, bare) if indent <= depth else None
            if entry:
                current, bare = texts.setdefault(entry[1], []), entry[2] or ""
        current.append(bare)
    return {name: " ".join(said).strip() for name, said in texts.items()}
