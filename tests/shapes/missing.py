"""Calls whose result is missing."""

from tests.shapes.notation import becomes, call, result, retold, says, shape, stays, turn, user
from tests.shapes.texts import answered

GO = user("go")
X = turn(call("x"))
XY = turn(call("x"), call("y"))
CUT = '{"q": "par'  # the stream ended here

MISSING = (
    shape(
        "the user interrupts a call",
        [GO, X, user("stop"), says("ok")],
        becomes(GO, X, answered("interrupted", "x"), user("stop"), says("ok"), found=[("dangling", (1, 0), "x")]),
    ),
    shape(
        "the user interrupts a call that the model announced",
        [GO, turn(call("x"), text="I will look."), user("stop")],
        becomes(
            GO,
            turn(call("x"), text="I will look."),
            answered("interrupted", "x"),
            user("stop"),
            found=[("dangling", (1, 0), "x")],
        ),
    ),
    shape(
        "two turns in a row are interrupted",
        [GO, X, user("no"), turn(call("y")), user("stop")],
        becomes(
            GO,
            X,
            answered("interrupted", "x"),
            user("no"),
            turn(call("y")),
            answered("interrupted", "y"),
            user("stop"),
            found=[("dangling", (1, 0), "x"), ("dangling", (3, 0), "y")],
        ),
    ),
    shape(
        "the model speaks on without the result",
        [GO, X, says("continued")],
        becomes(GO, X, answered("unknown", "x"), says("continued"), found=[("dangling", (1, 0), "x")]),
        # A turn is a maximal run of items the model made, so nothing comes behind this one.
        on={
            "openai-responses": becomes(
                GO, X, says("continued"), answered("unknown", "x"), found=[("dangling", (1, 0), "x")]
            )
        },
    ),
    shape(
        "a call stands at the end",
        [GO, X],
        becomes(GO, X, answered("unknown", "x"), found=[("dangling", (1, 0), "x")]),
    ),
    shape(
        "one of two calls at the end threw and left no result",
        [GO, XY, result("y", "2")],
        becomes(GO, XY, answered("unknown", "x"), result("y", "2"), found=[("dangling", (1, 0), "x")]),
    ),
    shape("a call at the end is still running", [GO, X], stays(), tail="keep"),
    shape("one of two calls at the end is still running", [GO, XY, result("x", "1")], stays(), tail="keep"),
    shape(
        "calls at the end run, one before it was interrupted",
        [GO, X, user("no"), turn(call("y"))],
        becomes(
            GO,
            X,
            answered("interrupted", "x"),
            user("no"),
            turn(call("y")),
            found=[("dangling", (1, 0), "x")],
        ),
        tail="keep",
    ),
    shape(
        "one of three parallel calls is answered",
        [GO, turn(call("x"), call("y"), call("z")), result("x", "1"), user("next")],
        becomes(
            GO,
            turn(call("x"), call("y"), call("z")),
            result("x", "1"),
            answered("interrupted", "y"),
            answered("interrupted", "z"),
            user("next"),
            found=[("dangling", (1, 1), "y"), ("dangling", (1, 2), "z")],
        ),
    ),
    shape(
        "only the second of two calls is answered",
        [GO, XY, result("y", "2"), user("next")],
        becomes(
            GO,
            XY,
            answered("interrupted", "x"),
            result("y", "2"),
            user("next"),
            found=[("dangling", (1, 0), "x")],
        ),
    ),
    shape(
        "the middle one of three calls is not answered, and the others stand in another order",
        [GO, turn(call("x"), call("y"), call("z")), result("z", "3"), result("x", "1"), user("next")],
        becomes(
            GO,
            turn(call("x"), call("y"), call("z")),
            result("x", "1"),
            answered("interrupted", "y"),
            result("z", "3"),
            user("next"),
            found=[("dangling", (1, 1), "y")],
        ),
    ),
    shape(
        "a process died between a call's effect and its record",
        [GO, XY, result("x", "1"), user("are you there?")],
        becomes(
            GO,
            XY,
            result("x", "1"),
            answered("unknown", "y"),
            user("are you there?"),
            found=[("dangling", (1, 1), "y")],
        ),
        causes={(1, 1): "unknown"},
    ),
    shape(
        "the turn was never written, its result was",
        [GO, result("x", "1"), says("done"), user("next")],
        becomes(GO, retold("1"), says("done"), user("next"), found=[("orphan", 1, "x")]),
    ),
    shape(
        "a stream was cut inside the arguments",
        [GO, turn(call("x", arguments=CUT)), user("again")],
        becomes(
            GO,
            turn(call("x", arguments=CUT)),
            answered("malformed", "x"),
            user("again"),
            found=[("dangling", (1, 0), "x")],
        ),
    ),
    shape(
        "a stream was cut inside the arguments and nothing follows",
        [GO, turn(call("x", arguments=CUT), call("y"))],
        becomes(
            GO,
            turn(call("x", arguments=CUT), call("y")),
            answered("malformed", "x"),
            answered("unknown", "y"),
            found=[("dangling", (1, 0), "x"), ("dangling", (1, 1), "y")],
        ),
    ),
    shape(
        "a call with cut arguments has a real error result",
        [GO, turn(call("x", arguments=CUT)), result("x", "bad JSON", error=True), user("again")],
        stays(),
    ),
    shape(
        "an aborted turn was kept, its results were not",
        [GO, turn(call("x"), call("y"), text="Let me"), user("again"), says("sorry")],
        becomes(
            GO,
            turn(call("x"), call("y"), text="Let me"),
            answered("interrupted", "x"),
            answered("interrupted", "y"),
            user("again"),
            says("sorry"),
            found=[("dangling", (1, 0), "x"), ("dangling", (1, 1), "y")],
        ),
    ),
    shape(
        "an aborted turn was dropped, its results were not",
        [GO, result("x", "1"), result("y", "2"), user("again")],
        becomes(
            GO,
            retold("1"),
            retold("2"),
            user("again"),
            found=[("orphan", 1, "x"), ("orphan", 2, "y")],
        ),
    ),
    shape(
        "an empty assistant message stands between a call and its result",
        [GO, X, says(""), result("x", "1"), user("next")],
        becomes(GO, X, result("x", "1"), user("next"), fit=["empty-message"]),
        on={"message agentic": stays()},
    ),
    shape(
        "one call was rejected, its approved sibling was skipped",
        [GO, XY, result("x", "rejected by user: too costly"), user("next")],
        becomes(
            GO,
            XY,
            result("x", "rejected by user: too costly"),
            answered("interrupted", "y"),
            user("next"),
            found=[("dangling", (1, 1), "y")],
        ),
    ),
    shape(
        "one call was rejected, its sibling was stopped, and the caller says so",
        [GO, XY, user("next")],
        becomes(
            GO,
            XY,
            answered("rejected", "x"),
            answered("stopped", "y"),
            user("next"),
            found=[("dangling", (1, 0), "x"), ("dangling", (1, 1), "y")],
        ),
        causes={(1, 0): "rejected", (1, 1): "stopped"},
    ),
    shape(
        "a hand-over leaves the calls beside it unanswered",
        [GO, turn(call("t", "transfer"), call("a", "add")), result("t", "moved"), says("I am the other one")],
        becomes(
            GO,
            turn(call("t", "transfer"), call("a", "add")),
            result("t", "moved"),
            answered("unknown", "a", "add"),
            says("I am the other one"),
            found=[("dangling", (1, 1), "a")],
        ),
    ),
    shape(
        "compaction removed the results and kept the calls",
        [GO, X, turn(call("y")), result("y", "2"), says("done")],
        becomes(
            GO,
            X,
            turn(call("y")),
            answered("compacted", "x"),
            result("y", "2"),
            says("done"),
            found=[("dangling", (1, 0), "x")],
        ),
        # Neighbouring messages of the model are one turn; here each wants its results behind it.
        on={
            "openai-chat": becomes(
                GO,
                X,
                answered("compacted", "x"),
                turn(call("y")),
                result("y", "2"),
                says("done"),
                found=[("dangling", (1, 0), "x")],
                fit=["split-turn"],
            )
        },
        causes={(1, 0): "compacted"},
    ),
)
