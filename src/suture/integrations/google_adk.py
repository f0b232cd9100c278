"""A plugin for Google's Agent Development Kit: models never get a broken history, and learn what was broken off.

Needs the extra `google-adk`.

ADK drops calls without an answer, and answers without a call, from what it sends to a model: the model never learns
that it tried. So a run gets a view of its session in which a call that was broken off has an answer in the right
place, and an answer without a call is text. ADK still decides which agent sees what, and which answer follows which
call. Nothing is written into the session, because it is only inferred that a call was broken off.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any, Unpack

from msgspec.structs import replace

from suture._extras import check_extra
from suture.integrations.guest import GuestOptions, Options, announce, repair_request
from suture.profiles import get_profile, profile_for, profile_of
from suture.repair import Report, run_repair

try:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.plugins.base_plugin import BasePlugin
    from google.genai.types import Content, FunctionCall, FunctionResponse, Part
finally:  # an old release may lack some of these: its version says more than the ImportError
    check_extra("google-adk", "google.adk")

__all__ = ["PatchToolCallsPlugin"]

_WIRE = "gemini"
_REQUESTS = frozenset(("adk_request_confirmation", "adk_request_credential", "adk_request_input"))
"""Calls with which ADK asks people. It looks for their answers in the session itself."""
_ABORTED = "INVOCATION_ABORTED"
"""The code of ADK's own answers to the calls of an aborted run, whether their tools had ended or not."""
_OF_TURN = ("invocation_id", "author", "branch", "isolation_scope", "timestamp")
"""The fields that an answer copies from the event with the call."""


class PatchToolCallsPlugin(BasePlugin):
    """Repairs the requests of a run; the stored session does not change.

    A call without an answer after which the user said something is answered for the run. Long-running tools, people who
    were asked and agents with a task are waited for. An answer without a call becomes text. Before each request to a
    model its contents are repaired if they need it.

    Put it last, so that it sees what other plugins made of a request.

    Args:
        name: the name of the plugin, which ADK wants to be unique.
        options: the options of every guest, see `suture.integrations.guest.Options`. ADK's adapters convert contents
            for other providers, except for the ids: these are made to suit the model that is called. If `profile` is
            not Gemini's, only its form of ids is used.

    >>> from google.adk.agents import LlmAgent
    >>> from google.adk.apps import App
    >>> app = App(name="bank", root_agent=LlmAgent(name="teller"), plugins=[PatchToolCallsPlugin()])
    >>> app.plugins[0].name
    'patch_tool_calls'
    """

    def __init__(self, *, name: str = "patch_tool_calls", **options: Unpack[Options]) -> None:
        super().__init__(name)
        self._options = GuestOptions.of(__name__, **options)

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Give the run a complete view of its session. The stored session does not change."""
        session, reader = invocation_context.session, _Reader(self._options, invocation_context)
        session.events = reader.complete(session.events)
        found = [replace(each, index=place) for place, report in reader.reports for each in report.findings]
        if found:
            displaced = [replace(each, index=place) for place, report in reader.reports for each in report.displaced]
            whole = Report(wire=_WIRE, profile="pairing", findings=tuple(found), displaced=tuple(displaced))
            announce(whole, self._options)

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Repair the contents of a request, unless they only continue what the service keeps."""
        if llm_request.previous_interaction_id:
            return
        wanted = self._options.profile or profile_of(llm_request.model or _WIRE)
        profile = profile_for(_WIRE, get_profile(_WIRE), wanted)
        contents: Sequence[Any] = llm_request.contents
        repaired = repair_request(contents, _WIRE, self._options, profile=profile)
        if repaired is not contents:
            llm_request.contents = _as_contents(repaired)


def _as_contents(repaired: Sequence[Any]) -> list[Content]:
    return [each if isinstance(each, Content) else Content.model_validate(each) for each in repaired]


def _find_rewound(events: Sequence[Event]) -> set[int]:
    """Return the places of the events that were rewound, which no model gets."""
    first: dict[str, int] = {}
    for place, event in enumerate(events):
        first.setdefault(event.invocation_id, place)
    gone: set[int] = set()
    for place in reversed(range(len(events))):
        back_to = events[place].actions.rewind_before_invocation_id
        if back_to and place not in gone:  # a rewind that was itself rewound does not count
            gone.update(range(min(first.get(back_to, place), place), place + 1))
    return gone


def _parts(event: Event) -> Sequence[Part]:
    return (event.content.parts or ()) if event.content else ()


@dataclass(slots=True)
class _Turn:
    """An event with calls, and their answers."""

    place: int
    event: Event
    last: int
    """The place of the last answer, or of the event itself if there is none."""
    calls: dict[str, FunctionCall]
    """By id. ADK places calls without an id."""
    answers: dict[str | None, FunctionResponse] = field(default_factory=dict[str | None, FunctionResponse])
    """By the id of the call, in order of arrival; of several answers to a call, the last."""
    beside: list[Part] = field(default_factory=list[Part])
    """The other parts of the events with the answers."""


