"""The frameworks, by the names that the page of scenarios has for them."""

from importlib.util import find_spec
from typing import Any

from tests.guests.scenarios.with_google_adk import AdkTalk
from tests.guests.scenarios.with_langchain import DeepAgentsTalk, LangChainTalk
from tests.guests.scenarios.with_openai_agents import AgentsTalk
from tests.guests.scenarios.with_pydantic_ai import PydanticTalk
from tests.guests.scenarios.with_strands import StrandsTalk

FRAMEWORKS: dict[str, Any] = {
    "LangChain": LangChainTalk,
    "deepagents": DeepAgentsTalk,
    "pydantic-ai": PydanticTalk,
    "OpenAI Agents": AgentsTalk,
    "google-adk": AdkTalk,
    "strands": StrandsTalk,
}
if find_spec("agent_framework_openai"):  # its clients are a package of their own, which the lowest releases are without
    from tests.guests.scenarios.with_agent_framework import FrameworkTalk

    FRAMEWORKS["agent-framework"] = FrameworkTalk
