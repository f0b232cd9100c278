"""An MCP server by hand, of an older revision, that does what a sound one does not: `odd_server.py HABIT`.

It needs nothing but the standard library, so it is quickly there.
"""

import json
import os
import signal
import sys
import time
from typing import Any

HABIT = sys.argv[1]
ECHO = {"name": "echo", "description": "Say it again.", "inputSchema": {"type": "object"}}
LISTS: dict[str, list[dict[str, Any]]] = {
    "many names": [{**ECHO, "name": name} for name in ("a.b", "a_b", "a b", "x" * 70, "a_b")],
    "no type": [{**ECHO, "name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": 3}}}}, ECHO],
    "no structure": [{**ECHO, "outputSchema": {"type": "object", "required": ["depth"]}}],
    "other structure": [{**ECHO, "outputSchema": {"type": "object", "required": ["depth"]}}],
    "no schema": [{**ECHO, "outputSchema": {"type": "object", "$ref": "#/nowhere"}}],
    "titles": [{"name": "plain", "title": "A plain tool", "inputSchema": {"type": "object"}}],
}

REFUSALS = {"refusing": -32602, "refusing in general": -32000}
TEXT = b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "TOLD"}]}}'
ANSWERS = {
    "half a character": TEXT.replace(b"TOLD", b"caf\\ud83d"),
    "bytes that are no text": TEXT.replace(b"TOLD", b"caf\xe9"),
    "no result": b'{"jsonrpc": "2.0", "id": %d, "result": null}',
    "no error": b'{"jsonrpc": "2.0", "id": %d, "error": "the quay is shut"}',
}
"""What a call is answered with, byte by byte."""


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(request: dict[str, Any]) -> dict[str, Any] | None:
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        has = {} if HABIT == "no tools" else {"tools": {}}
        return {"protocolVersion": "2025-06-18", "capabilities": has, "serverInfo": {"name": "odd", "version": "1"}}
    if method == "tools/list":
        return listing(params.get("cursor"))
    if method == "tools/call":
        return called(params)
    return None


def listing(cursor: str | None) -> dict[str, Any]:
    if HABIT == "bad list":
        return {"tools": "none"}
    if HABIT == "circles":
        return {"tools": [ECHO], "nextCursor": "again"}
    if HABIT == "pages":
        number = int(cursor or 0)
        page = {"tools": [{**ECHO, "name": f"echo{number}"}]}
        return page if number == 3 else {**page, "nextCursor": str(number + 1)}
    return {"tools": LISTS.get(HABIT, [ECHO])}


def called(params: dict[str, Any]) -> dict[str, Any]:
    if HABIT == "bad result":
        return {"content": "not a list"}
    if HABIT == "no number":
        return {"content": [], "structuredContent": {"depth": float("nan"), "reach": [1.5, float("-inf")]}}
    if HABIT == "no number twice":
        return {"content": [{"type": "text", "text": '{"depth": NaN}'}], "structuredContent": {"depth": float("nan")}}
    if HABIT in ("other structure", "no schema"):
        return {"content": [], "structuredContent": {"length": 3}}
    if HABIT == "mute":
        print("this is no message", flush=True)
        time.sleep(600)
    if HABIT == "closes":
        os.close(1)
        time.sleep(600)
    said = json.dumps(params.get("_meta") if HABIT == "meta" else params.get("arguments"))
    if HABIT == "stubborn":
        said = str(os.getpid())
    return {"content": [{"type": "text", "text": said}]}


def say_goodbye() -> None:
    """Answer nothing, and end as soon as nobody asks any more."""
    print("at the quay", file=sys.stderr)
    sys.stdin.read()
    print("left in good order", file=sys.stderr)


def main() -> None:
    if HABIT == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if HABIT == "crash":
        print("first line\nno such harbour", file=sys.stderr)
        sys.exit(1)
    if HABIT == "polite":
        say_goodbye()
    for line in sys.stdin:
        if HABIT == "silent":
            continue
        if HABIT in ("garbage", "noisy"):
            print("hello from a print that should not be there", flush=True)
        request = json.loads(line)
        if HABIT == "garbage" or "id" not in request:
            continue
        result = answer(request)
        if HABIT in ANSWERS and request["method"] == "tools/call":
            os.write(1, ANSWERS[HABIT] % request["id"] + b"\n")
        elif HABIT in REFUSALS and request["method"] == "tools/call":
            send({"id": request["id"], "error": {"code": REFUSALS[HABIT], "message": "no such berth"}})
        elif result is None:
            send({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
        else:
            send({"id": request["id"], "result": result})
    if HABIT == "stubborn":
        time.sleep(600)


if __name__ == "__main__":
    main()
