"""Messages of every wire, and what a model reads of each: the texts, and how many media."""

from typing import Any

from anthropic.types import Message as AnthropicMessage
from google.genai import types as genai
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseFunctionToolCall, ResponseReasoningItem

from suture.messages import (
    AgenticMessage,
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    AssistantGenVideo,
    FunctionToolCall,
    FunctionToolResult,
    MCPToolResult,
    Message,
    Opaque,
    Reasoning,
    ReasoningPart,
    ServerToolCall,
    TextPart,
    ToolCall,
    ToolInfo,
    ToolSearchPart,
    ToolSearchResult,
    UserInputFile,
    UserInputImage,
    UserInputText,
)
from suture.wires import Wire, get_wire
from tests.wires.chat import chat_call
from tests.wires.results import FOREIGN, IMAGES, result_of, text_of, unknown_of

MESSAGE, AGENTIC, CHAT, RESPONSES, ANTHROPIC, GEMINI, BEDROCK = map(get_wire, ("message", "agentic", *FOREIGN))
PAYLOAD = "iVBORw0KGgoAAAANSUhEUgAA" * 20
HOLOGRAM = '{"type":"hologram","beam":7}'

WORDS: list[tuple[Wire, Any, list[str], int]] = [
    # Suture's own
    (MESSAGE, Message.system("a"), ["system", "a"], 0),
    (MESSAGE, Message.user(""), ["user"], 0),
    (
        MESSAGE,
        Message.user([TextPart("a"), IMAGES["message"], Opaque({"type": "hologram", "beam": 7})]),
        ["user", "a", HOLOGRAM],
        1,
    ),
    (
        MESSAGE,
        Message(
            "assistant", "b", reasoning_content="r", tool_calls=[ToolCall("i", "f", '{"q": 1}'), ToolCall("j", "g")]
        ),
        ["assistant", "r", "b", "f", '{"q": 1}', "g"],
        0,
    ),
    (
        MESSAGE,
        Message("assistant", assistant_gen_multi_content=[ReasoningPart("r", "signed" * 100), IMAGES["message"]]),
        ["assistant", "r"],
        1,
    ),
    (MESSAGE, Message.tool("a", "i", "f"), ["tool", "a"], 0),
    (
        MESSAGE,
        Message(
            "tool",
            "a",
            user_input_multi_content=[TextPart("b"), IMAGES["message"], ToolSearchPart(tools=[ToolInfo("g")])],
        ),
        ["tool", "a", "b", '[{"name":"g"}]'],
        1,
    ),
    (
        AGENTIC,
        AgenticMessage.user([UserInputText("a"), UserInputImage(url="u"), UserInputFile(base64_data="x")]),
        ["user", "a"],
        2,
    ),
    (
        AGENTIC,
        AgenticMessage.assistant(
            [
                Reasoning("r", "signed" * 100),
                AssistantGenText("a", extension={"citations": [1]}),
                FunctionToolCall("i", "f", "{}"),
                AssistantGenImage(url="u"),
                AssistantGenAudio(url="u"),
                AssistantGenVideo(url="u"),
                ServerToolCall(call_id="s", name="web", arguments={"q": 1}, extra={"n": object()}),
                MCPToolResult(content="m"),
            ]
        ),
        [
            "assistant",
            "r",
            "a",
            '{"type":"server_tool_call","call_id":"s","name":"web","arguments":{"q":1}}',
            '{"type":"mcp_tool_result","content":"m"}',
            "f",
            "{}",
        ],
        3,
    ),
    (
        AGENTIC,
        AgenticMessage(
            "user",
            (
                FunctionToolResult(
                    "i", "f", (UserInputText("a"), UserInputImage(url="u"), Opaque({"type": "hologram", "beam": 7}))
                ),
                ToolSearchResult("j", "g", (ToolInfo("h", extra={"n": 1}),)),
                UserInputText("b"),
            ),
        ),
        ["user", "b", "a", HOLOGRAM, '{"type":"tool_search_result","call_id":"j","name":"g","tools":[{"name":"h"}]}'],
        1,
    ),
    (
        AGENTIC,
        AgenticMessage("user", (FunctionToolCall("i", "f", "{}"),)),
        ["user", '{"type":"function_tool_call","call_id":"i","name":"f","arguments":"{}"}'],
        0,
    ),
    # Chat Completions
    (CHAT, {"role": "developer", "content": "ü"}, ["system", "ü"], 0),
    (
        CHAT,
        {
            "role": "user",
            "content": [text_of(CHAT, "a"), IMAGES["openai-chat"], {"type": "file", "file": {}}, unknown_of(CHAT)],
        },
        ["user", "a", HOLOGRAM],
        2,
    ),
    (
        CHAT,
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "r",
            "tool_calls": [chat_call(arguments='{"q": 1}')],
        },
        ["assistant", "r", "search", '{"q": 1}'],
        0,
    ),
    (
        CHAT,
        {
            "role": "assistant",
            "content": "a",
            "tool_calls": [{**chat_call(), "function": {"name": "f", "arguments": {"q": 1}}}],
        },
        ["assistant", "a", "f", '{"q":1}'],
        0,
    ),
    (
        CHAT,
        {"role": "assistant", "tool_calls": [{"id": "i", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]},
        ["assistant", "sh", "ls"],
        0,
    ),
    (
        CHAT,
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        ["assistant", "f", "{}"],
        0,
    ),
    (
        CHAT,
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}], "refusal": "never"},
        ["assistant", "no", "never"],
        0,
    ),
    (
        CHAT,
        {"role": "assistant", "content": None, "audio": {"id": "x", "transcript": "a", "data": PAYLOAD}},
        ["assistant", "a"],
        1,
    ),
    (
        CHAT,
        {
            "role": "assistant",
            "content": "a",
            "reasoning": "r",
            "reasoning_details": [{"type": "reasoning.text", "text": "r"}],
        },
        ["assistant", "r", "a"],
        0,
    ),
    (
        CHAT,
        {
            "role": "assistant",
            "content": "a",
            "reasoning_details": [
                {"type": "reasoning.summary", "summary": "s"},
                {"type": "reasoning.text", "text": "t", "signature": "x"},
                {"type": "reasoning.encrypted", "data": PAYLOAD},
            ],
        },
        ["assistant", "s\nt", "a"],
        0,
    ),
    (CHAT, {"role": "tool", "tool_call_id": "i", "content": "a"}, ["tool", "a"], 0),
    (CHAT, {"role": "function", "name": "f", "content": "a"}, ["tool", "a"], 0),
    (
        CHAT,
        {"role": "tool", "tool_call_id": "i", "content": [text_of(CHAT, "a"), IMAGES["openai-chat"], unknown_of(CHAT)]},
        ["tool", "a", HOLOGRAM],
        1,
    ),
    (CHAT, {"role": "tool", "tool_call_id": "i"}, ["tool"], 0),
    (CHAT, ChatCompletionMessage(role="assistant", content="a", refusal="no"), ["assistant", "a", "no"], 0),
    # Responses
    (RESPONSES, {"role": "user", "content": "a"}, ["user", "a"], 0),
    (
        RESPONSES,
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "a", "annotations": []},
                {"type": "refusal", "refusal": "no"},
                {"type": "hologram", "beam": 7},
            ],
        },
        ["assistant", "a", "no", HOLOGRAM],
        0,
    ),
    (
        RESPONSES,
        {"role": "user", "content": [{"type": "input_file", "file_id": "x"}, IMAGES["openai-responses"]]},
        ["user"],
        2,
    ),
    (
        RESPONSES,
        {
            "type": "reasoning",
            "id": "rs",
            "summary": [{"type": "summary_text", "text": "s"}],
            "content": [{"type": "reasoning_text", "text": "r"}],
            "encrypted_content": PAYLOAD,
        },
        ["assistant", "s", "r"],
        0,
    ),
    (RESPONSES, {"type": "function_call", "call_id": "i", "name": "f", "arguments": "{}"}, ["assistant", "f", "{}"], 0),
    (RESPONSES, {"type": "custom_tool_call", "call_id": "i", "name": "f", "input": "ls"}, ["assistant", "ls", "f"], 0),
    (
        RESPONSES,
        {"type": "shell_call", "call_id": "i", "action": {"commands": ["ls"]}},
        ["assistant", '{"type":"shell_call","call_id":"i","action":{"commands":["ls"]}}', "shell"],
        0,
    ),
    (RESPONSES, {"type": "function_call_output", "call_id": "i", "output": "a"}, ["tool", "a"], 0),
    (
        RESPONSES,
        {
            "type": "function_call_output",
            "call_id": "i",
            "output": [text_of(RESPONSES, "a"), IMAGES["openai-responses"]],
        },
        ["tool", "a"],
        1,
    ),
    (
        RESPONSES,
        {"type": "computer_call_output", "call_id": "i", "output": {"type": "computer_screenshot", "image_url": "u"}},
        ["tool"],
        1,
    ),
    (
        RESPONSES,
        {"type": "shell_call_output", "call_id": "i", "output": [{"stdout": "a", "stderr": ""}]},
        ["tool", '{"stdout":"a","stderr":""}'],
        0,
    ),
    (
        RESPONSES,
        {"type": "mcp_approval_response", "approval_request_id": "i", "approve": True},
        ["tool", "approved"],
        0,
    ),
    (
        RESPONSES,
        {"type": "function_call_output", "name": "f", "output": "a"},
        ["user", '{"type":"function_call_output","name":"f","output":"a"}'],
        0,
    ),
    (
        RESPONSES,
        {"type": "image_generation_call", "id": "x", "result": PAYLOAD},
        ["assistant", '{"type":"image_generation_call","id":"x"}'],
        1,
    ),
    (RESPONSES, {"type": "compaction", "encrypted_content": PAYLOAD}, ["assistant", '{"type":"compaction"}'], 0),
    (
        RESPONSES,
        ResponseFunctionToolCall(type="function_call", call_id="i", name="f", arguments="{}"),
        ["assistant", "f", "{}"],
        0,
    ),
    (
        RESPONSES,
        ResponseReasoningItem(id="x", type="reasoning", summary=[], encrypted_content=PAYLOAD),
        ["assistant"],
        0,
    ),
    # Anthropic
    (ANTHROPIC, {"role": "user", "content": "a"}, ["user", "a"], 0),
    (
        ANTHROPIC,
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "r", "signature": PAYLOAD},
                {"type": "redacted_thinking", "data": PAYLOAD},
                {"type": "text", "text": "a"},
                {"type": "tool_use", "id": "i", "name": "f", "input": {"q": 1}},
            ],
        },
        ["assistant", "r", "a", "f", '{"q":1}'],
        0,
    ),
    (
        ANTHROPIC,
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "i",
                    "content": [text_of(ANTHROPIC, "a"), IMAGES["anthropic"], unknown_of(ANTHROPIC)],
                },
                {"type": "tool_result", "tool_use_id": "j", "content": "b"},
                {"type": "tool_result", "tool_use_id": "k"},
                {"type": "text", "text": "c"},
            ],
        },
        ["user", "c", "a", HOLOGRAM, "b"],
        1,
    ),
    (
        ANTHROPIC,
        {
            "role": "user",
            "content": [
                {"type": "document", "source": {"type": "base64", "data": PAYLOAD}},
                {"type": "document", "source": {"type": "text", "data": "a long text"}},
                {
                    "type": "document",
                    "source": {"type": "content", "content": [{"type": "text", "text": "b"}, IMAGES["anthropic"]]},
                },
                {"type": "document", "source": {"type": "content", "content": "c"}},
            ],
        },
        ["user", "a long text", "b", "c"],
        2,
    ),
    (
        ANTHROPIC,
        {
            "role": "assistant",
            "content": [
                {
                    "type": "web_search_tool_result",
                    "content": [{"type": "web_search_result", "url": "u", "encrypted_content": PAYLOAD}],
                },
                {
                    "type": "web_fetch_tool_result",
                    "content": {"source": {"media_type": "application/pdf", "data": PAYLOAD}},
                },
            ],
        },
        [
            "assistant",
            '{"type":"web_search_tool_result","content":[{"type":"web_search_result","url":"u"}]}',
            '{"type":"web_fetch_tool_result","content":{"source":{"media_type":"application/pdf"}}}',
        ],
        1,
    ),
    (
        ANTHROPIC,
        AnthropicMessage.model_validate(
            {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "c",
                "stop_reason": "tool_use",
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
                "content": [
                    {"type": "thinking", "thinking": "r", "signature": "x"},
                    {"type": "tool_use", "id": "i", "name": "f", "input": {"q": 1}},
                    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                ],
            }
        ),
        ["assistant", "r", '{"id":"s","input":{},"name":"web_search","type":"server_tool_use"}', "f", '{"q":1}'],
        0,
    ),
    # Gemini
    (GEMINI, {"parts": [{"text": "a"}]}, ["user", "a"], 0),
    (
        GEMINI,
        {
            "role": "model",
            "parts": [
                {"text": "r", "thought": True},
                {"text": "a", "thoughtSignature": PAYLOAD},
                {"functionCall": {"name": "f", "args": {"q": 1}}},
                {"functionCall": {"name": "g"}, "thought_signature": PAYLOAD},
                {"executableCode": {"code": "1"}, "thoughtSignature": PAYLOAD},
            ],
        },
        ["assistant", "r", "a", '{"executableCode":{"code":"1"}}', "f", '{"q":1}', "g"],
        0,
    ),
    (GEMINI, {"role": "user", "parts": [IMAGES["gemini"], {"file_data": {"file_uri": "gs://x"}}]}, ["user"], 2),
    (GEMINI, result_of(GEMINI, ({"result": "a"}, [IMAGES["gemini"]])), ["user", "and more", "a"], 1),
    (GEMINI, result_of(GEMINI, ({"a": 1, "b": 2}, None)), ["user", "and more", '{"a":1,"b":2}'], 0),
    (
        GEMINI,
        result_of(GEMINI, ({"result": "a"}, {"text": "b"})),
        [
            "user",
            "and more",
            '{"id":"a","name":"f","response":{"result":"a"},"scheduling":"IDLE","parts":{"text":"b"}}',
        ],
        0,
    ),
    (
        GEMINI,
        genai.Content(
            role="model",
            parts=[
                genai.Part(text="a", thought_signature=b"x" * 500),
                genai.Part(function_call=genai.FunctionCall(name="f", args={"q": 1})),
                genai.Part(inline_data=genai.Blob(mime_type="image/png", data=b"x" * 500)),
                genai.Part(code_execution_result=genai.CodeExecutionResult(output="1")),
            ],
        ),
        ["assistant", "a", '{"code_execution_result":{"output":"1"}}', "f", '{"q":1}'],
        1,
    ),
    # Bedrock
    (
        BEDROCK,
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "r", "signature": PAYLOAD}}},
                {"reasoningContent": {"redactedContent": b"x"}},
                {"text": "a"},
                {"toolUse": {"toolUseId": "i", "name": "f", "input": {"q": 1}}},
                {"cachePoint": {"type": "default"}},
            ],
        },
        ["assistant", "r", "a", '{"cachePoint":{"type":"default"}}', "f", '{"q":1}'],
        0,
    ),
    (
        BEDROCK,
        {
            "role": "user",
            "content": [
                IMAGES["bedrock"],
                {"video": {"source": {"bytes": b"x"}}},
                {"document": {"name": "n", "source": {"bytes": b"x"}}},
                {"document": {"name": "n", "source": {"text": "a long text"}}},
                {"document": {"name": "n", "source": {"content": [{"text": "b"}]}}},
            ],
        },
        ["user", "a long text", "b"],
        3,
    ),
    (
        BEDROCK,
        result_of(BEDROCK, [{"json": {"a": 1}}, IMAGES["bedrock"], {"text": "b"}]),
        ["user", "and more", '{"a":1}', "b"],
        1,
    ),
]
