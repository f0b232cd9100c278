"""Wires read, change and make the messages of each type. Nothing else in Suture knows the shape of a message.

To add one: write `wire.py` in its provider's package, list its name in `recognition`, and give it a row in the tests'
table of wires. A wire for another framework's objects goes into the integrations, with a row among the guests.
"""

from suture.wires.blocks import BlockWire
from suture.wires.fields import SurrogateError, argument_json, sendable, without_lone_escapes
from suture.wires.parts import Form, RawPart, Words, plain, text_block, typed_text
from suture.wires.recognition import GUEST_WIRES, WIRES, check_list, get_chat_wire, get_wire, narrow, recognise
from suture.wires.values import MARK, Call, CallEdit, Demands, Key, Piece, Result, ResultEdit, View
from suture.wires.wire import ChatWire, ItemWire, Wire

__all__ = [
    "GUEST_WIRES",
    "MARK",
    "WIRES",
    "BlockWire",
    "Call",
    "CallEdit",
    "ChatWire",
    "Demands",
    "Form",
    "ItemWire",
    "Key",
    "Piece",
    "RawPart",
    "Result",
    "ResultEdit",
    "SurrogateError",
    "View",
    "Wire",
    "Words",
    "argument_json",
    "check_list",
    "get_chat_wire",
    "get_wire",
    "narrow",
    "plain",
    "recognise",
    "sendable",
    "text_block",
    "typed_text",
    "without_lone_escapes",
]
