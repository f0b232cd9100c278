"""What a docstring says about a function and about each of its parameters."""

import re
from collections.abc import Iterable
from inspect import cleandoc
from typing import NamedTuple

_PARAMETERS = frozenset(("args", "arguments", "parameters", "params", "keyword args", "keyword arguments"))
_OTHERS = ("attribute", "example", "note", "raise", "reference", "return", "todo", "warn", "warning", "yield")
_SECTIONS = _PARAMETERS | {"see also", *_OTHERS, *(f"{name}s" for name in _OTHERS)}
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
    ends = (place for place, line in enumerate(lines) if _section(line) or line.startswith(">>>") or _FIELD.match(line))
    end = next(ends, len(lines))
    return Docstring("\n".join(lines[:end]).strip(), _parameters(lines[end:]))


def _section(line: str) -> str:
    """Return the name of the section that this line opens, in small letters, or nothing."""
    header = _HEADER.fullmatch(line.rstrip())
    name = header[1].lower() if header else ""
    return name if name in _SECTIONS else ""


def _parameters(lines: Iterable[str]) -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    current: list[str] = []
    inside, depth = False, 0
    for line in filter(str.strip, lines):
        bare = line.strip()
        indent = len(line) - len(line.lstrip())
        if not indent:
            inside, depth, current = _section(line) in _PARAMETERS, 0, []
            entry = _FIELD.match(line)
            if entry and entry[1] in _FIELDS_OF_PARAMETERS and entry[2]:
                current, bare = texts.setdefault(entry[2], []), entry[3]
        elif inside:
            depth = depth or indent
            entry = _ENTRY.fullmatch(bare) if indent <= depth else None
            if entry:
                current, bare = texts.setdefault(entry[1], []), entry[2] or ""
        current.append(bare)
    return {name: " ".join(said).strip() for name, said in texts.items()}
