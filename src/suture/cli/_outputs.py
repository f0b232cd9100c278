"""All that one command writes, and who is told about it: nothing is seen of any of it before all of it is there."""

import sys
from contextlib import ExitStack

from suture.cli._screen import Screen, screen_for
from suture.cli._streams import is_terminal
from suture.cli._write import Output, open_output

__all__ = ["Outputs"]


class Outputs:
    """The outputs of a command, in the order in which they will be seen. Those of a command that fails never are."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._all: list[Output] = []

    def open(self, path: str | None = None) -> Output:
        """Return one more; standard output for no path, and for `-`."""
        output = open_output(path)
        self._stack.callback(output.discard)
        self._all.append(output)
        return output

    def screen(self, output: Output | None = None) -> Screen:
        """Return a screen on standard output. In a pipe its lines are kept back, as those of `output`."""
        told = output or self.open()

        def write_line(line: str) -> None:
            told.write(f"{line}\n".encode(errors="backslashreplace"))

        return screen_for(sys.stdout, write_line)

    def screen_beside(self, history: str | None) -> Screen | None:
        """Return where a person is told what becomes of a history.

        That is standard output, if the history goes to a file, else standard error, if somebody looks at it.
        """
        if history is not None:
            return self.screen()
        return screen_for(sys.stderr) if is_terminal(sys.stderr) else None

    def publish(self) -> None:
        """Let everything be seen at once."""
        for output in self._all:
            output.finish()
        for output in self._all:
            output.publish()
