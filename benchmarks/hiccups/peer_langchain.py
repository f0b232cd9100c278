"""LangChain: `create_agent`, nothing configured."""

from collections.abc import Callable
from typing import Any

from _contest import Case, contest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI


async def _ask(case: Case, pay: Callable[[], str]) -> str:
    given: dict[str, Any] = {"model": case["model"], "streaming": case["streamed"]}
    model: Any = (
        ChatAnthropic(base_url=case["url"], **given)
        if case["wire"] == "anthropic"
        else ChatOpenAI(base_url=f"{case['url']}/v1", **given)
    )
    agent: Any = create_agent(model, [pay])
    result = await agent.ainvoke({"messages": [("user", "go")]})
    return result["messages"][-1].text


if __name__ == "__main__":
    contest(_ask)
