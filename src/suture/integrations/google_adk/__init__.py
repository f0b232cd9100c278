"""A plugin for Google's Agent Development Kit: models are never sent a broken history, and learn what was broken off.

Needs the extra `google-adk`.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Unpack

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.genai.types import Content, Part

from suture.integrations.google_adk.view import Missing, seen_whole
from suture.integrations.guest import GuestOptions, Options, announce, repair_request
from suture.profiles import get_profile, profile_for, profile_of
from suture.repair import Cause, Finding, Report, placeholder_text, run_repair

__all__ = ["PatchToolCallsPlugin"]

_WIRE = "gemini"


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
        missing = Missing(self._text, self._retell, partial(_is_task, agent), findings.append)
        session.events = seen_whole(session.events, invocation_context.invocation_id, missing)
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
