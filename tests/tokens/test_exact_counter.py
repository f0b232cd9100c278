"""The exact counter: as the reference tokenizer counts, whatever the text."""

import random
import string
import sys

import pytest
import splintr
import tiktoken
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suture.errors import ConfigError
from suture.messages import ImagePart, Message
from suture.tokens import _PIECE, ExactCounter, _pieces

EXACT = ExactCounter()
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


# Known counts


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("hello world", 2),
        # From OpenAI's cookbook, "How to count tokens with tiktoken"
        ("tiktoken is great!", 6),
        ("antidisestablishmentarianism", 6),
        ("2 + 2 = 4", 7),
        ("お誕生日おめでとう", 8),
    ],
)
def test_texts_count_what_is_known_of_them(text: str, tokens: int):
    assert EXACT.count_text(text) == tokens


def test_another_encoding_counts_otherwise():
    assert [ExactCounter(name).count_text("お誕生日おめでとう") for name in ("cl100k_base", "o200k_base")] == [9, 8]


def test_a_message_has_three_tokens_around_it_and_media_are_flat():
    assert EXACT.count({"role": "user", "content": "hello world"}) == 1 + 2 + 3
    assert EXACT.count(Message.user([ImagePart(url="https://example.com/a.png")])) == 1 + 3 + 1_600


# As the reference implementation counts, with the same vocabulary

RULES = [
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
    r"""\p{N}{1,3}""",
    r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""",
    r"""\s*[\r\n]+""",
    r"""\s+(?!\S)""",
    r"""\s+""",
]
"""How o200k_base splits a text, from tiktoken's own source."""


@pytest.fixture(scope="module")
def reference() -> tiktoken.Encoding:
    """Return tiktoken, which would load its vocabulary from the network, with the one that splintr has."""
    tokenizer = splintr.Tokenizer.from_pretrained("o200k_base")
    ranks = {tokenizer.decode_token_bytes(rank): rank for rank in range(199_998)}
    return tiktoken.Encoding("o200k", pat_str="|".join(RULES), mergeable_ranks=ranks, special_tokens={})


SAMPLES = [
    "def f(x):\n    return {'a': [1, 22, 333, 4444]}\n\n\n# done\t\t \n",
    '{"query": "SELECT * FROM t WHERE a != 7;", "limit": 1000000}',
    "I'll say it's THEIR'S and we'Ve naïve café ÜBER straße",
    "Привет, мир! مرحبا بالعالم שלום नमस्ते 你好，世界。 こんにちは 안녕하세요",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 \u200b\ufeff zero",
    "https://example.com/a/b?c=d&e=f#g //// \\\\ ---- ====",
    "<|endoftext|><|im_start|>user<|im_end|>[INST]",
    "a\x00b\x01\x7f\r\n\r\r\n \u2028 \u3000x",
]


@pytest.mark.parametrize("text", SAMPLES)
def test_a_text_counts_as_in_the_reference(reference: tiktoken.Encoding, text: str):
    assert EXACT.count_text(text) == len(reference.encode_ordinary(text))


@given(text=st.text(max_size=60) | st.text("ab \n\t1'sABé中!", max_size=40))
@unhurried
def test_any_text_counts_as_in_the_reference(reference: tiktoken.Encoding, text: str):
    assert EXACT.count_text(text) == len(reference.encode_ordinary(text))


def test_a_text_in_pieces_counts_as_in_one(reference: tiktoken.Encoding):
    words = random.Random(7).choices(["hello", "the", "naïve", "42", "\n", "{}", "中文", "\n\n  x", "it's"], k=60_000)
    text = " ".join(words)
    assert len(text) > 2 * _PIECE
    assert EXACT.count_text(text) == len(reference.encode_ordinary(text))


# Text from anywhere


def test_text_that_spells_a_special_token_is_plain_text():
    assert EXACT.count_text("<|endoftext|>") == 7
    assert len(splintr.Tokenizer.from_pretrained("o200k_base").encode("<|endoftext|>")) == 1


def test_half_a_surrogate_pair_is_replaced():
    for text, told in (("\ud800", "?"), ("a\ud800b", "a?b"), ("\udc00\ud800", "??")):
        assert EXACT.count_text(text) == EXACT.count_text(told)


def test_a_nul_is_a_character():
    assert EXACT.count_text("a\x00b") == 3


MANY = 1_000_000
BLOBS = {
    "one letter": lambda: "a" * MANY,
    "spaces": lambda: " " * MANY,
    "random letters": lambda: "".join(random.Random(1).choices(string.ascii_letters, k=MANY)),
    "words": lambda: "hello world " * (MANY // 12),
    "lines": lambda: "x,y\n" * (MANY // 4),
    "Chinese": lambda: "中文" * (MANY // 2),
}


@pytest.mark.parametrize("kind", BLOBS)
def test_a_million_characters_in_one_line_are_counted(kind: str):
    """At once; the encoding alone would take hours, since it is not linear."""
    assert MANY / 200 < EXACT.count_text(BLOBS[kind]()) < MANY


@given(st.text(" ab\n", max_size=50).map(lambda text: text * (_PIECE // 8)))
@unhurried
def test_the_pieces_of_a_text_are_the_text_and_none_is_too_long(text: str):
    pieces = list(_pieces(text))
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= _PIECE for piece in pieces)


def test_a_text_is_cut_before_a_space_or_behind_the_end_of_a_line_if_it_can_be():
    spaced, lined = "abcdefg " * _PIECE, "abcdefg\n" * _PIECE
    assert all(piece.startswith(" ") for piece in list(_pieces(spaced))[1:])
    assert all(piece.endswith("\n") for piece in _pieces(lined))


# What cannot be made


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "splintr", None)
    with pytest.raises(ConfigError, match=r"\(extra tokens\), and splintr is not installed: .+ 'splintr-rs>="):
        ExactCounter()


@pytest.mark.parametrize("encoding", ["o300k", "", 7, None])
def test_an_encoding_that_is_not_known_is_refused_with_those_that_are(encoding: str):
    with pytest.raises(ConfigError, match=rf"unknown encoding {encoding!r}; known: cl100k_base, o200k_base, llama3, "):
        ExactCounter(encoding)
