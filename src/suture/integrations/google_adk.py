"""A plugin for Google's Agent Development Kit: models are never sent a broken history, and learn what was broken off.

Needs the extra `google-adk`.

ADK leaves a call without an answer, and an answer without a call, out of what a model is sent: the model never learns
that it tried. So a run gets a view of its session, in which a call that was broken off has an answer, right where it
belongs, and an answer without a call is text. ADK goes by the rest itself: which agent sees what, and what belongs
behind which call. Nothing is written into the session: that a call was broken off is only inferred.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.genai.types import Content, FunctionCall, FunctionResponse, Part
from msgspec.structs import replace

from suture.integrations.guest import GuestOptions, Options, announce, repair_request
from suture.profiles import get_profile, profile_for, profile_of
from suture.repair import Displaced, Finding, Report, run_repair

__all__ = ["PatchToolCallsPlugin"]

_WIRE = "gemini"
_REQUESTS = frozenset(("adk_request_confirmation", "adk_request_credential", "adk_request_input"))
"""What ADK asks of people. It looks for their answers in the session itself."""


class PatchToolCallsPlugin(BasePlugin):
    """Repairs the requests of a run; the stored session does not change.

    A call that has no answer, and behind which the user said something, is answered for the run. Tools that take long,
    people who were asked and agents that have a task are waited for. An answer without a call is told as text. Before
    each request to a model its contents are repaired, where they need it.

    Put it last, so that it sees what other plugins made of a request.

    Args:
        name: of the plugin; ADK wants it unique.
        options: those of every guest, see `suture.integrations.guest.Options`. ADK's own adapters make of contents what
            other providers take, but for the ids: these are made to suit the model that is called. Of a `profile` that
            is not Gemini's the ids are taken.

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
        """Let the run see its session whole. What is stored stays as it is."""
        session = invocation_context.session
        view = _View(self._options, invocation_context)
        session.events = view.complete(session.events)
        if view.findings:
            found, displaced = tuple(view.findings), tuple(view.displaced)
            announce(Report(wire=_WIRE, profile="pairing", findings=found, displaced=displaced), self._options)

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Repair the contents of a request, unless they only go on with what the service keeps."""
        if llm_request.previous_interaction_id:
            return
        wanted = self._options.profile or profile_of(llm_request.model or _WIRE)
        profile = profile_for(_WIRE, get_profile(_WIRE), wanted)
        contents: Sequence[Any] = llm_request.contents
        repaired = repair_request(contents, _WIRE, self._options, profile=profile)
        if repaired is not contents:
            made = [each if isinstance(each, Content) else Content.model_validate(each) for each in repaired]
            llm_request.contents = made


# A session as a run should see it


@dataclass(slots=True)
class _Turn:
    """An event with calls, where it stands, and what its calls were answered."""

    place: int
    event: Event
    calls: list[FunctionCall]
    """Those with an id. One without is for ADK to place."""
    last: int
    """Where the last of the answers stands; where the event itself does, if there is none."""
    answers: dict[str | None, FunctionResponse] = field(default_factory=dict[str | None, FunctionResponse])
    """By the id of the call, in the order of their coming; of several to a call the last."""
    beside: list[Part] = field(default_factory=list[Part])
    """What else stands in the events with the answers."""


class _View:
    """The events of a session as one run should see them.

    A call was broken off if it has no answer, and the user said something after it. In the run itself, which may be one
    that is taken up again, that must have been said to this run: else ADK runs the call now.
    """

    def __init__(self, options: GuestOptions, run: InvocationContext) -> None:
        self._options, self._run_id = options, run.invocation_id
        self._agents: Any = getattr(run.agent, "root_agent", None)
        self.findings: list[Finding] = []
        """What was found, and what was done about it."""
        self.displaced: list[Displaced] = []
        """Answers that the run sees in part, or not at all."""

    def complete(self, events: list[Event]) -> list[Event]:
        """Return the events as the run should see them: the very list, if they are like that."""
        events = self._retell(events)
        is_waited_for = _waiting(events)
        said = [place for place, event in enumerate(events) if _is_message(event)]
        said_here = [place for place in said if events[place].invocation_id == self._run_id]
        added: dict[int, list[Event]] = {}
        for turn in _turns(events):
            said_to_it = said_here if turn.event.invocation_id == self._run_id else said
            if said_to_it and turn.last < said_to_it[-1]:
                turn.calls = [
                    call
                    for call in {call.id: call for call in turn.calls}.values()
                    if call.id in turn.answers or not (is_waited_for(call.id or "") or self._is_task(call.name or ""))
                ]
                if [*turn.answers] != [call.id for call in turn.calls]:
                    added.setdefault(turn.last, []).append(self._answer(turn))
        if not added:
            return events
        return [each for place, event in enumerate(events) for each in (event, *added.get(place, ()))]

    def _is_task(self, name: str) -> bool:
        """Tell whether `name` is that of an agent that ADK goes on with, however long that takes."""
        found = self._agents.find_agent(name) if self._agents is not None else None
        return getattr(found, "mode", None) == "task"

    def _answer(self, turn: _Turn) -> Event:
        """Return an event with all answers to a turn, in the order of its calls.

        ADK puts the answers together in the order of their coming, and takes the last to each call. But Gemini gets no
        ids: there the order says which is whose. So the real ones are given once more, with what stands beside them.
        """
        asked = Content(role="model", parts=[Part(function_call=call) for call in turn.calls])
        known = [turn.answers[call.id] for call in turn.calls if call.id in turn.answers]
        answered = Content(role="user", parts=[Part(function_response=answer) for answer in known])
        parts = self._repair([asked, answered] if known else [asked], turn.place)[len(turn.calls) :]
        event = turn.event
        return Event(
            invocation_id=event.invocation_id,
            author=event.author,
            branch=event.branch,
            isolation_scope=event.isolation_scope,
            timestamp=event.timestamp,
            content=Content(role="user", parts=[*parts, *turn.beside]),
        )

    def _retell(self, events: list[Event]) -> list[Event]:
        """Return `events` with the answers without a call as text; the very list if there are none, or they are left.

        What has no id goes by its name, as with ADK. One that is not to be kept, or says that there is none, is left to
        ADK, which drops it.
        """
        called: set[object] = set()
        changed: dict[int, Event] = {}
        for place, event in enumerate(events):
            parts = list(_parts(event))
            for position, part in enumerate(parts):
                call, answer = part.function_call, part.function_response
                if call is not None:
                    called.add(call.id or (call.name,))
                if answer is not None and (answer.id or (answer.name,)) not in called and answer.name not in _REQUESTS:
                    parts[position : position + 1] = self._repair([Content(role="user", parts=[part])], place) or [part]
            if event.content is not None and parts != [*_parts(event)]:
                content = event.content.model_copy(update={"parts": parts})
                changed[place] = event.model_copy(update={"content": content})
        return [changed.get(place, event) for place, event in enumerate(events)] if changed else events

    def _repair(self, contents: Sequence[Content], place: int) -> list[Part]:
        """Return the parts of contents that are in order, and note what was found at this place."""
        repaired = run_repair(contents, _WIRE, "pairing", self._options.choices)
        self.findings += [replace(finding, index=place) for finding in repaired.report.findings]
        self.displaced += [replace(each, index=place) for each in repaired.report.displaced]
        made = [each if isinstance(each, Content) else Content.model_validate(each) for each in repaired.messages]
        return [part for content in made for part in content.parts or ()]


def _parts(event: Event) -> Sequence[Part]:
    return (event.content.parts or ()) if event.content else ()


def _turns(events: Sequence[Event]) -> list[_Turn]:
    """Return the events with calls. An answer belongs to the last call before it that has its id, as ADK has it."""
    turns: list[_Turn] = []
    latest: dict[str | None, _Turn] = {}
    for place, event in enumerate(events):
        answers = event.get_function_responses()
        owners = [latest[answer.id] for answer in answers if answer.id in latest]
        for owner, answer in zip(owners, [each for each in answers if each.id in latest], strict=True):
            owner.answers.pop(answer.id, None)
            owner.answers[answer.id], owner.last = answer, place
        if owners:
            owners[0].beside += [part for part in _parts(event) if part.function_response is None]
        calls = [call for call in event.get_function_calls() if call.id]
        if calls:
            turns.append(_Turn(place, event, calls, place))
            latest.update({call.id: turns[-1] for call in calls})
    return turns


def _waiting(events: Sequence[Event]) -> Callable[[str], bool]:
    """Return what tells whether somebody may still answer the call with this id.

    That is a tool that takes long, a person who was asked, an agent that has a task; and a call during which one of
    these came up, on a branch that is called after it.
    """
    waited_for: set[str] = set()
    branches: set[str] = set()
    for event in events:
        if event.isolation_scope:
            waited_for.add(event.isolation_scope)
        asked = {call.id for call in event.get_function_calls() if call.id and call.name in _REQUESTS}
        asked |= event.long_running_tool_ids or set()
        if asked:
            waited_for |= asked
            branches.add(f"{event.branch}.")
    return lambda call_id: call_id in waited_for or any(f"@{call_id}." in branch for branch in branches)


def _is_message(event: Event) -> bool:
    """Tell whether the user says something in `event`, and does not only answer a call."""
    return event.author == "user" and bool(_parts(event)) and not event.get_function_responses()
