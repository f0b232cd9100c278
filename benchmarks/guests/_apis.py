"""Four providers' interfaces, as a program without a framework uses them: histories, requests and replies."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from _cases import TOOL, Step, turns
from _judge import Atom, Message
from _responses import read_item, write_items
from anthropic import Anthropic
from openai import OpenAI

__all__ = ["Api", "Chat", "Gemini", "Messages", "Responses"]

Body = dict[str, Any]
Call = tuple[str, str]


class Heard(NamedTuple):
    """What a reply says: what to add to the history, its calls, its text."""

    added: list[Any]
    calls: list[Call]
    text: str


class Api(Protocol):
    """One of the providers' interfaces."""

    def make(self, **given: Any) -> Any: ...
    def write(self, steps: Sequence[Step]) -> list[Any]: ...
    def read(self, body: Body) -> list[Message]: ...
    def ask(self, client: Any, history: list[Any]) -> Heard: ...
    def reply(self, text: str = "", call: Call | None = None) -> Body: ...


class Chat:
    def make(self, **given: Any) -> Any:
        return OpenAI(api_key="none", max_retries=0, **given)

    def write(self, steps: Sequence[Step]) -> list[Any]:
        return [self._message(step) for step in steps]

    def _message(self, step: Step) -> Body:
        match step:
            case ("user", text):
                return {"role": "user", "content": text}
            case ("say", text):
                return {"role": "assistant", "content": text}
            case ("result", name, text):
                return {"role": "tool", "tool_call_id": name, "content": text}
            case (_, *calls):
                return {"role": "assistant", "content": None, "tool_calls": [self._call(*each) for each in calls]}
        raise AssertionError(step)

    def _call(self, name: str, city: str) -> Body:
        return {"id": name, "type": "function", "function": {"name": TOOL, "arguments": json.dumps({"city": city})}}

    def read(self, body: Body) -> list[Message]:
        return [(message["role"], [*self._atoms(message)]) for message in body["messages"]]

    def _atoms(self, message: Body) -> Iterator[Atom]:
        if message["role"] == "tool":
            yield "result", message["tool_call_id"], message["content"]
            return
        if message.get("content"):
            yield "text", message["content"]
        for call in message.get("tool_calls", ()):
            yield "call", call["id"], call["function"]["name"]

    def ask(self, client: Any, history: list[Any]) -> Heard:
        message = client.chat.completions.create(model="fake", messages=history).choices[0].message
        calls = [(call.id, json.loads(call.function.arguments)["city"]) for call in message.tool_calls or ()]
        return Heard([message], calls, message.content or "")

    def reply(self, text: str = "", call: Call | None = None) -> Body:
        message = self._message(("calls", call) if call else ("say", text))
        choice = {"index": 0, "finish_reason": "tool_calls" if call else "stop", "message": message}
        return {"id": "chat_1", "object": "chat.completion", "created": 0, "model": "fake", "choices": [choice]}


class Responses:
    make = Chat.make

    def write(self, steps: Sequence[Step]) -> list[Any]:
        return [item for step in steps for item in write_items(step)]

    def read(self, body: Body) -> list[Message]:
        return [read_item(item) for item in body["input"]]

    def ask(self, client: Any, history: list[Any]) -> Heard:
        output = client.responses.create(model="fake", input=history).output
        calls = [(item.call_id, json.loads(item.arguments)["city"]) for item in output if item.type == "function_call"]
        said = [part.text for item in output if item.type == "message" for part in item.content]
        return Heard(output, calls, "".join(said))

    def reply(self, text: str = "", call: Call | None = None) -> Body:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        said = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}
        output = write_items(("calls", call)) if call else [said]
        told = {"id": "resp_1", "object": "response", "created_at": 0, "model": "fake", "status": "completed"}
        return {**told, "output": output, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}


class Messages:
    def make(self, **given: Any) -> Any:
        return Anthropic(api_key="none", max_retries=0, **given)

    def write(self, steps: Sequence[Step]) -> list[Any]:
        return [
            {"role": role, "content": [block for step in said for block in self._blocks(step)]}
            for role, said in turns(steps)
        ]

    def _blocks(self, step: Step) -> list[Body]:
        match step:
            case ("user" | "say", text):
                return [{"type": "text", "text": text}]
            case ("result", name, text):
                return [{"type": "tool_result", "tool_use_id": name, "content": text}]
            case (_, *calls):
                return [{"type": "tool_use", "id": name, "name": TOOL, "input": {"city": city}} for name, city in calls]
        raise AssertionError(step)

    def read(self, body: Body) -> list[Message]:
        return [(message["role"], [*map(self._atom, message["content"])]) for message in body["messages"]]

    def _atom(self, block: Body) -> Atom:
        match block["type"]:
            case "tool_use":
                return "call", block["id"], block["name"]
            case "tool_result":
                return "result", block["tool_use_id"], block["content"]
        return "text", block["text"]

    def ask(self, client: Any, history: list[Any]) -> Heard:
        message = client.messages.create(model="fake-claude", max_tokens=100, messages=history)
        calls = [(block.id, block.input["city"]) for block in message.content if block.type == "tool_use"]
        said = [block.text for block in message.content if block.type == "text"]
        return Heard([{"role": "assistant", "content": message.content}], calls, "".join(said))

    def reply(self, text: str = "", call: Call | None = None) -> Body:
        content = self._blocks(("calls", call) if call else ("say", text))
        told = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake", "stop_sequence": None}
        usage = {"input_tokens": 1, "output_tokens": 1}
        return {**told, "content": content, "stop_reason": "tool_use" if call else "end_turn", "usage": usage}


class Gemini:
    """Here calls go by their names, so each history's ids are the ends of those."""

    def make(self, **given: Any) -> Any:
        from google.genai import Client

        return Client(api_key="none", http_options={"base_url": given["base_url"], "api_version": "v1beta"})

    def write(self, steps: Sequence[Step]) -> list[Any]:
        roles = {"user": "user", "assistant": "model"}
        return [
            {"role": roles[role], "parts": [part for step in said for part in self._parts(step)]}
            for role, said in turns(steps)
        ]

    def _parts(self, step: Step) -> list[Body]:
        match step:
            case ("user" | "say", text):
                return [{"text": text}]
            case ("result", name, text):
                return [{"functionResponse": {"id": name, "name": TOOL, "response": {"output": text}}}]
            case (_, *calls):
                return [{"functionCall": {"id": name, "name": TOOL, "args": {"city": city}}} for name, city in calls]
        raise AssertionError(step)

    def read(self, body: Body) -> list[Message]:
        roles = {"user": "user", "model": "assistant"}
        return [(roles[content["role"]], [*map(self._atom, content["parts"])]) for content in body["contents"]]

    def _atom(self, part: Body) -> Atom:
        if "functionCall" in part:
            return "call", part["functionCall"]["id"], part["functionCall"]["name"]
        if "functionResponse" in part:
            response = part["functionResponse"]["response"]
            return "result", part["functionResponse"]["id"], next(iter(response.values()), "")
        return "text", part["text"]

    def ask(self, client: Any, history: list[Any]) -> Heard:
        return Heard([], [], client.models.generate_content(model="fake-gemini", contents=history).text)

    def reply(self, text: str = "", call: Call | None = None) -> Body:
        parts = self._parts(("calls", call) if call else ("say", text))
        return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}]}
