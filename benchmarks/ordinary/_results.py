"""What tools return."""

import collections
import dataclasses
import datetime as dt
import pathlib
import re
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import pydantic
from _case import RAN, Case, Facts, call_then_text

__all__ = ["CASES", "PNG", "TITLE"]

TITLE = "Results of tools"

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
"""A picture of one pixel."""


class Receipt:
    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"Receipt({self.number})"


@dataclasses.dataclass
class Price:
    euros: int


class Place(pydantic.BaseModel):
    path: pathlib.Path


def _rows() -> list[sqlite3.Row]:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    return connection.execute("select 4711 as number").fetchall()


def _image() -> Any:
    from PIL import Image

    return Image.new("RGB", (4, 4))


def _returning(make: Callable[[], Any]) -> Callable[[], Any]:
    def act():  # noqa: ANN202
        """Do it."""
        RAN.append(None)
        return make()

    return act


def _lines():  # noqa: ANN202
    """Do it."""
    RAN.append(None)
    yield "one\n"
    yield "two\n"


_COMPLAINT = re.compile(r"^error|typeerror|\berror\b|cannot|serializ", re.IGNORECASE)


def _came_through(words: Sequence[str]) -> Callable[[Facts], str]:
    """The tool ran once, and its result held these words and no complaint."""

    def judge(facts: Facts) -> str:
        if len(facts.ran) != 1:
            return f"the tool ran {len(facts.ran)} times"
        result = str(facts.requests[1].messages[-1]["content"])
        if _COMPLAINT.search(result):
            return "told as failed, though it ran"
        missing = [word for word in words if word not in result]
        return f"the model read {result[:60]!r}" if missing else ""

    return judge


def _result(what: str, make: Callable[[], Any], *words: str) -> Case:
    return Case(
        what=what,
        program="use",
        given={"function": _returning(make)},
        answer=call_then_text(),
        judge=_came_through(words),
    )


def _drawn(*words: str) -> Callable[[Facts], str]:
    """The picture went out as a picture, once, and the words beside it."""

    def judge(facts: Facts) -> str:
        if len(facts.ran) != 1:
            return f"the tool ran {len(facts.ran)} times"
        images, texts = 0, ""
        for message in facts.requests[1].messages:
            content = message.get("content")
            parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
            images += sum(part["type"] in ("image_url", "image") for part in parts)
            texts += "".join(part.get("text", "") for part in parts)
        if PNG in texts:
            return "sent as text, base64 and all"
        if images != 1:
            return f"{images} pictures arrived"
        return "" if all(word in texts for word in words) else "the words are lost"

    return judge


def _pay(euros: int):  # noqa: ANN202
    """Pay."""
    RAN.append(euros)
    return Receipt(len(RAN))


CASES = (
    _result("an object of a class of your own", lambda: Receipt(7), "Receipt(7)"),
    Case(
        what="such an object, and a model that tries again after a failure",
        program="use",
        given={"function": _pay},
        answer=call_then_text('{"euros": 100}', name="_pay", until=lambda text: not _COMPLAINT.search(text)),
        judge=lambda facts: "" if len(facts.ran) == 1 else f"paid {len(facts.ran)} times",
    ),
    _result("a dict with a `Path`", lambda: {"path": pathlib.Path("/srv/data")}, "/srv/data"),
    _result("rows of `sqlite3`", _rows),
    _result("a `deque`", lambda: collections.deque([4711]), "4711"),
    _result("an exception in a dict", lambda: {"why": ValueError("too late")}, "too late"),
    _result("a dict with tuples as keys", lambda: {(1, 2): "near"}, "near"),
    _result("a dict with a `datetime`", lambda: {"at": dt.datetime(2026, 1, 2)}, "2026"),  # noqa: DTZ001
    _result("a set", lambda: {"a4711"}, "a4711"),
    _result("a dataclass", lambda: Price(4711), "4711"),
    _result("a pydantic model with a `Path`", lambda: Place(path=pathlib.Path("/srv/data")), "/srv/data"),
    _result("bytes that are no text", lambda: b"\xff\xfe\x00"),
    _result("nothing", lambda: None),
    Case(
        what="a generator function",
        program="use",
        given={"function": _lines},
        answer=call_then_text(name="_lines"),
        judge=_came_through(["one", "two"]),
    ),
    _result("a picture of PIL", _image),
    Case(
        what="the framework's own picture, alone",
        program="draw",
        given={"act": lambda: RAN.append(None), "png": PNG},
        answer=call_then_text(name="draw"),
        judge=_drawn(),
    ),
    Case(
        what="a text and the framework's own picture in a list",
        program="draw",
        given={"act": lambda: RAN.append(None), "png": PNG, "words": "As you wished."},
        answer=call_then_text(name="draw"),
        judge=_drawn("As you wished."),
    ),
)
