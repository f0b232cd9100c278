"""The exchange with the provider: waiting, refusals, settings, keys; and what surrounds a run."""

from typing import Any

from _case import Case, Facts, answer, say, say_in_turn
from _server import Json, Reply

__all__ = ["CASES", "TITLE"]

TITLE = "The exchange with the provider, and around it"

_STREAM = [f"t{number} " for number in range(8)]
_ENVIRONMENT_KEY = "Bearer sk-key-of-the-environment"


def _no_streams(body: Json, _number: int) -> Reply:
    if body.get("stream"):
        return Reply(status=400, error="Your organization must be verified to stream this model.")
    return Reply(texts=["ok"])


def _gave_up(facts: Facts) -> str:
    return "an answer from nowhere" if facts.error is None else ""


def _extras(facts: Facts) -> str:
    request = facts.requests[0]
    if request.headers.get("x-title") != "app":
        return "the header is not sent"
    if "extra_headers" in request.body or "extra_body" in request.body:
        return "sent as a field of the body"
    return "" if request.body.get("top_k") == 5 else "the field is not sent"


def _no_timeout_sent(facts: Facts) -> str:
    return "sent to the provider" if "timeout" in facts.requests[0].body else answer("ok")(facts)


def _for_reasoning(facts: Facts) -> str:
    body = facts.requests[0].body
    if body.get("max_completion_tokens") != 100 or "max_tokens" in body:
        return "sends `max_tokens`, which the model refuses"
    return "sends `temperature`, which the model refuses" if "temperature" in body else ""


async def _rotating() -> str:
    return "sk-of-today"


def _key_used(facts: Facts) -> str:
    if facts.requests and facts.requests[0].headers.get("authorization") == _ENVIRONMENT_KEY:
        return ""
    said = str(facts.error)
    return "refused: OPENAI_API_KEY is there, and not sent" if "OPENAI_API_KEY" in said else "an error without a cause"


def _readable(words: str) -> Any:
    """The provider's words stand in the error as they were."""
    return lambda facts: "" if words in str(facts.error) else f"says {str(facts.error)[:70]!r}"


def _names_the_store(facts: Facts) -> str:
    if facts.error is None:
        return "nothing was refused"
    if "open" not in str(facts.error).lower() and "permission" not in str(facts.error).lower():
        return f"says {str(facts.error)[:60]!r}"
    return "and a logged traceback" if "Traceback" in facts.logged else ""


def _hiccup(what: str, first: Reply, program: str = "ask") -> Case:
    return Case(
        what=f"{what}, and then all is well",
        program=program,
        given={"text": "go"},
        answer=say_in_turn(first, Reply(texts=["ok"])),
        judge=answer("ok"),
    )


_MAX, _NOT_FOUND = "context exceeded: max tokens is 8192", "model 'm' not found, try: ollama pull m"

CASES = (
    *(_hiccup(f"a first answer {status}", Reply(status=status, error="busy")) for status in (429, 500, 503)),
    _hiccup("a first answer 529 of Anthropic", Reply(status=529, error="Overloaded"), "anthropic_ask"),
    _hiccup("a connection that is reset", Reply(reset=True)),
    Case(
        what="a host that drops what it is sent: given up within 25 s",
        program="address",
        given={"url": "{unreachable}/v1"},
        answer=say("ok"),
        judge=_gave_up,
    ),
    Case(
        what="a stream of 2.4 s, a word each 0.3 s, with a timeout of 1 s",
        program="stream",
        given={"timeout": 1.0},
        answer=say(*_STREAM, pause=0.3),
        judge=answer("".join(_STREAM)),
    ),
    Case(
        what="a stream that falls silent, with a timeout of 1 s: given up within 15 s",
        program="stream",
        given={"timeout": 1.0},
        answer=say("Once", silent=True),
        judge=_gave_up,
        limit=15.0,
    ),
    Case(
        what="a provider that refuses to stream",
        program="ask",
        given={"text": "go"},
        answer=_no_streams,
        judge=answer("ok"),
    ),
    Case(
        what="a run without streaming asks for no stream",
        program="whole",
        answer=say("ok"),
        judge=lambda facts: "asks for a stream" if facts.requests[0].body.get("stream") else answer("ok")(facts),
    ),
    Case(
        what="`extra_headers` and `extra_body`",
        program="extras",
        given={"headers": {"X-Title": "app"}, "body": {"top_k": 5}},
        answer=say("ok"),
        judge=_extras,
    ),
    Case(
        what="headers for every request of a model",
        program="headers",
        given={"headers": {"X-Title": "app"}},
        answer=say("ok"),
        judge=lambda facts: "" if facts.requests[0].headers.get("x-title") == "app" else "not sent",
    ),
    Case(
        what="a timeout for one run",
        program="timeout_of_a_run",
        given={"seconds": 20.0},
        answer=say("ok"),
        judge=_no_timeout_sent,
    ),
    Case(
        what="`gpt-5-mini` with `max_tokens` and `temperature`",
        program="limited",
        given={"model": "gpt-5-mini", "max_tokens": 100, "temperature": 0.5},
        answer=say("ok"),
        judge=_for_reasoning,
    ),
    Case(
        what="an address in the code, the key in the environment",
        program="address",
        given={"url": "{url}/v1"},
        answer=lambda _body, _number: Reply(status=401, error="Missing key."),
        judge=_key_used,
    ),
    Case(
        what="a key that an `async` function gives",
        program="key_of_a_function",
        given={"key": _rotating},
        answer=say("ok"),
        judge=lambda facts: (
            "" if facts.requests[0].headers.get("authorization") == "Bearer sk-of-today" else "not sent"
        ),
    ),
    Case(
        what="a key of one letter leaves the provider's words alone",
        program="key",
        given={"key": "x"},
        answer=lambda _body, _number: Reply(status=400, error=_MAX),
        judge=_readable(_MAX),
    ),
    Case(
        what="the key `ollama` leaves the provider's words alone",
        program="key",
        given={"key": "ollama"},
        answer=lambda _body, _number: Reply(status=404, error=_NOT_FOUND),
        judge=_readable(_NOT_FOUND),
    ),
    Case(
        what="a store where nothing can be written says so, briefly",
        program="store_at",
        given={"path": "/proc/talk.db"},
        answer=say("ok"),
        judge=_names_the_store,
    ),
    Case(
        what="the status of a conversation whose run failed",
        program="status_after_failure",
        answer=lambda _body, _number: Reply(status=401, error="Wrong key."),
        judge=lambda facts: "" if facts.value == "failed" else f"says {facts.value!r}",
    ),
    Case(
        what="a type checker infers the parameters of a hook",
        program="hook",
        answer=say("ok"),
        judge=lambda facts: "" if "POSITIONAL_ONLY" not in facts.value else "not for positional-only ones",
    ),
)
