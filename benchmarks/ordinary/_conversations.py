"""What people hand in, how they go on, and how plain code runs an agent."""

from typing import Any

from _case import RAN, Case, Facts, answer, call_then_text, say, say_in_turn
from _results import PNG
from _server import Json, Reply

__all__ = ["CASES", "TITLE"]

TITLE = "Conversations"

_ANN, _NAME = "My name is Ann.", "What is my name?"
_TALK = [
    {"role": "user", "content": _ANN},
    {"role": "assistant", "content": "Hello Ann."},
    {"role": "user", "content": _NAME},
]


def _arrived(*texts: str, request: int = -1) -> Any:
    """These texts arrived, in this order, the last in the user's last message."""

    def judge(facts: Facts) -> str:
        messages = facts.requests[request].messages
        words = facts.requests[request].words
        places = [words.find(text) for text in texts]
        if -1 in places:
            return f"lost: {texts[places.index(-1)]!r}"
        if places != sorted(places):
            return "in another order"
        if messages[-1]["role"] != "user" or texts[-1] not in str(messages[-1]["content"]):
            return f"the last message is the {messages[-1]['role']}'s"
        return "" if facts.value == "ok" else f"gave {facts.value!r}"

    return judge


def _strict(body: Json, _number: int) -> Reply:
    """Answer as Anthropic does, which takes neither a blank text nor no message at all."""
    texts = [message["content"] for message in body["messages"]]
    texts = [part.get("text", "") for parts in texts if isinstance(parts, list) for part in parts] + [
        text for text in texts if isinstance(text, str)
    ]
    if not texts:
        return Reply(status=400, error="messages: at least one message is required")
    if not all(text.strip() for text in texts):
        return Reply(status=400, error="messages: text content blocks must be non-empty")
    return Reply(texts=["ok"])


def _user_last(facts: Facts) -> str:
    roles = [message["role"] for message in facts.requests[-1].messages]
    if not roles or roles[-1] != "user":
        return f"sent {roles}, without what the user said"
    return "" if facts.error is None else "the provider refuses it"


def _with_picture(facts: Facts) -> str:
    parts = facts.requests[0].messages[-1]["content"]
    kinds = [part["type"] for part in parts]
    return "" if kinds == ["text", "image_url"] else f"sent {kinds}"


def _talk(what: str, program: str, judge: Any = None, **given: Any) -> Case:
    return Case(what=what, program=program, given=given, answer=say("ok"), judge=judge or _arrived(_ANN, _NAME))


def _few_connections(facts: Facts) -> str:
    return "" if facts.connections <= 2 else f"{facts.connections} connections"


_PARTS = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}]
_SOURCE = {"type": "base64", "media_type": "image/png", "data": PNG}
_BLOCKS = [{"type": "text", "text": "What is this?"}, {"type": "image", "source": _SOURCE}]
_CALLED = [
    {"role": "user", "content": "What is the weather?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_7", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "call_7", "content": "storm-4711"},
    {"role": "assistant", "content": "There is a storm."},
    {"role": "user", "content": "Since when?"},
]


def _trimmed(facts: Facts) -> str:
    return "the first message is still sent" if _ANN in facts.requests[-1].words else _arrived(_NAME)(facts)


def _called(facts: Facts) -> str:
    roles = [message["role"] for message in facts.requests[0].messages if message["role"] != "system"]
    return "" if roles == ["user", "assistant", "tool", "assistant", "user"] else f"sent {roles}"


def _blocks(facts: Facts) -> str:
    kinds = [block["type"] for block in facts.requests[0].messages[-1]["content"]]
    return "" if kinds == ["text", "image"] else f"sent {kinds}"


def _act() -> str:
    """Do it."""
    RAN.append(None)
    return "well done"


def _today() -> str:
    return "Today is the 4711th."


def _approved(facts: Facts) -> str:
    return ("" if facts.value == "done" else f"gave {facts.value!r}") if len(facts.ran) == 1 else "the tool never ran"


