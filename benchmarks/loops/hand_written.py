"""The floor: what a step costs without any framework.

A plain loop over a list of dictionaries, as everybody's first agent. It does what nobody can leave out: it
calls the model, parses the arguments, looks the tool up, runs it and appends both messages. It checks,
repairs, journals, reports and limits nothing, and it has no middlewares.
"""

import json
import platform
from typing import Any

from _contest import ANSWER, Script, serve


def _prepare(script: Script) -> Any:
    def call(n: int) -> dict[str, Any]:
        function = {"name": "step", "arguments": json.dumps({"n": n})}
        calls = [{"id": f"call_{n}", "type": "function", "function": function}]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    script.replies = [call(n) for n in range(script.steps)]
    script.replies.append({"role": "assistant", "content": ANSWER})

    async def model(_: list[dict[str, Any]]) -> dict[str, Any]:
        return script.reply()

    async def step(n: int) -> str:
        return script.run(n)

    tools = {"step": step}

    async def run() -> str:
        messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
        while True:
            reply = await model(messages)
            messages.append(reply)
            calls = reply.get("tool_calls")
            if not calls:
                return reply["content"]
            for call in calls:
                function = call["function"]
                result = await tools[function["name"]](**json.loads(function["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    return run


if __name__ == "__main__":
    serve("hand-written", platform.python_version(), {"bare": _prepare})
