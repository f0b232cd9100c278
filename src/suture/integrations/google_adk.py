"""A plugin for Google's Agent Development Kit: models are never sent a broken history, and learn what was broken off.

Needs the extra `google-adk`.

ADK leaves a call without an answer, and an answer without a call, out of what a model is sent: the model never learns
that it tried. So a run gets a view of its session, in which a call that was broken off has an answer, right where it
belongs, and an answer without a call is text. ADK goes by the rest itself: which agent sees what, and what belongs
behind which call. Nothing is written into the session: that a call was broken off is only inferred.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Unpack

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.genai.types import Content, FunctionCall, FunctionResponse, Part

from suture.integrations.guest import GuestOptions, Options, announce, repair_request
from suture.profiles import get_profile, profile_for, profile_of
from suture.repair import Cause, Finding, Report, placeholder_text, run_repair

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
        session, agent = invocation_context.session, invocation_context.agent
        findings: list[Finding] = []
        missing = _Missing(self._text, self._retell, partial(_is_task, agent), findings.append)
        session.events = _see_whole(session.events, invocation_context.invocation_id, missing)
        if findings:
            announce(Report(wire=_WIRE, profile="pairing", findings=tuple(findings)), self._options)

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

    def _text(self, name: str, call_id: str) -> str:
        """Return the text that stands for a missing answer."""
        choices = self._options.choices
        cause, ask = choices.cause or Cause.UNKNOWN, choices.generator
        made = "" if ask is None else ask(name, call_id, cause, (0, 0))
        return made or placeholder_text(cause, name, call_id, choices.language)

    def _retell(self, part: Part) -> Part | None:
        """Return an answer without a call as text; `None` where it is not to be kept, or says that there is none."""
        stray = Content(role="user", parts=[part])
        retold = run_repair([stray], _WIRE, "pairing", self._options.choices).messages
        return next((each for content in retold for each in content.parts or ()), None)


def _is_task(agent: Any, name: str) -> bool:
    """Tell whether `name` is that of an agent that is given tasks, somewhere in the tree of `agent`."""
    root = getattr(agent, "root_agent", None)
    found = root.find_agent(name) if root is not None else None
    return getattr(found, "mode", None) == "task"


# A session as a run should see it


class _Missing(NamedTuple):
    """How a run is told of what is missing."""

    answer: Callable[[str, str], str]
    """What the answer to the call `(name, call_id)` says."""
    retell: Callable[[Part], Part | None]
    """An answer without a call, as text; `None` where it is left to ADK, which drops it."""
    is_task: Callable[[str], bool]
    """Whether the tool of this name is an agent that ADK goes on with, however long that takes."""
    note: Callable[[Finding], object]
    """Takes what was found, and what was done about it."""


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


def _see_whole(events: list[Event], invocation_id: str, missing: _Missing) -> list[Event]:
    """Return the events of a session as the run `invocation_id` should see them: the very list, if they are like that.

    A call was broken off if it has no answer, and the user said something after it. In the run itself, which may be one
    that is taken up again, that must have been said to this run: else ADK runs the call now.
    """
    events = _retold(events, missing)
    is_waited_for = _waiting(events)
    said = [place for place, event in enumerate(events) if _is_message(event)]
    said_here = [place for place in said if events[place].invocation_id == invocation_id]
    added: dict[int, list[Event]] = {}
    for turn in _turns(events):
        said_to_it = said_here if turn.event.invocation_id == invocation_id else said
        if said_to_it and turn.last < said_to_it[-1]:
            lost = [
                call
                for call in turn.calls
                if call.id not in turn.answers
                and not is_waited_for(call.id or "")
                and not missing.is_task(call.name or "")
            ]
            answers = _answers(turn, lost, missing)
            if answers is not None:
                added.setdefault(turn.last, []).append(answers)
    if not added:
        return events
    return [each for place, event in enumerate(events) for each in (event, *added.get(place, ()))]


def _parts(event: Event) -> Sequence[Part]:
    return (event.content.parts or ()) if event.content else ()


def _retold(events: list[Event], missing: _Missing) -> list[Event]:
    """Return `events` with the answers without a call as text; the very list if there are none, or they are left.

    What has no id goes by its name, as with ADK.
    """
    called: set[object] = set()
    changed: dict[int, Event] = {}
    for place, event in enumerate(events):
        strays: dict[int, Part] = {}
        for position, part in enumerate(_parts(event)):
            call, answer = part.function_call, part.function_response
            if call is not None:
                called.add(call.id or (call.name,))
            if answer is not None and (answer.id or (answer.name,)) not in called and answer.name not in _REQUESTS:
                retold = missing.retell(part)
                if retold is not None:
                    strays[position] = retold
                    named = {"call_id": answer.id or "", "name": answer.name or ""}
                    missing.note(Finding(index=place, problem="orphan", done="kept as user text", **named))
        if strays and event.content is not None:
            parts = [strays.get(position, part) for position, part in enumerate(_parts(event))]
            content = event.content.model_copy(update={"parts": parts})
            changed[place] = event.model_copy(update={"content": content})
    return [changed.get(place, event) for place, event in enumerate(events)] if changed else events


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


def _answers(turn: _Turn, lost: Sequence[FunctionCall], missing: _Missing) -> Event | None:
    """Return an event with all answers to a turn, in the order of its calls; `None` if they are there in that order.

    ADK puts the answers together in the order of their coming, and takes the last to each call. But Gemini gets no ids:
    there the order says which is whose. So the real ones are given once more, with what stands beside them.
    """
    answers = dict(turn.answers)
    for call in lost:
        name, call_id = call.name or "", call.id or ""
        answers[call.id] = FunctionResponse(id=call_id, name=name, response={"error": missing.answer(name, call_id)})
        missing.note(Finding(index=turn.place, problem="dangling", call_id=call_id, name=name, done="answered"))
    order = [*dict.fromkeys(call.id for call in turn.calls if call.id in answers)]
    if [*turn.answers] == order:
        return None
    event = turn.event
    return Event(
        invocation_id=event.invocation_id,
        author=event.author,
        branch=event.branch,
        isolation_scope=event.isolation_scope,
        timestamp=event.timestamp,
        content=Content(
            role="user",
            parts=[*(Part(function_response=answers[call_id]) for call_id in order), *turn.beside],
        ),
    )