CASES = (
    _talk("append to the result's messages, and go on", "append", first=_ANN, second=_NAME),
    _talk("a new list of these messages and one more", "join", first=_ANN, second=_NAME),
    _talk("go on with the history and a text", "go_on", first=_ANN, second=_NAME),
    _talk("dicts with `role` and `content` as the input", "given", messages=_TALK),
    _talk(
        "dicts with a `system` message in front",
        "given",
        _arrived("Be brief.", _ANN, _NAME),
        messages=[{"role": "system", "content": "Be brief."}, *_TALK],
    ),
    _talk("dicts as the history, a text as the input", "given_before", history=_TALK[:2], text=_NAME),
    _talk('pairs: `("user", …)`', "given", _arrived(_NAME), messages=[("user", _NAME)]),
    _talk("dicts of Chat with calls and results", "given", _called, messages=_CALLED),
    _talk("dicts of Chat with a picture", "given", _with_picture, messages=[{"role": "user", "content": _PARTS}]),
    _talk(
        "dicts of Anthropic with a picture, to Anthropic",
        "given",
        _blocks,
        messages=[{"role": "user", "content": _BLOCKS}],
        anthropic=True,
    ),
    _talk("a text and a picture in one list", "picture", _with_picture, text="What is this?", png=PNG),
    *(
        Case(
            what=f"{what} after a conversation, to Anthropic",
            program="go_on",
            given={"first": _ANN, "second": text, "anthropic": True},
            answer=_strict,
            judge=_user_last,
            before=1,
            refusal_is_right=True,
        )
        for what, text in (("an empty text", ""), ("a blank text", " \n"))
    ),
    Case(
        what="an empty text alone, to Anthropic",
        program="anthropic_ask",
        given={"text": ""},
        answer=_strict,
        judge=_user_last,
        refusal_is_right=True,
    ),
    Case(
        what="`<think>…</think>` is no part of the answer",
        program="ask",
        given={"text": "go"},
        answer=say("<think>secret</think>\n\n", "ok"),
        judge=lambda facts: "" if str(facts.value).strip() == "ok" else f"gave {facts.value!r}",
    ),
    Case(
        what="instructions from a function",
        program="instructions",
        given={"function": _today},
        answer=say("ok"),
        judge=lambda facts: "" if "4711th" in facts.requests[0].words else "never sent",
    ),
    Case(
        what="another model for one run",
        program="another_model",
        given={"name": "gpt-4.1"},
        answer=say("ok"),
        judge=lambda facts: "" if facts.requests[0].body["model"] == "gpt-4.1" else "asks the first one",
    ),
    _talk("a deep copy of the messages, and go on", "copied", first=_ANN, second=_NAME),
    _talk("the last message alone as the history", "trimmed", _trimmed, first=_ANN, second=_NAME),
    _talk("messages saved as JSON, and read again", "saved", first=_ANN, second=_NAME),
    Case(
        what="plain code: a client of your own, four runs",
        program="own_client",
        given={"times": 4},
        answer=say("ok"),
        judge=lambda facts: "" if facts.value == ["ok"] * 4 else f"gave {facts.value!r}",
    ),
    Case(
        what="`asyncio.run` four times: a client of your own",
        program="own_client",
        given={"times": 4, "loops": True},
        answer=say("ok"),
        judge=lambda facts: "" if facts.value == ["ok"] * 4 else f"gave {facts.value!r}",
    ),
    Case(
        what="a sync client of the SDK",
        program="sync_client",
        answer=say("ok"),
        judge=answer("ok"),
        refusal_is_right=True,
    ),
    Case(
        what="plain code: connections of 20 runs",
        program="runs",
        given={"times": 20},
        answer=say("ok"),
        judge=_few_connections,
    ),
    Case(what="plain code inside a running loop", program="inside_loop", answer=say("ok"), judge=answer("ok")),
    Case(
        what="plain code: a stored conversation of two turns",
        program="session",
        given={"path": "{folder}/talk.db", "texts": [_ANN, _NAME]},
        answer=say("ok"),
        judge=_arrived(_ANN, _NAME),
    ),
    Case(
        what="plain code: the words as they come",
        program="stream_in_plain_code",
        answer=say("On", "ce ", "upon"),
        judge=lambda facts: "" if "".join(facts.value) == "Once upon" and len(facts.value) > 1 else f"{facts.value!r}",
    ),
    Case(
        what="plain code: a call that waits for approval, and its answer",
        program="approve",
        given={"function": _act},
        answer=call_then_text(name="_act"),
        judge=_approved,
    ),
    Case(
        what="usage counts an agent that a tool calls by hand",
        program="agent_in_a_tool",
        answer=lambda body, number: (
            call_then_text()(body, number) if body.get("tools") else say_in_turn(Reply(texts=["ok"]))(body, number)
        ),
        judge=lambda facts: "" if facts.value == 15 * len(facts.requests) else f"counts {facts.value} of 45",
    ),
)
