"""OpenAI Chat Completions, and the many servers that speak it strictly."""

from suture.profiles import GUESTS, PRINTABLE, IdForm, Profile, rules

__all__ = ["OPENAI_CHAT"]

OPENAI_CHAT = Profile(
    name="openai-chat",
    wires=("openai-chat", *GUESTS),
    ids=IdForm(pattern=PRINTABLE, limit=40, scope="turn"),
    names="[a-zA-Z0-9_-]{1,64}",
    rules=rules(
        "openai-chat",
        answered="400: 'must be followed by tool messages responding to each tool_call_id'",
        has_call="400: messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
        same_id="400: \"'tool_call_id' of … not found in 'tool_calls' of previous message\"",
        function_named="a function message is known by its name",
        own_results="400: 'must be followed by tool messages responding to each tool_call_id'",
        name_form="400: function.name 'does not match pattern ^[a-zA-Z0-9_-]+$' (mcp-use#90, #94)",
        sendable="400: 'invalid JSON payload' (opencode#17758)",
        single_result="strict servers refuse a second tool message for one id",
        adjacent="400 unless they are the contiguous run right after it (matrix in Factory-AI/factory#31)",
        id_form=(
            "An id has 1 to 40 characters.",
            "400: 'string too long. Expected a string with maximum length 40' (langmanus#119, autogen#6377)",
        ),
        id_unique="MiMo and Kimi gateways, xinference#4237, oh-my-pi#2055",
        call_named="400: function.name 'empty string. Expected a string with minimum length 1'",
        arguments="400 of strict servers: 'arguments must be a valid JSON object string'; vLLM, llama.cpp, LiteLLM",
        results_first="the tool messages are the contiguous run right after the assistant message",
        text_results="400 matrix in Factory-AI/factory#31",
        result_content=(
            "A message has content, which may be empty; only one with tool calls may have none.",
            "400: 'expected a string, got null' (langchainjs#4153, one-api#784); null only with tool_calls",
        ),
        not_empty="400: content may be null only with tool_calls, reasoning or not (vercel/ai#13744); tool_calls may not be []",
    ),
)
