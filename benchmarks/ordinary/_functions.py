"""What people hand in as a tool, and how models call it."""

import functools
from collections.abc import AsyncIterator, Callable
from typing import Any

from _case import RAN, Case, Facts, answer, call_then_text
from _server import Answer, Call, Reply

__all__ = ["CASES", "TITLE"]

TITLE = "Functions as tools"


def plain() -> str:
    """Do it."""
    RAN.append(None)
    return "well done"


def undocumented(x: int) -> str:
    RAN.append(x)
    return "well done"


def documented(x: int) -> str:
    """Do it."""
    RAN.append(x)
    return "well done"


async def waiting(x: int) -> str:
    """Do it."""
    RAN.append(x)
    return "well done"


async def yielding(x: int) -> AsyncIterator[str]:
    """Do it."""
    RAN.append(x)
    yield "well "
    yield "done"


@functools.lru_cache
def cached(x: int) -> str:
    """Do it."""
    RAN.append(x)
    return "well done"


def any_names(x: int, **more: int) -> str:
    """Do it."""
    RAN.append((x, more))
    return "well done"


def only_positions(x: int, /, y: int) -> str:
    """Do it."""
    RAN.append((x, y))
    return "well done"


def named_like_pydantic(schema: str, json: str, copy: str) -> str:
    """Do it."""
    RAN.append((schema, json, copy))
    return "well done"


def failing(x: int) -> str:
    """Do it."""
    RAN.append(x)
    raise ValueError("out of stock")


def multiply(x: int, y: int) -> str:
    """Do it."""
    RAN.append((x, y))
    return "well done"


class Shop:
    """A thing with a method."""

    def sell(self, x: int) -> str:
        """Do it."""
        RAN.append(x)
        return "well done"

    def __call__(self, x: int) -> str:
        """Do it."""
        RAN.append(x)
        return "well done"


def _times(number: int) -> Callable[[Facts], str]:
    def judge(facts: Facts) -> str:
        if facts.error is None and len(facts.ran) != number:
            return f"the tool ran {len(facts.ran)} times"
        return answer("done")(facts)

    return judge


def _named(arguments: str) -> Answer:
    """Call the tool by the name that the request gives it."""

    def reply(body: dict[str, Any], number: int) -> Reply:
        name = body["tools"][0]["function"]["name"]
        return call_then_text(arguments, name=name)(body, number)

    return reply


def _function(what: str, function: Any, arguments: str = '{"x": 5}', *, times: int = 1) -> Case:
    given = {"function": function}
    return Case(what=what, program="use", given=given, answer=_named(arguments), judge=_times(times))


def _told(facts: Facts) -> str:
    if facts.error is not None:
        return "the run ends"
    return "" if "out of stock" in facts.requests[1].words else "the model is not told"


def _two_at_once(body: dict[str, Any], _number: int) -> Reply:
    if any(message["role"] == "tool" for message in body["messages"]):
        return Reply(texts=["done"])
    return Reply(calls=[Call("documented", '{"x": 1}', "call_a"), Call("documented", '{"x": 2}', "call_b")])


def _by_wrong_name(body: dict[str, Any], _number: int) -> Reply:
    answered = sum(message["role"] == "tool" for message in body["messages"])
    name = body["tools"][0]["function"]["name"]
    calls = [Call("unheard_of", "{}", "call_a")], [Call(name, '{"x": 5}', "call_b")]
    return Reply(calls=calls[answered]) if answered < 2 else Reply(texts=["done"])


CASES = (
    _function("a function without parameters: `{}`", plain, "{}"),
    _function("a function without parameters: no arguments", plain, ""),
    _function("a function without parameters: `null`", plain, "null"),
    _function("a function without a docstring", undocumented),
    _function("an `async` function", waiting),
    _function("an `async` generator", yielding),
    _function("a method", Shop().sell),
    _function("an object that can be called", Shop()),
    _function("a function behind `lru_cache`", cached),
    _function("a `functools.partial`", functools.partial(multiply, y=2)),
    _function("`**kwargs`", any_names),
    _function("a parameter in front of `/`", only_positions, '{"x": 1, "y": 2}'),
    _function(
        "parameters called `schema`, `json` and `copy`",
        named_like_pydantic,
        '{"schema": "a", "json": "b", "copy": "c"}',
    ),
    Case(
        what="a function that raises: the model is told, and the run goes on",
        program="use",
        given={"function": failing},
        answer=_named('{"x": 5}'),
        judge=_told,
    ),
    Case(
        what="a call of a tool that is not there, and then of the right one",
        program="use",
        given={"function": documented},
        answer=_by_wrong_name,
        judge=_times(1),
    ),
    Case(
        what="two calls at once",
        program="use",
        given={"function": documented},
        answer=_two_at_once,
        judge=_times(2),
    ),
)
