"""The seven broken histories that no peer gets right, and what each must become.

Each is told as a whole history that something damages: by removing, moving or doubling messages.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.shapes.notation import Step, call, result, retold, says, turn, user
from tests.shapes.texts import answered

ASK = user("When is high tide?")
STOP = user("Never mind, tell me about the moon.")
DONE = says("At 06:12.")
Damage = Callable[[list[Any], Callable[[Step], Any]], list[Any]]


@dataclass(frozen=True)
class Case:
    name: str
    whole: tuple[Step, ...]
    damage: Damage
    broken: tuple[Step, ...]
    wanted: tuple[Step, ...]

    def __str__(self) -> str:
        return self.name


def removing(*indexes: int) -> Damage:
    return lambda messages, _: [message for index, message in enumerate(messages) if index not in indexes]


def moving(index: int, to: int) -> Damage:
    def move(messages: list[Any], _: Any) -> list[Any]:
        rest = [*messages[:index], *messages[index + 1 :]]
        return [*rest[:to], messages[index], *rest[to:]]

    return move


def adding(step: Step, at: int) -> Damage:
    return lambda messages, write: [*messages[:at], write(step), *messages[at:]]


A = turn(call("a", "tides"))
AB = turn(call("a", "tides"), call("b", "moon"))
R = result("a", "06:12", "tides")

CASES = (
    Case(
        "A: a dangling call, then the user",
        (ASK, A, R, STOP),
        removing(2),
        (ASK, A, STOP),
        (ASK, A, answered("interrupted", "a", "tides"), STOP),
    ),
    Case(
        "B: a dangling call in the middle",
        (ASK, A, R, STOP, says("It is full."), user("Thanks.")),
        removing(2),
        (ASK, A, STOP, says("It is full."), user("Thanks.")),
        (ASK, A, answered("interrupted", "a", "tides"), STOP, says("It is full."), user("Thanks.")),
    ),
    Case(
        "C: a result without its call",
        (ASK, A, R, DONE, STOP),
        removing(1),
        (ASK, R, DONE, STOP),
        (ASK, retold("06:12"), DONE, STOP),
    ),
    Case(
        "D: two results for one call",
        (ASK, A, R, DONE, STOP),
        adding(result("a", "06:13", "tides"), 3),
        (ASK, A, R, result("a", "06:13", "tides"), DONE, STOP),
        (ASK, A, result("a", "06:13", "tides"), DONE, STOP),
    ),
    Case(
        "E: the result comes after another turn",
        (ASK, A, R, STOP, says("It is full."), user("Thanks.")),
        moving(2, 5),
        (ASK, A, STOP, says("It is full."), user("Thanks."), R),
        (ASK, A, R, STOP, says("It is full."), user("Thanks.")),
    ),
    Case(
        "F: the id is used again by a call without a result",
        (ASK, A, R, DONE, user("And tomorrow?"), A, result("a", "07:01", "tides"), STOP),
        removing(6),
        (ASK, A, R, DONE, user("And tomorrow?"), A, STOP),
        (ASK, A, R, DONE, user("And tomorrow?"), A, answered("interrupted", "a", "tides"), STOP),
    ),
    Case(
        "F: the id is used again and the first call has no result",
        (ASK, A, R, DONE, user("And tomorrow?"), A, result("a", "07:01", "tides"), STOP),
        removing(2),
        (ASK, A, DONE, user("And tomorrow?"), A, result("a", "07:01", "tides"), STOP),
        (
            ASK,
            A,
            answered("unknown", "a", "tides"),
            DONE,
            user("And tomorrow?"),
            A,
            result("a", "07:01", "tides"),
            STOP,
        ),
    ),
    Case(
        "G: of two calls the first has a result",
        (ASK, AB, R, result("b", "full", "moon"), STOP),
        removing(3),
        (ASK, AB, R, STOP),
        (ASK, AB, R, answered("interrupted", "b", "moon"), STOP),
    ),
    Case(
        "G: of two calls the second has a result",
        (ASK, AB, R, result("b", "full", "moon"), STOP),
        removing(2),
        (ASK, AB, result("b", "full", "moon"), STOP),
        (ASK, AB, answered("interrupted", "a", "tides"), result("b", "full", "moon"), STOP),
    ),
)
