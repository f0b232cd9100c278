"""What all guests share: options that are checked in one way, and repairs that are heard."""

import logging
from typing import Any, cast

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from suture import ConfigError
from suture.integrations.guest import GuestOptions, Options, repair_request
from suture.profiles import Profile, get_profile, profile_for, profile_of
from suture.repair import Report

SECRET = "the harbour master's own words"
CALL = {"id": "call_1", "type": "function", "function": {"name": "pay", "arguments": f'{{"to": "{SECRET}"}}'}}
BROKEN: Any = [
    {"role": "user", "content": SECRET},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "user", "content": SECRET},
    {"role": "tool", "tool_call_id": "ghost", "content": SECRET},
]
WHOLE: Any = BROKEN[:1]


def sent(messages: Any, **options: Any) -> Any:
    return repair_request(messages, "openai-chat", GuestOptions.of("a guest", **options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"profile": "nobody"}, "unknown profile 'nobody'"),
        ({"cause": "magic"}, "unknown cause"),
        ({"orphans": "keep"}, "unknown orphans 'keep'; known: text, drop"),
        ({"generator": "text"}, "generator must be a function, found str"),
        ({"is_placeholder": 1}, "is_placeholder must be a function, found int"),
        ({"language": "fr"}, "language"),
        ({"on_repair": []}, "on_repair must be a function, found list"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_a_guest_is_made(options: Any, message: str):
    assert options.keys() <= Options.__annotations__.keys()
    with pytest.raises(ConfigError, match=message):
        GuestOptions.of("a guest", **options)


async def later(*_: Any) -> str:
    return ""


@pytest.mark.parametrize("name", ["generator", "is_placeholder", "on_repair"])
def test_functions_are_plain_ones(name: str):
    options: Any = {name: later}
    with pytest.raises(ConfigError, match=f"{name} must be a plain function"):
        GuestOptions.of("a guest", **options)


def test_a_repair_is_logged_with_its_report_and_no_contents(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, "suture.integrations"):
        sent(BROKEN)
    [record] = caplog.records
    assert record.levelno == logging.INFO
    assert record.getMessage() == (
        "a guest repaired a request: message 1: dangling pay call_1: answered: unknown; "
        "message 3: orphan ghost: kept as user text"
    )
    assert [each["problem"] for each in record.report["findings"]] == ["dangling", "orphan"]  # pyright: ignore[reportAttributeAccessIssue]
    assert SECRET not in str(record.__dict__)


def test_a_history_that_is_in_order_is_the_same_list_and_nobody_hears_of_it(caplog: pytest.LogCaptureFixture):
    heard: list[Report] = []
    with caplog.at_level(logging.DEBUG):
        assert sent(WHOLE, on_repair=heard.append) is WHOLE
    assert (heard, caplog.records) == ([], [])


def test_a_listener_that_fails_is_logged_and_the_request_is_repaired(caplog: pytest.LogCaptureFixture):
    def fail(report: Report) -> None:
        raise RuntimeError(report.wire)

    assert [message["role"] for message in sent(BROKEN, on_repair=fail)] == [
        "user",
        "assistant",
        "tool",
        "user",
        "user",
    ]
    assert "on_repair failed" in caplog.text


def test_what_cannot_be_read_is_sent_as_it_is_and_logged(caplog: pytest.LogCaptureFixture):
    odd: Any = [*WHOLE, {"role": "nobody", "content": SECRET}]
    assert sent(odd) is odd
    assert caplog.messages == ["a guest: a history cannot be read at message 1; it is left as it is"]


def test_a_repair_is_an_event_of_the_span_at_hand():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("test").start_as_current_span("a request"):
        sent(WHOLE)
        sent(BROKEN)
    [span] = exporter.get_finished_spans()
    [event] = span.events
    assert event.name == "suture.repair"
    assert event.attributes is not None
    assert event.attributes["suture.problems"] == ("dangling", "orphan")
    assert SECRET not in str(event.attributes)


@pytest.mark.parametrize(("cause", "words"), [(None, "may or may not have run"), ("interrupted", "was canceled")])
def test_why_a_result_is_missing_is_unknown_unless_the_caller_knows(cause: str | None, words: str):
    assert words in sent(BROKEN, cause=cause)[2]["content"]


def test_of_a_profile_that_does_not_speak_of_the_wire_the_ids_are_taken():
    base = get_profile("gemini")
    made = profile_for("gemini", base, get_profile("mistral"))
    assert made.ids == get_profile("mistral").ids
    assert profile_for("gemini", base, base) is base
    mine = Profile.extend("gemini", name="mine")
    assert profile_for("gemini", base, mine) is mine
    assert profile_of("claude-9").name == "anthropic"


def test_an_option_that_there_is_not_is_named_beside_those_that_there_are():
    told = r"'orphan'; the options are cause, generator, is_placeholder, language, on_repair, orphans, profile"
    with pytest.raises(TypeError, match=told):
        GuestOptions.of("suture.integrations.openai", **cast("Any", {"orphan": "drop"}))
