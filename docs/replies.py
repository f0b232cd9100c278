# ruff: noqa: INP001 - a program, not a package
"""Print docs/replies.md, made from the rows of tests/replies.

python docs/replies.py > docs/replies.md
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from tests.replies.row import Row, read_rows

HEAD = """\
<!-- Made by docs/replies.py from tests/replies/rows. Change those, not this page. -->

# Servers that were tried

Servers that speak like OpenAI, Anthropic, Gemini or Bedrock each speak a little differently, and gateways between them more so.
Here are {rows} replies from {makes} makes of servers, as public threads, pages and recordings show them: what was odd about each,
and where it was seen. In `tests/replies` every one is served byte for byte over HTTP to an agent, with the provider's own SDK in
between. A test holds that the agent gets what the server meant: text, calls, ids, the reason it ended, token counts, or an error
of the right kind that says what the server said. [Measured](replies-measured.md) says what other frameworks make of them.

| server | forms | replies | streams | with calls | errors |
|---|---|---:|---:|---:|---|
"""

ADD = """\
## Add a reply

Did a server send you something that Suture, or another program, did not understand? Copy a row in `tests/replies/rows`, the file
of that make, and change it: the bytes, where they were seen, and what a true reading gives. `tests/replies/README.md` names the
fields; leave out what you cannot know. Then

```sh
.venv/bin/pytest tests/replies -q
.venv/bin/python docs/replies.py > docs/replies.md
```

Cut long texts, and replace keys, names and ids of people.
"""

_KINDS = {
    "rate_limit": "rate limit",
    "overloaded": "overloaded",
    "server": "server",
    "auth": "key",
    "request": "request",
    "context_length": "too long",
    "content_filter": "filter",
    "cut": "cut",
    "slip": "the model's slip",
    None: "other",
}
"""What the kinds of errors are called here, in this order."""


def page() -> str:
    """Return the whole page."""
    rows = sorted(read_rows(), key=lambda row: row.make)
    makes = [(make, list(found)) for make, found in groupby(rows, key=lambda row: row.make)]
    head = HEAD.format(rows=len(rows), makes=len(makes))
    overview = [f"| [{make}](#{_anchor(make)}) | {_facts(found)} |" for make, found in makes]
    lists = [line for make, found in makes for line in _section(make, found)]
    return "\n".join([head + "\n".join(overview), "", ADD, *lists])


def _facts(rows: Sequence[Row]) -> str:
    kinds = Counter(row.error.kind for row in rows if row.error is not None)
    errors = ", ".join(f"{name} {kinds[kind]}" for kind, name in _KINDS.items() if kinds[kind])
    numbers = (len(rows), sum(row.streamed for row in rows), sum(bool(row.calls) for row in rows))
    return " | ".join([_codes({row.wire for row in rows}), *map(str, numbers), errors])


def _section(make: str, rows: Sequence[Row]) -> Iterator[str]:
    yield f"## {make}"
    yield ""
    yield from (f"- {row.id.replace('-', ' ')} ([{_source(row.source)[0]}]({_source(row.source)[1]}))" for row in rows)
    yield ""


def _source(source: str) -> tuple[str, str]:
    """Return what a source is called, and its address."""
    if source.startswith("https://"):
        return source.split("/")[2], source
    repository, _, path = source.partition(" ")
    if path:
        return f"{repository}, {path.rpartition('/')[2]}", f"https://github.com/{repository}/blob/HEAD/{path}"
    name, _, number = repository.partition("#")
    return source, f"https://github.com/{name}/issues/{number}"


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _anchor(make: str) -> str:
    return re.sub(r"[^\w-]", "", make.lower())


if __name__ == "__main__":
    sys.stdout.write(page())
