"""Running the examples of a page: a `text` block right behind a `python` block is what that block prints."""

import gc
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from tests.docs.pages import Block, blocks, name


def shown_output(block: Block | None) -> str:
    """Return what a page shows as the output of the block before."""
    return block.body if block is not None and block.info == "text" and not block.gap.strip() else ""


def run_python(page: Path, most: int | None = None) -> None:
    """Run the python blocks of a page in order, `most` of them, and compare what they print with what it shows."""
    found = list(blocks(page))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    programs = [pair for pair in zip(found, [*found[1:], None], strict=True) if pair[0].info == "python"]
    for block, following in programs[:most]:
        program = compile("\n" * (block.line - 1) + block.body, str(page), "exec")
        with redirect_stdout(StringIO()) as printed:
            exec(program, namespace)
        assert printed.getvalue() == shown_output(following), f"{name(page)}, line {block.line}"
    # An SDK's client that nobody closed begins to close itself where it is collected while a loop runs: not in ours.
    namespace.clear()
    gc.collect()
