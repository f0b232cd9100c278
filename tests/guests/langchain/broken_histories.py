"""Histories that trip repairers: what is in them, and what a model may be sent in their place.

`answers` has one entry for each call, in order: the text of the result that is really its own, or `None` where there is
none and a placeholder belongs. `texts` are real results whose call is nowhere, so that they can only be told as text.
`superseded` are results in whose place another result of the same call stands.
"""

from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage

from tests.guests.langchain.recording import asks, call

Met = Literal["input", "state", "tail"]
"""Given by a client as input, with a new message; in the state of a thread that goes on; as input and nothing more."""


@dataclass(frozen=True)
class Broken:
    """One history."""

    id: str
    what: str
    messages: tuple[Any, ...]
    answers: tuple[str | None, ...] = ()
    texts: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    met: Met = "state"
    table: Literal["valid", "fixed", "invalid", "variant"] = "variant"
    """What the table of 39 says: valid before, fixed by deepagents' middleware, or not. A variant is not in it."""
    left: frozenset[str] = frozenset()
    """What is still wrong with what the model receives when deepagents' own middleware (0.7.32) had it, by kind."""


def human(text: str = "Go on.") -> HumanMessage:
    return HumanMessage(text)


def result(identity: str, text: str, name: str = "pay") -> ToolMessage:
    return ToolMessage(text, tool_call_id=identity, name=name)


def said(text: str = "I see.") -> AIMessage:
    return AIMessage(text)


def cut(identity: Any, name: str = "pay") -> dict[str, Any]:
    """Return a call whose arguments were cut off."""
    return {"name": name, "args": '{"amount": 1', "id": identity, "error": "cut off", "type": "invalid_tool_call"}


PAIRING = frozenset({"pairing"})
IDS = frozenset({"ids"})
BOTH = PAIRING | IDS

VALID = [
    Broken("01", "talk without calls", (human(), said(), human("And?"), said()), met="input"),
    Broken("02", "one call, answered", (human(), asks("a"), result("a", "real 1"), said()), ("real 1",)),
    Broken(
        "03",
        "two parallel calls, answered in order",
        (human(), asks("a", "b"), result("a", "real 1"), result("b", "real 2"), said()),
        ("real 1", "real 2"),
    ),
    Broken(
        "04",
        "two parallel calls, answered in another order",
        (human(), asks("a", "b"), result("b", "real 2"), result("a", "real 1"), said()),
        ("real 1", "real 2"),
    ),
    Broken(
        "05",
        "three rounds, each with an id of its own",
        (human(), asks("a"), result("a", "real 1"), asks("b"), result("b", "real 2"), asks("c"), result("c", "real 3")),
        ("real 1", "real 2", "real 3"),
    ),
]

FIXED = [
    Broken("06", "a dangling call, then a human, and the talk went on", (human(), asks("a"), human(), said()), (None,)),
    Broken("07", "two parallel calls, none answered", (human(), asks("a", "b"), human("Stop.")), (None, None)),
    Broken(
        "08",
        "two parallel calls, the first answered",
        (human(), asks("a", "b"), result("a", "real 1")),
        ("real 1", None),
    ),
    Broken(
        "09",
        "two parallel calls, the second answered",
        (human(), asks("a", "b"), result("b", "real 2")),
        (None, "real 2"),
    ),
    Broken(
        "10",
        "three parallel calls, the middle one answered, and the talk went on",
        (human(), asks("a", "b", "c"), result("b", "real 2"), human("Well?"), said()),
        (None, "real 2", None),
    ),
    Broken("11", "a dangling call at the end", (human(), asks("a")), (None,)),
    Broken("12", "a dangling call at the very end, and nothing new is said", (human(), asks("a")), (None,), met="tail"),
    Broken("13", "a turn of the model behind its dangling call", (human(), asks("a"), said("Paid.")), (None,)),
    Broken(
        "14",
        "a call with cut arguments and an id",
        (human(), AIMessage("", invalid_tool_calls=[cut("a")]), human()),
        (None,),
        met="input",
    ),
    Broken(
        "15",
        "an id is used again, and both calls dangle",
        (human(), asks("a"), human(), asks("a"), human()),
        (None, None),
        left=IDS,  # the pairing is closed, as the table says; the repeated id stays
    ),
    Broken(
        "16",
        "the turn is a chunk of a stream that was cut",
        (
            human(),
            AIMessageChunk(
                content="",
                tool_call_chunks=[{"name": "pay", "args": "{}", "id": "a", "index": 0, "type": "tool_call_chunk"}],
            ),
        ),
        (None,),
    ),
    Broken(
        "17",
        "the call is in additional_kwargs, as OpenAI writes it",
        (
            human(),
            AIMessage(
                "",
                additional_kwargs={
                    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "pay", "arguments": "{}"}}]
                },
            ),
            human(),
        ),
        (None,),
        met="input",
    ),
    Broken("18", "a dangling call of a tool without a name", (human(), asks(call("a", "")), human()), (None,)),
]

