"""What is wrong with arguments, in words that tell a model what to mend."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from suture.tools._errors import ToolArgumentsError
from suture.tools._reader import clip

_MOST = 20
_PLACE = re.compile(r"(.*?)(?: - at `(.*)`)?", re.DOTALL)
_NAMED = re.compile(r"Object (missing required|contains unknown) field `(.*)`", re.DOTALL)
_JSON_NAMES: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
}

Check = Callable[[dict[str, msgspec.Raw]], Sequence[str]]


def refusal(text: str, check: Check, fallback: str) -> ToolArgumentsError:
    """Make the error for arguments that could not be read: not JSON, no object, or what `check` finds in it.

    >>> from suture.tools._problems import refusal
    >>> refusal("[1]", lambda given: [], "wrong").reason
    'the arguments must be one JSON object, got array'
    """
    try:
        given: Any = msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        return not_json(error)
    if type(given) is not dict:
        return ToolArgumentsError(f"the arguments must be one JSON object, got {json_name(given)}")
    problems = check(msgspec.json.decode(text, type=dict[str, msgspec.Raw])) or [fallback]
    more = [f"and {len(problems) - _MOST} more"] if len(problems) > _MOST else []
    return ToolArgumentsError(*map(clip, problems[:_MOST]), *more)


def json_name(value: object) -> str:
    """Say what JSON calls this kind of value.

    >>> from suture.tools._problems import json_name
    >>> json_name([]), json_name(None)
    ('array', 'null')
    """
    return _JSON_NAMES.get(type(value), "null")


def not_json(error: Exception) -> ToolArgumentsError:
    """Make the error for text that is no JSON.

    >>> from suture.tools._problems import not_json
    >>> not_json(ValueError("Input data was truncated")).reason
    'the arguments are not valid JSON: input data was truncated'
    """
    reason = (
        "nested too deeply" if isinstance(error, RecursionError) else str(error).removeprefix("JSON is malformed: ")
    )
    return ToolArgumentsError(clip(f"the arguments are not valid JSON: {reason[:1].lower()}{reason[1:]}"))


def missing(path: str) -> str:
    """Say that an argument is not there.

    >>> from suture.tools._problems import missing
    >>> missing("arguments.query")
    'arguments.query: missing'
    """
    return f"{path}: missing"


def unknown(path: str, known: Sequence[str]) -> str:
    """Say that there is no such argument, and which there are.

    >>> from suture.tools._problems import unknown
    >>> unknown("arguments.size", ["query", "limit"])
    'arguments.size: unknown; known: query, limit'
    """
    return f"{clip(path)}: unknown; known: {', '.join(known) or 'none, it takes no arguments'}"


def say(error: Exception, path: str, schema: Mapping[str, Any]) -> str:
    """Put msgspec's words about the value at `path`, of this schema, into ours.

    >>> import msgspec
    >>> from suture.tools._problems import say
    >>> say(msgspec.ValidationError("Expected `int`, got `str` - at `$.page`"), "arguments.range", {})
    'arguments.range.page: expected int, got str'
    """
    if not isinstance(error, msgspec.MsgspecError | RecursionError):
        return f"{path}: {type(error).__name__}: {error}"
    found = _PLACE.fullmatch(str(error))
    what, below = (found[1], found[2] or "") if found else (str(error), "")
    path = below.replace("$", path, 1) if below else path
    named = _NAMED.fullmatch(what)
    if named and named[1] == "missing required":
        return missing(f"{path}.{named[2]}")
    if named:
        return f"{path}.{named[2]}: unknown"
    what = what.replace("`", "")
    if what.startswith("Invalid enum value "):
        choices = _choices(schema, schema, re.findall(r"\.(\w+)|(\[)", below))
        if choices:
            what = f"Expected one of {', '.join(map(repr, choices))}, got {what.removeprefix('Invalid enum value ')}"
    return f"{path}: {what[:1].lower()}{what[1:]}"


def _choices(root: Mapping[str, Any], schema: Any, way: Sequence[tuple[str, str]]) -> Sequence[Any]:
    """Return the values that are allowed at the end of this way through a schema; none if it is not clear."""
    if not isinstance(schema, dict):
        return ()
    here = cast("dict[str, Any]", schema)
    if "$ref" in here:
        here = root.get("$defs", {}).get(str(here["$ref"]).rpartition("/")[2], {})
    if "anyOf" in here:
        found = (_choices(root, each, way) for each in here["anyOf"])
        return next((each for each in found if each), ())
    if not way:
        return here.get("enum", ())
    name = way[0][0]
    below = here.get("properties", {}).get(name) if name else here.get("items", here.get("additionalProperties"))
    return _choices(root, below, way[1:])
