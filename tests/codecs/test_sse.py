"""Server-sent events, however their bytes are cut and their lines are ended."""

import pytest

from suture.codecs import get_codec, replies
from suture.errors import ModelError

ENDS = {"lines of Unix": b"\n", "lines of the web": b"\r\n", "lines of old": b"\r"}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_an_event_is_given_at_its_blank_line_however_lines_end_and_bytes_are_cut(end: bytes):
    sent = b"".join([b'data: {"a":', end, b"data: 1}", end, end, b": a comment", end, b'data: {"b": 2}', end, end])
    for size in range(1, len(sent) + 1):
        framing = get_codec("openai-chat").framing()
        pieces = [sent[start : start + size] for start in range(0, len(sent), size)]
        assert [event for piece in pieces for event in framing.feed(piece)] == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_mark_of_utf_8_at_the_beginning_is_passed_over(size: int):
    sent = b'\xef\xbb\xbfdata: {"a": 1}\n\n'
    framing = get_codec("openai-chat").framing()
    pieces = [sent[start : start + size] for start in range(0, len(sent), size)]
    assert [event for piece in pieces for event in framing.feed(piece)] == [{"a": 1}]


def test_an_event_of_empty_lines_is_refused_once_it_is_too_long(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replies, "MAX_EVENT", 1_000)
    framing = get_codec("openai-chat").framing()
    line = b"data:\n"
    for _ in range(1_000 - len(line)):
        assert framing.feed(line) == []
    framing.feed(line)
    with pytest.raises(ModelError, match="an event of more than 1000 bytes"):
        framing.feed(line)


def test_events_that_are_each_short_enough_are_taken_however_many_come(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replies, "MAX_EVENT", 1_000)
    framing = get_codec("openai-chat").framing()
    assert [framing.feed(b'data: {"a": 1}\n\n') for _ in range(1_000)] == [[{"a": 1}]] * 1_000


def test_an_event_of_many_lines_is_read_in_linear_time():
    """In a second; to add up all lines at each would take half an hour."""
    framing = get_codec("openai-chat").framing()
    count = 400_000
    framing.feed(b"data: [\n")
    for _ in range(count):
        framing.feed(b"data: 1,\n")
    with pytest.raises(ModelError, match="no JSON object"):
        framing.feed(b"data: 1]\n\n")
