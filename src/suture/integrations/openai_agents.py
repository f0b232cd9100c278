"""Suture inside the OpenAI Agents SDK (package `agents`): runs and sessions whose histories never break.

`PatchToolCalls` is a model input filter: `RunConfig(call_model_input_filter=PatchToolCalls())`. `PatchedSession` stands
around a session: `PatchedSession(SQLiteSession("…"))`. Each does its work alone; together they leave nothing out.
"""

try:
    from suture.integrations._openai_agents_filter import PatchToolCalls
    from suture.integrations._openai_agents_session import PatchedSession
except ImportError as error:
    missing = "suture.integrations.openai_agents needs openai-agents: pip install 'suture[openai-agents]'"
    raise ImportError(missing) from error

__all__ = ["PatchToolCalls", "PatchedSession"]
