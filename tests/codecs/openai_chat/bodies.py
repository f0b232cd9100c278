"""Bodies of responses of Chat Completions, each of which comes back as it was."""

from typing import Any

from tests.codecs.openai_chat.samples import CALL, MADE, made

NOTE = {"type": "url_citation", "url_citation": {"url": "https://example.com", "start_index": 0, "end_index": 2}}
TOKEN = {
    "token": "At",
    "logprob": -0.5,
    "bytes": [65, 116],
    "top_logprobs": [{"token": "At", "logprob": -0.5, "bytes": None}],
}
COUNTS = {"prompt_tokens": 90, "completion_tokens": 7, "total_tokens": 97}


def body(message: Any, choice: Any = None, **fields: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1778031211,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", **(choice or {})}],
        **fields,
    }


# The SDK's types know neither parts in a reply, nor a sound without its data, nor other calls than those of tools.
PLAIN = sorted(
    {name for name in MADE if not isinstance(MADE[name][0]["content"], list)} - {"a sound", "a call that nobody knows"}
)
BODIES: dict[str, dict[str, Any]] = {
    "a text": body(made("At 06:12.")),
    "fields of one server": body(
        made("At 06:12."),
        {"native_finish_reason": "end_turn", "seed": 7},
        system_fingerprint="fp_1",
        service_tier="default",
        provider="Azure",
        usage={**COUNTS, "cost": 0.5, "prompt_tokens_details": {"cached_tokens": 80, "audio_tokens": 0}},
    ),
    "what it cost": body(
        made("At 06:12."),
        usage={
            **COUNTS,
            "prompt_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 5},
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
    ),
    "likely tokens": body(made("At"), {"logprobs": {"content": [TOKEN]}}),
    "likely tokens of a refusal": body(made(refusal="No."), {"logprobs": {"content": [], "refusal": [TOKEN]}}),
    "a citation": body(made("At 06:12.", annotations=[NOTE])),
    "no citation": body(made("At 06:12.", annotations=[])),
    "a citation of nothing": body(made(tool_calls=[CALL], annotations=[NOTE])),
    "a sound": body(made(audio={"id": "audio_1", "data": "AAAA", "expires_at": 7, "transcript": "Six."})),
    "another word for the end": body(made("At 06:12."), {"finish_reason": "eos"}),
    "a word that nobody knows": body(made("At 06:12."), {"finish_reason": "insufficient_system_resource"}),
    "calls, and a reason that does not say so": body(made(tool_calls=[CALL])),
    **{name: body(item) for name, (item, _) in MADE.items() if name != "an empty thought"},
}
