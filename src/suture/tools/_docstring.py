"""What a docstring says about a function and about each of its parameters."""

import re
from collections.abc import Iterable
from inspect import cleandoc
from typing import NamedTuple

_PARAMETERS = frozenset(("args", "arguments", "parameters", "params", "keyword args", "keyword arguments"))
_OTHERS = (
    "attribute",
    "example",
    "note",
    "raise",
    "reference",
    "return",
    "see also",
    "todo",
    "warn",
    "warning",
    "yield",
)
_SECTIONS = _PARAMETERS | {*_OTHERS, *(f"{name}s" for name in _OTHERS)}
_HEADER = re.compile(r"([A-Z][A-Za-z]*(?: [A-Za-z]+)?):")
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:(?:\s+(.*)|$)")
_FIELD = re.compile(r":(\w+)(?:\s+[^:]*?(\w+))?\s*:\s*(.*)")
_FIELDS_OF_PARAMETERS = frozenset(("param", "parameter", "arg", "argument", "key", "keyword"))


class Docstring(NamedTuple):
    """The text for the model, and one text per parameter."""

    description: str
    parameters: dict[str, str]


def read_docstring(text: str | None) -> Docstring:
    """Read a docstring in Google's style, with `:param name:` fields, or without either.

    The description ends where the first section, field or `>>>` example begins.

    >>> from suture.tools._docstring import read_docstring
    >>> read_docstring('''Search the docs.
    ...
    ...     Args:
    ...         query: What to look for,
    ...             in plain words.
    ... ''')
    Docstring(description='Search the docs.', parameters={'query': 'What to look for, in plain words.'})
    """
    text = (text or "").strip()
    # The indentation of what follows a first line is not that of the docstring if the first line opens a section.
    lines = cleandoc(f"\n{text}" if _section(text.partition("\n")[0]) else text).splitlines()
    end = next((place for place, line in enumerate(lines) if _ends_description(line)), len(lines))
    return Docstring("\n".join(lines[:end]).strip(), {**_google(lines[end:]), **_fields(lines[end:])})


def _ends_description(line: str) -> bool:
    return bool(_section(line)) or line.startswith(">>>") or _FIELD.match(line) is not None


def _section(line: str) -> str:
    """Return the name of the section that this line opens, in small letters, or nothing."""
    header = _HEADER.fullmatch(line.rstrip())
    name = header[1].lower() if header else ""
    return name if name in _SECTIONS else ""


def _google(lines: Iterable[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    inside = False
    depth = -1
    current: list[str] = []
    for line in lines:
        bare = line.strip()
        if not bare:
            continue
        indent = len(line) - len(line.lstrip())
        if not indent:
            inside, depth = _section(line) in _PARAMETERS, -1
            continue
        if not inside:
            continue
        depth = indent if depth < 0 else depth
        entry = _ENTRY.fullmatch(bare) if indent <= depth else None
        if entry:
            current = found.setdefault(entry[1], [])
            bare = entry[2] or ""
        current.append(bare)
    return {name: " ".join(said).strip() for name, said in found.items()}


def _fields(lines: Iterable[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        field = _FIELD.match(line)
        if field:
            of_parameter = field[1] in _FIELDS_OF_PARAMETERS and field[2]
            current = found.setdefault(field[2], []) if of_parameter else []
            current.append(field[3])
        elif line[:1].isspace():
            current.append(line.strip())
        else:
            current = []
    return {name: " ".join(said).strip() for name, said in found.items()}
