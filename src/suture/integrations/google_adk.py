"""A plugin for Google's Agent Development Kit: models are never sent a broken history, and learn what was broken off.

Needs `pip install 'suture[google-adk]'`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.genai.types import Content, Part

from suture.errors import ConfigError, InputError
from suture.integrations._following import Following
from suture.integrations._google_adk_view import Told, seen_whole
from suture.language import Language, resolve_language
from suture.profiles import PROFILES, Profile, get_profile
from suture.repair import Cause, Generator, placeholder_text, repair, takes_cause

__all__ = ["PatchToolCallsPlugin"]

_WIRE = "gemini"


class PatchToolCallsPlugin(BasePlugin):
    """Lets a run see its session whole, and mends what a model is sent. What is stored stays as it is.

    A call that was broken off by a message of the user's is answered for the run: it was canceled. Tools that take
    long, people who were asked and agents that have a task are waited for. An answer without a call is told as text.
    Before each request to a model its contents are mended, where they need it.

    Put it last, so that it sees what other plugins made of a request.

    Args:
        profile: whose rules the contents are mended by. ADK's own adapters make of contents what other providers take.
        orphans: what becomes of an answer whose call is nowhere: kept as user text (`"text"`), or removed (`"drop"`).
        generator: the text that stands for a missing answer, of `(name, call_id)` or `(name, call_id, cause=…)`.
        language: of the texts, `"en"` or `"zh"`.
        name: of the plugin; ADK wants it unique.

    >>> from google.adk.agents import LlmAgent
    >>> from google.adk.apps import App
    >>> app = App(name="bank", root_agent=LlmAgent(name="teller"), plugins=[PatchToolCallsPlugin()])
    >>> app.plugins[0].name
    'patch_tool_calls'
    """

    def __init__(
        self,
        *,
        profile: str | Profile = "gemini",
        orphans: Literal["text", "drop"] = "text",
        generator: Generator | None = None,
        language: str | None = None,
        name: str = "patch_tool_calls",
    ) -> None:
        super().__init__(name)
        if not get_profile(profile).speaks_of(_WIRE):
            fit = [each for each in PROFILES if get_profile(each).speaks_of(_WIRE)]
            raise ConfigError(
                f"the profile {get_profile(profile).name!r} says nothing of contents; these do: {', '.join(fit)}"
            )
        self._profile = profile
        self._orphans: Literal["text", "drop"] = orphans
        self._language: Language = resolve_language(language)
        self._canceled = _teller(generator, self._language, Cause.INTERRUPTED)
        # What is still open in front of a model is a tool that takes long, and may well be at it.
        unknown = _teller(generator, self._language, Cause.UNKNOWN)
        self._following = Following(_WIRE, orphans=orphans, generator=unknown, language=language)

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Let the run see its session whole. What is stored stays as it is."""
        session, agent = invocation_context.session, invocation_context.agent
        told = Told(self._canceled, self._retell, is_task=lambda name: _is_task(agent, name))
        session.events = seen_whole(session.events, invocation_context.invocation_id, told)

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Mend the contents of a request, unless they only go on with what the service keeps."""
        if not llm_request.previous_interaction_id:
            llm_request.contents = self._mended(llm_request.contents)

    def _retell(self, part: Part) -> Part | None:
        """Return an answer without a call as text; `None` where it is not to be kept, or says that there is none."""
        stray = Content(role="user", parts=[part])
        retold = repair([stray], wire=_WIRE, profile="pairing", orphans=self._orphans, language=self._language).messages
        return next((each for content in retold for each in content.parts or ()), None)

    def _mended(self, contents: list[Content]) -> list[Content]:
        try:
            mended = self._following.mend(contents, self._profile)
        except InputError:
            return contents  # the provider says what is wrong with it
        if mended is contents:
            return contents
        return [each if isinstance(each, Content) else Content.model_validate(each) for each in mended]


def _teller(generator: Generator | None, language: Language, cause: Cause) -> Callable[[str, str], str]:
    """Return what makes the text that stands for a missing answer, for one cause."""
    ask: Callable[..., str] | None = generator
    if ask is not None and takes_cause(ask):
        ask = partial(ask, cause=cause)

    def text(name: str, call_id: str) -> str:
        made = ask(name, call_id) if ask is not None else ""
        return made or placeholder_text(cause, name, call_id, language)

    return text


def _is_task(agent: Any, name: str) -> bool:
    """Tell whether `name` is that of an agent that is given tasks, somewhere in the tree of `agent`."""
    root = getattr(agent, "root_agent", None)
    found = root.find_agent(name) if root is not None else None
    return getattr(found, "mode", None) == "task"
