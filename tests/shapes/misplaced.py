"""Results without a call, and results in the wrong place."""

from tests.shapes.notation import becomes, call, result, retold, says, shape, stays, system, turn, user
from tests.shapes.texts import answered, placeholder

GO = user("go")
X = turn(call("x"))
Y = turn(call("y"))
XY = turn(call("x"), call("y"))
WITH_SYSTEM = ("message", "agentic", "openai-chat", "openai-responses", "anthropic")

MISPLACED = (
    shape(
        "a cut fell between a call and its result",
        [result("x", "1"), says("done"), user("next")],
        becomes(retold("1"), says("done"), user("next"), found=[("orphan", 0, "x")]),
    ),
    shape(
        "a cut fell inside a group, and a whole group follows",
        [result("q", "1"), result("r", "2"), X, result("x", "3"), says("done")],
        becomes(
            retold("1"),
            retold("2"),
            X,
            result("x", "3"),
            says("done"),
            found=[("orphan", 0, "q"), ("orphan", 1, "r")],
        ),
    ),
    shape(
        "a cut left a result whose id the next turn has again, answered",
        [result("x", "old"), user("and?"), X, result("x", "new"), says("done")],
        becomes(
            user("and?"),
            X,
            result("x", "new"),
            says("done"),
            found=[("duplicate", 0, "x")],
            displaced=["old"],
        ),
    ),
    shape(
        "a run of results spans two turns, one of which was cut",
        [GO, Y, result("x", "1"), result("y", "2"), says("done")],
        becomes(GO, Y, result("y", "2"), retold("1"), says("done"), found=[("orphan", 2, "x"), ("late", 3, "y")]),
        on={
            "openai-responses": becomes(GO, Y, retold("1"), result("y", "2"), says("done"), found=[("orphan", 2, "x")])
        },
    ),
    shape(
        "an orphan inside a group carries something of its own",
        [GO, XY, result("x", "1"), result("q", "the user says no"), result("y", "2"), user("next")],
        becomes(
            GO,
            XY,
            result("x", "1"),
            result("y", "2"),
            retold("the user says no"),
            user("next"),
            found=[("orphan", 3, "q"), ("late", 4, "y")],
        ),
        on={
            "openai-responses": becomes(
                GO,
                XY,
                result("x", "1"),
                retold("the user says no"),
                result("y", "2"),
                user("next"),
                found=[("orphan", 3, "q")],
            )
        },
    ),
    shape(
        "an orphan behind a whole group leaves the group alone",
        [GO, X, result("x", "1"), result("q", "surplus"), user("next")],
        becomes(GO, X, result("x", "1"), retold("surplus"), user("next"), found=[("orphan", 3, "q")]),
    ),
    shape(
        "an orphan is dropped if the caller asks for it",
        [GO, X, result("q", "surplus"), result("x", "1"), user("next")],
        becomes(
            GO,
            X,
            result("x", "1"),
            user("next"),
            found=[("orphan", 2, "q"), ("late", 3, "x")],
            displaced=["surplus"],
        ),
        on={
            "openai-responses": becomes(
                GO, X, result("x", "1"), user("next"), found=[("orphan", 2, "q")], displaced=["surplus"]
            )
        },
        orphans="drop",
    ),
    shape(
        "a result came after the user's next message",
        [GO, X, user("and?"), result("x", "1"), says("done")],
        becomes(GO, X, result("x", "1"), user("and?"), says("done"), found=[("late", 3, "x")]),
        on={"openai-responses": stays()},
    ),
    shape(
        "one of two results came after the user's next message",
        [GO, XY, result("x", "1"), user("and?"), result("y", "2"), says("done")],
        becomes(GO, XY, result("x", "1"), result("y", "2"), user("and?"), says("done"), found=[("late", 4, "y")]),
        on={"openai-responses": stays()},
    ),
    shape(
        "a result came after the model had spoken again",
        [GO, X, user("and?"), says("waiting"), result("x", "1")],
        becomes(GO, X, result("x", "1"), user("and?"), says("waiting"), found=[("late", 4, "x")]),
        on={"openai-responses": stays()},
    ),
    shape(
        "a result came after another group",
        [GO, X, user("and?"), Y, result("y", "2"), result("x", "1"), says("done")],
        becomes(
            GO,
            X,
            result("x", "1"),
            user("and?"),
            Y,
            result("y", "2"),
            says("done"),
            found=[("late", 5, "x")],
        ),
        on={"openai-responses": stays()},
    ),
    shape(
        "a real result came after its placeholder",
        [GO, X, result("x", placeholder("interrupted", "x")), user("and?"), result("x", "1"), says("done")],
        becomes(
            GO,
            X,
            result("x", "1"),
            user("and?"),
            says("done"),
            found=[("duplicate", 2, "x"), ("late", 4, "x")],
        ),
        on={
            "openai-responses": becomes(
                GO, X, result("x", "1"), user("and?"), says("done"), found=[("duplicate", 2, "x")]
            )
        },
    ),
    shape(
        "a placeholder came after the real result",
        [GO, X, result("x", "1"), result("x", placeholder("unknown", "x")), says("done")],
        becomes(GO, X, result("x", "1"), says("done"), found=[("duplicate", 3, "x")]),
    ),
    shape(
        "a result stands before its call",
        [GO, result("x", "1"), X, says("done")],
        becomes(GO, X, result("x", "1"), says("done"), found=[("early", 1, "x")]),
        # A turn is a maximal run of items the model made; its results come behind all of it.
        on={"openai-responses": becomes(GO, X, says("done"), result("x", "1"), found=[("early", 1, "x")])},
    ),
    shape(
        "a result stands before its call, with the user between",
        [GO, result("x", "1"), user("and?"), X, user("next")],
        becomes(GO, user("and?"), X, result("x", "1"), user("next"), found=[("early", 1, "x")]),
    ),
    shape(
        "a result stands a whole turn before its call",
        [GO, result("x", "1"), says("hm"), user("and?"), X, user("next")],
        becomes(
            GO,
            retold("1"),
            says("hm"),
            user("and?"),
            X,
            answered("interrupted", "x"),
            user("next"),
            found=[("orphan", 1, "x"), ("dangling", (4, 0), "x")],
        ),
    ),
    shape(
        "a notice of the system stands between a call and its result",
        [GO, X, system("resized"), result("x", "1"), says("done")],
        becomes(GO, X, result("x", "1"), system("resized"), says("done"), found=[("late", 3, "x")]),
        on={"openai-responses": stays()},
        wires=WITH_SYSTEM,
    ),
    shape(
        "one turn was stored in two pieces",
        [GO, X, Y, result("x", "1"), result("y", "2"), says("done")],
        stays(),
        on={
            "openai-chat": becomes(GO, X, result("x", "1"), Y, result("y", "2"), says("done"), fit=["split-turn"]),
            "anthropic": stays(fit=["split-results"]),
            "gemini bedrock": stays(fit=["same-role"]),
        },
    ),
    shape(
        "text and calls of one turn were stored apart",
        [GO, says("I will look."), X, result("x", "1"), says("done")],
        stays(),
        on={"gemini bedrock": stays(fit=["same-role"])},
    ),
    shape(
        "the results of one turn came as separate messages",
        [GO, XY, result("x", "1"), result("y", "2"), says("done")],
        stays(),
        on={"anthropic": stays(fit=["split-results"]), "gemini bedrock": stays(fit=["same-role"])},
    ),
    shape(
        "the results of one turn came in another order than the calls",
        [GO, XY, result("y", "2"), result("x", "1"), says("done")],
        stays(),
        on={
            "anthropic": stays(fit=["split-results"]),
            "gemini": becomes(GO, XY, result("x", "1"), result("y", "2"), says("done"), fit=["results-order"]),
            "bedrock": stays(fit=["same-role"]),
        },
    ),
    shape(
        "the turns of a sub-agent are written into its parent's log",
        [GO, X, Y, result("y", "2"), says("sub-agent is done"), result("x", "1"), user("next")],
        becomes(
            GO,
            X,
            Y,
            result("x", "1"),
            result("y", "2"),
            says("sub-agent is done"),
            user("next"),
            found=[("late", 5, "x")],
        ),
        on={
            "openai-chat": becomes(
                GO,
                X,
                result("x", "1"),
                Y,
                result("y", "2"),
                says("sub-agent is done"),
                user("next"),
                found=[("late", 5, "x")],
                fit=["split-turn"],
            ),
            "openai-responses": stays(),
        },
    ),
    shape(
        "a summary was written between a call and its result",
        [GO, X, user("summary: so far so good"), result("x", "1"), says("done")],
        becomes(GO, X, result("x", "1"), user("summary: so far so good"), says("done"), found=[("late", 3, "x")]),
        on={"openai-responses": stays()},
    ),
    shape(
        "a side request prunes the call and sends its result",
        [GO, result("x", "1")],
        becomes(GO, retold("1"), found=[("orphan", 1, "x")]),
    ),
    shape(
        "a result of a background call comes when its call is gone",
        [GO, says("started"), user("and?"), says("not yet"), result("x", "finished at last"), user("ah")],
        becomes(
            GO,
            says("started"),
            user("and?"),
            says("not yet"),
            retold("finished at last"),
            user("ah"),
            found=[("orphan", 4, "x")],
        ),
    ),
)
