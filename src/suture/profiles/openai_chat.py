"""OpenAI Chat Completions, and the many servers that speak it strictly."""

from suture.profiles import _shared as shared
from suture.profiles._profile import NATIVE, IdForm, Profile, structure

__all__ = ["OPENAI_CHAT"]

OPENAI_CHAT = Profile(
    name="openai-chat",
    wires=("openai-chat", *NATIVE),
    ids=IdForm(pattern=r"[^\x00-\x1f\x7f]+", limit=40, scope="turn"),
    rules=(
        *structure(
            "openai-chat",
            answered="400: 'must be followed by tool messages responding to each tool_call_id'",
            orphaned="400: messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
            single="strict servers refuse a second tool message for one id",
            adjacent="400 unless they are the contiguous run right after it (matrix in Factory-AI/factory#31)",
        ),
        shared.legal_id(
            "openai-chat",
            "An id has 1 to 40 characters.",
            "400: 'string too long. Expected a string with maximum length 40' (langmanus#119, autogen#6377)",
        ),
        shared.unique_id(
            "openai-chat",
            "Ids differ within one message.",
            "MiMo and Kimi gateways, xinference#4237, oh-my-pi#2055",
        ),
        shared.call_named("openai-chat", "400: function.name 'empty string. Expected a string with minimum length 1'"),
        shared.arguments_object(
            "openai-chat",
            "400 of strict servers: 'arguments must be a valid JSON object string'; vLLM, llama.cpp, LiteLLM",
        ),
        shared.results_first(
            "openai-chat", "the tool messages are the contiguous run right after the assistant message"
        ),
        shared.media_outside("openai-chat", "400 matrix in Factory-AI/factory#31"),
        shared.result_content("openai-chat", "400: content may be null only with tool_calls"),
        shared.empty_message(
            "openai-chat", "400: content may be null only with tool_calls, and tool_calls may not be []"
        ),
    ),
)
