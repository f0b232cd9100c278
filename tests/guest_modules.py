"""Which modules stand in other frameworks: they are tested where these are installed."""

FRAMEWORKS = ("langchain", "pydantic_ai", "openai_agents", "google_adk", "strands", "agent_framework", "litellm")


def is_guest(module: str) -> bool:
    """Tell whether a module of `suture.integrations` needs one of these frameworks."""
    room, _, name = module.removeprefix("suture.").partition(".")
    return room == "integrations" and name.partition(".")[0] in FRAMEWORKS