INVALID = [
    Broken(
        "19",
        "a result in the middle whose call is nowhere",
        (human(), said(), result("x", "real 1"), human(), said()),
        texts=("real 1",),
        left=PAIRING,
    ),
    Broken(
        "20",
        "a result at the head whose call is nowhere",
        (result("x", "real 1"), human(), said()),
        texts=("real 1",),
        met="input",
        left=PAIRING,
    ),
    Broken(
        "21",
        "one result twice",
        (human(), asks("a"), result("a", "real 1"), result("a", "real 1"), said()),
        ("real 1",),
        left=PAIRING,
    ),
    Broken(
        "22",
        "a result behind the next human message",
        (human(), asks("a"), human("Well?"), result("a", "real 1")),
        ("real 1",),
        left=PAIRING,
    ),
    Broken(
        "23",
        "a result behind the next human message and the model's reply to it",
        (human(), asks("a"), human("Well?"), said(), result("a", "real 1")),
        ("real 1",),
        left=PAIRING,
    ),
    Broken(
        "24",
        "the second of two parallel results behind a human message",
        (human(), asks("a", "b"), result("a", "real 1"), human("Well?"), result("b", "real 2")),
        ("real 1", "real 2"),
        left=PAIRING,
    ),
    Broken(
        "25",
        "a result before its call",
        (human(), result("a", "real 1"), asks("a"), human()),
        ("real 1",),
        met="input",
        left=PAIRING,
    ),
    Broken(
        "26",
        "an id is used again, the first call is answered, the second dangles",
        (human(), asks("a"), result("a", "real 1"), said(), human(), asks("a"), human()),
        ("real 1", None),
        left=BOTH,
    ),
    Broken(
        "27",
        "an id is used again, the first call dangles, the second is answered",
        (human(), asks("a"), human(), asks("a"), result("a", "real 2"), said()),
        (None, "real 2"),
        left=BOTH,
    ),
    Broken(
        "28",
        "an id is used again, and both calls are answered",
        (human(), asks("a"), result("a", "real 1"), said(), human(), asks("a"), result("a", "real 2"), said()),
        ("real 1", "real 2"),
        left=IDS,
    ),
    Broken(
        "29",
        "one id twice in a turn, dangling",
        (human(), asks("a", "a"), human()),
        (None, None),
        left=IDS,  # as many synthetic results as calls, so a count finds only the repeated id
    ),
    Broken(
        "30",
        "one id twice in a turn, answered",
        (human(), asks("a", "a"), result("a", "real 1"), result("a", "real 2"), said()),
        ("real 1", "real 2"),
        left=IDS,
    ),
    Broken(
        "31",
        "one id in tool_calls and in invalid_tool_calls",
        (human(), AIMessage("", tool_calls=[call("a")], invalid_tool_calls=[cut("a", "charge")]), human()),
        (None, None),
        left=IDS,
    ),
    Broken(
        "32",
        "a call with cut arguments and no id",
        (human(), AIMessage("", invalid_tool_calls=[cut(None)]), human()),
        (None,),
        left=BOTH,
    ),
    Broken(
        "33",
        "the call is only a tool_use block of the content",
        (human(), AIMessage([{"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {"amount": 1}}]), human()),
        (None,),
        left=PAIRING,
    ),
    Broken(
        "34",
        "the call is only a tool_call block of the content",
        (human(), AIMessage([{"type": "tool_call", "id": "a", "name": "pay", "args": {"amount": 1}}]), human()),
        (None,),
        left=PAIRING,
    ),
    Broken(
        "35",
        "the call is only a function_call block of the content, as Responses has it",
        (
            human(),
            AIMessage([{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "pay", "arguments": "{}"}]),
            human(),
        ),
        (None,),
        left=PAIRING,
    ),
    Broken("36", "a dangling call whose id is None", (human(), asks(None), human()), (None,), left=BOTH),
    Broken("37", "a dangling call whose id is empty", (human(), asks(""), human()), (None,), left=IDS),
    Broken(
        "38",
        "two dangling calls in two turns, both ids empty",
        (human(), asks(""), human(), asks(""), human()),
        (None, None),
        left=IDS,
    ),
    Broken(
        "39",
        "a result of an earlier turn's call among the results of a turn",
        (human(), asks("a"), human("Well?"), asks("b"), result("a", "real 1"), result("b", "real 2"), said()),
        ("real 1", "real 2"),
        left=PAIRING,
    ),
]

VARIANTS = [
    Broken(
        "21b",
        "two different results of one call: the last one holds",
        (human(), asks("a"), result("a", "real 1"), result("a", "real 2"), said()),
        ("real 2",),
        superseded=("real 1",),
        left=PAIRING,
    ),
    Broken(
        "21c",
        "a placeholder of deepagents' wording with the real result behind it",
        (
            human(),
            asks("a"),
            ToolMessage(
                "Tool call pay with id a was cancelled - another message came in before it could be completed.",
                tool_call_id="a",
                name="pay",
                status="error",
            ),
            human("Well?"),
            result("a", "real 1"),
        ),
        ("real 1",),
        left=PAIRING,
    ),
    Broken(
        "22b",
        "a system message between a call and its result",
        (human(), asks("a"), SystemMessage("Be brief."), result("a", "real 1"), said()),
        ("real 1",),
        met="input",
        left=PAIRING,
    ),
    Broken(
        "23b",
        "a result behind two more rounds",
        (human(), asks("a"), human(), asks("b"), result("b", "real 2"), said(), human(), result("a", "real 1")),
        ("real 1", "real 2"),
        left=PAIRING,
    ),
    Broken(
        "24b",
        "two turns with calls together, then the results of both",
        (human(), asks("a"), asks("b"), result("a", "real 1"), result("b", "real 2"), said()),
        ("real 1", "real 2"),
        left=PAIRING,
    ),
    Broken(
        "28b",
        "ids that start again each round, as Kimi has them",
        (
            human(),
            asks("functions.pay:0"),
            result("functions.pay:0", "real 1"),
            asks("functions.pay:0"),
            result("functions.pay:0", "real 2"),
            said(),
        ),
        ("real 1", "real 2"),
        left=IDS,
    ),
    Broken(
        "28c",
        "three rounds with one constant id, the middle one dangling",
        (
            human(),
            asks("a"),
            result("a", "real 1"),
            asks("a"),
            human(),
            asks("a"),
            result("a", "real 3"),
            said(),
        ),
        ("real 1", None, "real 3"),
        left=BOTH,
    ),
    Broken(
        "37b",
        "empty ids, and the results have empty ids too",
        (
            human(),
            asks(call("", "pay"), call("", "ship")),
            result("", "real 1", "pay"),
            result("", "real 2", "ship"),
            said(),
        ),
        ("real 1", "real 2"),
        left=IDS,
    ),
    Broken(
        "40",
        "raw dicts, as a client sends them",
        (
            {"role": "user", "content": "Pay."},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "a", "type": "function", "function": {"name": "pay", "arguments": "{}"}}],
            },
            {"role": "user", "content": "Well?"},
            {"role": "tool", "tool_call_id": "a", "content": "real 1"},
        ),
        ("real 1",),
        met="input",
        left=PAIRING,
    ),
    Broken(
        "41",
        "a valid history whose id is longer than OpenAI takes",
        (human(), asks("i" * 64), result("i" * 64, "real 1"), said()),
        ("real 1",),
    ),
    Broken(
        "42",
        "a dangling call whose id is of two parts, as from Responses",
        (human(), asks("call_1|fc_1"), human()),
        (None,),
    ),
    Broken(
        "43",
        "the same call as a block and in tool_calls, dangling",
        (
            human(),
            AIMessage(
                [
                    {"type": "text", "text": "I pay."},
                    {"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {"amount": 1}},
                ],
                tool_calls=[call("toolu_1", amount=1)],
            ),
            human(),
        ),
        (None,),
    ),
    Broken(
        "44",
        "the same call as a block and in tool_calls, its id used by an earlier turn",
        (
            human(),
            asks("toolu_1"),
            result("toolu_1", "real 1"),
            AIMessage(
                [{"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {"amount": 1}}],
                tool_calls=[call("toolu_1", amount=1)],
            ),
            result("toolu_1", "real 2"),
            said(),
        ),
        ("real 1", "real 2"),
        left=IDS,
    ),
    Broken(
        "45",
        "a result of its own and one of nobody behind a turn, then a human",
        (human(), asks("a"), result("x", "real 1"), result("a", "real 2"), human(), said()),
        ("real 2",),
        texts=("real 1",),
        left=PAIRING,
    ),
]


def _in(table: Any, histories: list[Broken]) -> list[Broken]:
    return [Broken(**{**vars(each), "table": table}) for each in histories]


TABLE = [*_in("valid", VALID), *_in("fixed", FIXED), *_in("invalid", INVALID)]
"""The table's 39."""

HISTORIES = [*TABLE, *VARIANTS]