class _Reader:
    """Reads the events of a session, once, and completes them for one run."""

    def __init__(self, options: GuestOptions, run: InvocationContext) -> None:
        self._options, self._run_id = options, run.invocation_id
        self._agents: Any = getattr(run.agent, "root_agent", None)
        self._turns: list[_Turn] = []
        self._latest: dict[str | None, _Turn] = {}
        """By the id of a call: the last turn that has it, to which ADK assigns an answer."""
        self._called: set[object] = set()
        """The ids of all calls, and the names of those without an id, which ADK uses instead."""
        self._waiting: set[str] = set()
        """The ids of calls that somebody may still answer: a long-running tool, a person, an agent with a task."""
        self._branches: set[str] = set()
        """The branches of such calls: the calls that these branches are named after are waited for as well."""
        self._said = self._said_here = -1
        """The places where the user last said something, in any run and in this one."""
        self.reports: list[tuple[int, Report]] = []
        """The place of an event, and the report of its repair."""

    def complete(self, events: list[Event]) -> list[Event]:
        """Return the events as the run should see them: the same list, if nothing changes."""
        rewound = _find_rewound(events)
        seen = [event if place in rewound else self._read(place, event) for place, event in enumerate(events)]
        added: dict[int, list[Event]] = {}
        for turn in self._turns:
            # A call was broken off if the user said something after it. A call of this run counts only if that was said
            # in this run: otherwise ADK may have resumed the run, and runs the call now.
            said = self._said_here if turn.event.invocation_id == self._run_id else self._said
            asked = [call for call in turn.calls.values() if call.id in turn.answers or not self._is_awaited(call)]
            if turn.last < said and [*turn.answers] != [call.id for call in asked]:
                added.setdefault(turn.last, []).append(self._answer(turn, asked))
        if not added and all(map(is_, seen, events)):
            return events
        return [each for place, event in enumerate(seen) for each in (event, *added.get(place, ()))]

    def _read(self, place: int, event: Event) -> Event:
        """Record what happens in an event, and return it with answers without a call as text."""
        event = self._write_orphans_as_text(place, event)
        calls, answers = event.get_function_calls(), event.get_function_responses()
        if event.author == "user" and _parts(event) and not answers:
            self._said = place
            self._said_here = place if event.invocation_id == self._run_id else self._said_here
        owned = [(self._latest[answer.id], answer) for answer in answers if answer.id in self._latest]
        for owner, answer in owned:
            owner.answers.pop(answer.id, None)
            owner.last = place
            if event.error_code != _ABORTED:
                owner.answers[answer.id] = answer
        if owned:
            owned[0][0].beside += [part for part in _parts(event) if part.function_response is None]
        own = {call.id: call for call in calls if call.id}
        if own:
            self._turns.append(_Turn(place, event, place, own))
            self._latest.update(dict.fromkeys(own, self._turns[-1]))
        asked = {call.id for call in calls if call.id and call.name in _REQUESTS} | (
            event.long_running_tool_ids or set()
        )
        self._waiting |= asked | ({event.isolation_scope} if event.isolation_scope else set())
        self._branches |= {f"{event.branch}."} if asked else set()
        return event

    def _write_orphans_as_text(self, place: int, event: Event) -> Event:
        """Return an event in which answers without a call are text; ADK drops those that the options do not keep."""
        parts = list(_parts(event))
        for position, part in enumerate(parts):
            call, answer = part.function_call, part.function_response
            if call is not None:
                self._called.add(call.id or (call.name,))
            if answer and (answer.id or (answer.name,)) not in self._called and answer.name not in _REQUESTS:
                parts[position : position + 1] = self._repair(place, Content(role="user", parts=[part])) or [part]
        if event.content is None or parts == [*_parts(event)]:
            return event
        return event.model_copy(update={"content": event.content.model_copy(update={"parts": parts})})

    def _is_awaited(self, call: FunctionCall) -> bool:
        """Return whether somebody may still answer a call; ADK continues an agent's task, however long that takes."""
        agent = self._agents.find_agent(call.name or "") if self._agents is not None else None
        is_task = getattr(agent, "mode", None) == "task"
        return is_task or call.id in self._waiting or any(f"@{call.id}." in branch for branch in self._branches)

    def _answer(self, turn: _Turn, calls: Sequence[FunctionCall]) -> Event:
        """Return an event with all answers to a turn, in the order of its calls."""
        # ADK joins the answers in order of arrival, and takes the last one to each call. But Gemini gets no ids, so
        # only the order says which answer is whose. So the real ones are given once more, with the parts beside them.
        asked = Content(role="model", parts=[Part(function_call=call) for call in calls])
        known = [Part(function_response=turn.answers[call.id]) for call in calls if call.id in turn.answers]
        answered = [Content(role="user", parts=known)] if known else []
        parts = self._repair(turn.place, asked, *answered)[len(calls) :]
        kept = {name: getattr(turn.event, name) for name in _OF_TURN}
        return Event(**kept, content=Content(role="user", parts=[*parts, *turn.beside]))

    def _repair(self, place: int, *contents: Content) -> list[Part]:
        """Return the parts of the repaired contents, and record the report for this place."""
        repaired = run_repair(contents, _WIRE, "pairing", self._options.choices)
        self.reports.append((place, repaired.report))
        return [part for content in _as_contents(repaired.messages) for part in content.parts or ()]
