"""Ids that are reused, constant, empty or answered twice."""

from tests.shapes.notation import Fresh, becomes, call, result, retold, says, shape, stays, turn, user
from tests.shapes.texts import Placeheld, answered

GO = user("go")
X = turn(call("x"))
ID, ID2 = Fresh("first"), Fresh("second")
ONCE_ONLY = "openai-responses anthropic bedrock"  # an id is used once in a request
ONCE_A_TURN = f"openai-chat {ONCE_ONLY}"
NAMED = ("message", "agentic", "gemini")  # a result carries its tool's name

IDENTITY = (
    shape(
        "ids start again in every round",
        [GO, X, result("x", "1"), X, result("x", "2"), says("done")],
        stays(),
        on={
            ONCE_ONLY: becomes(
                GO,
                X,
                result("x", "1"),
                turn(call(ID)),
                result(ID, "2"),
                says("done"),
                fit=["repeated-id"],
            )
        },
    ),
    shape(
        "an answered call does not hide a later one of its id",
        [GO, X, result("x", "1"), X, user("stop")],
        becomes(
            GO,
            X,
            result("x", "1"),
            X,
            answered("interrupted", "x"),
            user("stop"),
            found=[("dangling", (3, 0), "x")],
        ),
        on={
            ONCE_ONLY: becomes(
                GO,
                X,
                result("x", "1"),
                turn(call(ID)),
                result(ID, Placeheld("interrupted"), error=True),
                user("stop"),
                found=[("dangling", (3, 0), "x")],
                fit=["repeated-id"],
            )
        },
    ),
    shape(
        "a result is that of the latest turn with its id",
        [GO, X, user("no"), X, result("x", "1"), says("done")],
        becomes(
            GO,
            X,
            answered("interrupted", "x"),
            user("no"),
            X,
            result("x", "1"),
            says("done"),
            found=[("dangling", (1, 0), "x")],
        ),
        on={
            ONCE_ONLY: becomes(
                GO,
                X,
                answered("interrupted", "x"),
                user("no"),
                turn(call(ID)),
                result(ID, "1"),
                says("done"),
                found=[("dangling", (1, 0), "x")],
                fit=["repeated-id"],
            )
        },
    ),
    shape(
        "a second result may be that of an earlier call, so nobody gets it",
        [GO, X, user("no"), X, result("x", "1"), result("x", "2"), says("done")],
        becomes(
            GO,
            X,
            answered("interrupted", "x"),
            user("no"),
            X,
            result("x", "1"),
            retold("2"),
            says("done"),
            found=[("dangling", (1, 0), "x"), ("orphan", 5, "x")],
        ),
        on={
            ONCE_ONLY: becomes(
                GO,
                X,
                answered("interrupted", "x"),
                user("no"),
                turn(call(ID)),
                result(ID, "1"),
                retold("2"),
                says("done"),
                found=[("dangling", (1, 0), "x"), ("orphan", 5, "x")],
                fit=["repeated-id"],
            )
        },
    ),
    shape(
        "two calls of one turn have one id, and two results",
        [
            GO,
            turn(call("x"), call("x", "fetch")),
            result("x", "1", "search"),
            result("x", "2", "fetch"),
            says("done"),
        ],
        stays(),
        on={
            ONCE_A_TURN: becomes(
                GO,
                turn(call("x"), call(ID, "fetch")),
                result("x", "1"),
                result(ID, "2"),
                says("done"),
                fit=["repeated-id"],
            )
        },
    ),
    shape(
        "two calls of one turn have one id, and the results name their tools in another order",
        [GO, turn(call("x"), call("x", "fetch")), result("x", "2", "fetch"), user("next")],
        becomes(
            GO,
            turn(call("x"), call("x", "fetch")),
            answered("interrupted", "x"),
            result("x", "2", "fetch"),
            user("next"),
            found=[("dangling", (1, 0), "x")],
        ),
        wires=NAMED,
    ),
    shape(
        "one call stands twice in a turn and has one result",
        [GO, turn(call("x"), call("x")), result("x", "1"), user("next")],
        becomes(
            GO,
            turn(call("x"), call("x")),
            result("x", "1"),
            answered("interrupted", "x"),
            user("next"),
            found=[("dangling", (1, 1), "x")],
        ),
        on={
            ONCE_A_TURN: becomes(
                GO,
                turn(call("x"), call(ID)),
                result("x", "1"),
                result(ID, Placeheld("interrupted"), error=True),
                user("next"),
                found=[("dangling", (1, 1), "x")],
                fit=["repeated-id"],
            )
        },
    ),
    shape(
        "two pieces of one turn have calls of one id",
        [GO, X, X, result("x", "1"), result("x", "2"), says("done")],
        stays(),
        on={
            "openai-chat": becomes(
                GO,
                X,
                result("x", "1"),
                turn(call(ID)),
                result(ID, "2"),
                says("done"),
                fit=["repeated-id", "split-turn"],
            ),
            "gemini": stays(fit=["same-role"]),
            ONCE_ONLY: becomes(
                GO,
                X,
                turn(call(ID)),
                result("x", "1"),
                result(ID, "2"),
                says("done"),
                fit=["repeated-id"],
            ),
        },
    ),
    shape(
        "every call of the conversation has the same id",
        [GO, X, result("x", "1"), X, result("x", "2"), user("more"), X, result("x", "3"), says("done")],
        stays(),
        on={
            ONCE_ONLY: becomes(
                GO,
                X,
                result("x", "1"),
                turn(call(ID)),
                result(ID, "2"),
                user("more"),
                turn(call(ID2)),
                result(ID2, "3"),
                says("done"),
                fit=["repeated-id"],
            )
        },
    ),
    shape(
        "calls and results have empty ids",
        [
            GO,
            turn(call(""), call("", "fetch")),
            result("", "1", "search"),
            result("", "2", "fetch"),
            says("done"),
        ],
        stays(),
        on={
            ONCE_A_TURN: becomes(
                GO,
                turn(call(ID), call(ID2, "fetch")),
                result(ID, "1"),
                result(ID2, "2"),
                says("done"),
                fit=["missing-id"],
            )
        },
    ),
    shape(
        "calls have empty ids, and only one has a result",
        [GO, turn(call(""), call("")), result("", "1"), user("next")],
        becomes(
            GO,
            turn(call(""), call("")),
            result("", "1"),
            answered("interrupted", ""),
            user("next"),
            found=[("dangling", (1, 1), "")],
        ),
        on={
            ONCE_A_TURN: becomes(
                GO,
                turn(call(ID), call(ID2)),
                result(ID, "1"),
                result(ID2, Placeheld("interrupted"), error=True),
                user("next"),
                found=[("dangling", (1, 1), "")],
                fit=["missing-id"],
            )
        },
    ),
    shape(
        "without ids, the name decides whose a result is",
        [GO, turn(call(""), call("", "fetch")), result("", "2", "fetch"), user("next")],
        becomes(
            GO,
            turn(call(""), call("", "fetch")),
            answered("interrupted", ""),
            result("", "2", "fetch"),
            user("next"),
            found=[("dangling", (1, 0), "")],
        ),
        wires=NAMED,
    ),
    shape(
        "one of two calls has no id, and the named results stand in another order",
        [GO, turn(call("a"), call("", "fetch")), result("", "2", "fetch"), result("a", "1", "search"), says("done")],
        stays(),
        on={
            "gemini": becomes(
                GO,
                turn(call("a"), call("", "fetch")),
                result("a", "1"),
                result("", "2"),
                says("done"),
                fit=["results-order"],
            )
        },
        wires=NAMED,
    ),
    shape(
        "a surplus result without an id is an orphan",
        [GO, turn(call("")), result("", "1"), result("", "2"), says("done")],
        becomes(
            GO,
            turn(call("")),
            result("", "1"),
            retold("2"),
            says("done"),
            found=[("orphan", 3, "")],
        ),
        on={
            ONCE_A_TURN: becomes(
                GO,
                turn(call(ID)),
                result(ID, "1"),
                retold("2"),
                says("done"),
                found=[("orphan", 3, "")],
                fit=["missing-id"],
            )
        },
    ),
    shape(
        "a call has the same result twice",
        [GO, X, result("x", "1"), result("x", "1"), says("done")],
        becomes(GO, X, result("x", "1"), says("done"), found=[("duplicate", 3, "x")]),
    ),
    shape(
        "a call has two different results",
        [GO, X, result("x", "1"), result("x", "2"), says("done")],
        becomes(GO, X, result("x", "2"), says("done"), found=[("duplicate", 2, "x")], displaced=["1"]),
    ),
    shape(
        "a resumed session adds a result again, after the user",
        [GO, X, result("x", "1"), user("again"), result("x", "2"), says("done")],
        becomes(
            GO,
            X,
            result("x", "2"),
            user("again"),
            says("done"),
            found=[("duplicate", 2, "x"), ("late", 4, "x")],
            displaced=["1"],
        ),
        on={
            "openai-responses": becomes(
                GO,
                X,
                result("x", "2"),
                user("again"),
                says("done"),
                found=[("duplicate", 2, "x")],
                displaced=["1"],
            )
        },
    ),
    shape(
        "one of two calls has two results",
        [GO, turn(call("x"), call("y")), result("x", "1"), result("y", "2"), result("x", "3"), says("done")],
        becomes(
            GO,
            turn(call("x"), call("y")),
            result("x", "3"),
            result("y", "2"),
            says("done"),
            found=[("duplicate", 2, "x")],
            displaced=["1"],
        ),
    ),
)
