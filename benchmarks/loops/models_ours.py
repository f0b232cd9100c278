"""Suture: `ChatModelAgent` with the package's own models, through the providers' SDKs.

- As it comes: repair is on, the reply is streamed, nothing else is set. The key is none, the address is ours.
- `own share` counts what our code does before an SDK is called: from the tool's return to the first call of a client
  that was passed in.
"""

import os
import sys
from functools import partial
from importlib.metadata import version
from time import process_time
from typing import Any

from _contest import Script, sdk_client, serve

from suture import ChatModelAgent, tool
from suture.models import AnthropicModel, BedrockModel, GeminiModel, OpenAIChatModel, OpenAIResponsesModel

_MODELS: dict[str, Any] = {
    "openai-chat": OpenAIChatModel,
    "openai-responses": OpenAIResponsesModel,
    "anthropic": AnthropicModel,
    "gemini": GeminiModel,
    "bedrock": BedrockModel,
}


class _Share:
    """CPU seconds between a tool's return and the SDK's call, in sum."""

    def __init__(self) -> None:
        self.seconds = self._since = 0.0

    def begin(self) -> None:
        self._since = process_time()

    def end(self) -> None:
        if self._since:
            self.seconds += process_time() - self._since
        self._since = 0.0


class _Probe:
    """A client, or a part of one, that ends our share when something of it is called."""

    def __init__(self, part: Any, share: _Share) -> None:
        self._part, self._share = part, share

    def __getattr__(self, name: str) -> Any:
        part = getattr(self._part, name)
        return part if part is None or isinstance(part, str | int | float) else _Probe(part, self._share)

    def __call__(self, *given: Any, **named: Any) -> Any:
        self._share.end()
        return self._part(*given, **named)


def _prepare(wire: str, script: Script, *, url: str, sharing: bool = False) -> Any:
    share = _Share() if sharing else None
    settings: dict[str, Any] = {"base_url": f"{url}/v1" if wire.startswith("openai") else url}
    if share is not None:
        settings = {"client": _Probe(sdk_client(wire, url), share)}

    @tool
    async def step(n: int, path: str) -> str:  # noqa: ARG001
        """Make one step."""
        result = script.work(n, share and share.seconds)
        if share is not None:
            share.begin()
        return result

    model = _MODELS[wire](f"steps-{script.steps}", **settings)
    agent = ChatModelAgent(name="bench", model=model, tools=[step], max_iterations=script.steps + 1)

    async def run() -> object:
        output = (await agent.run("go")).output
        script.stamp(script.steps, share and share.seconds)
        return output

    return run


if __name__ == "__main__":
    os.environ |= {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "us-east-1"}
    variants: dict[str, Any] = {wire: partial(_prepare, wire, url=sys.argv[1]) for wire in _MODELS}
    variants |= {f"{wire}, own share": partial(one, sharing=True) for wire, one in variants.items()}
    serve("ours", version("suture"), variants)
