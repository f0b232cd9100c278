"""How long a context may be: what models are known to take, and what providers say in their refusals."""

import pickle

import pytest

from suture.errors import ContextLengthError
from suture.models import OpenAIChatModel
from suture.models.http import status_error
from suture.models.windows import WINDOWS, context_window

SAID = [
    (
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 8227 tokens. "
            "Please reduce the length of the messages."
        ),
        8_192,
        8_227,
    ),
    (
        (
            "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens (122942 in the "
            "messages, 8192 in the completion). Please reduce the length of the messages or completion."
        ),
        122_880,
        122_942,
    ),
    (
        (
            "This model's maximum context length is 4097 tokens, however you requested 4116 tokens (3860 in your "
            "prompt; 256 for  the completion). Please reduce your prompt; or completion length."
        ),
        3_841,
        3_860,
    ),
    (
        (
            "This model's maximum context length is 262144 tokens. However, you requested 128000 output tokens and "
            "your prompt contains at least 134145 input tokens, for a total of at least 262145 tokens."
        ),
        134_144,
        134_145,
    ),
    ("prompt is too long: 213462 tokens > 200000 maximum", 200_000, 213_462),
    (
        (
            "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length or "
            "`max_tokens` and try again"
        ),
        191_808,
        199_759,
    ),
    (
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        1_048_575,
        1_196_265,
    ),
    ("Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)", 262_144, 269_030),
    ("model max length exceeded, max length:8192", 8_192, None),
    (
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        131_072,
        537_812,
    ),
    ("prompt token count of 141071 exceeds the limit of 128000", 128_000, 141_071),
    ("request (9021 tokens) exceeds the available context size (8192 tokens), try increasing it", 8_192, 9_021),
    ("the request exceeds the available context size (4096 tokens), try increasing it", 4_096, None),
    ("Input is too long for requested model.", None, None),
    ("Your input exceeds the context window of this model.", None, None),
]


@pytest.mark.parametrize(("words", "limit", "tokens"), SAID)
def test_a_refusal_says_how_much_the_provider_takes(words: str, limit: int | None, tokens: int | None):
    error = status_error("openai-chat", 400, {"error": {"message": words}}, {})
    assert isinstance(error, ContextLengthError)
    assert (error.limit, error.tokens) == (limit, tokens)
    again = pickle.loads(pickle.dumps(error))
    assert (again.limit, again.tokens) == (limit, tokens)


def test_a_reply_that_leaves_no_room_for_any_input_is_not_taken_off():
    error = ContextLengthError("exceed context limit: 90402 + 116650 > 104648, decrease input length")
    assert error.limit == 104_648


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-5-mini", 272_000),
        ("claude-opus-4-6", 1_000_000),
        ("gpt-4", 8_192),
        ("gpt-4o-mini-2024-07-18", 128_000),
        ("openai/gpt-4.1", 1_047_576),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000),
        ("gpt-40", None),
        ("qwen3", None),
    ],
)
def test_the_most_specific_name_says_how_long_a_context_may_be(model: str, window: int | None):
    assert context_window(model) == window


def test_every_window_is_a_number_of_tokens():
    assert all(type(window) is int and window >= 4_096 for window in WINDOWS.values())


def test_a_model_says_how_long_its_context_may_be():
    assert OpenAIChatModel("gpt-4o").context_window == 128_000
    assert OpenAIChatModel("somebody-elses").context_window is None
