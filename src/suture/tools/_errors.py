"""What goes wrong before a tool's function is called: the model's arguments, or the caller's dependencies."""

from suture.errors import ConfigError, SutureError


class ToolArgumentsError(SutureError, ValueError):
    """The arguments that a model wrote for a tool do not fit; the function was not called.

    The text is for the model: it names every problem that was found, so that one more try can mend them all.

    >>> from suture.tools import ToolArgumentsError
    >>> ToolArgumentsError("arguments.limit: expected int, got str", "arguments.query: missing").problems
    ('arguments.limit: expected int, got str', 'arguments.query: missing')
    """

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        self.reason = "; ".join(problems)
        super().__init__(*problems)

    def __str__(self) -> str:
        return self.reason


class ToolDependencyError(ConfigError):
    """A tool asks for something that the run was not given; nothing the model could mend.

    >>> from suture.tools import ToolDependencyError
    >>> issubclass(ToolDependencyError, ConfigError)
    True
    """
