"""Recorded exchanges with providers, where the corpus is on this machine."""

import json
from base64 import b64decode
from typing import Any, NamedTuple

from tests.corpus import ROOT


class Exchange(NamedTuple):
    """One request and the response to it: the body of a stream as the bytes that came."""

    url: str
    request: dict[str, Any]
    status: int
    headers: dict[str, str]
    body: bytes

    def __repr__(self) -> str:
        return f"<exchange with {self.url}>"


def recordings(folder: str) -> list[tuple[str, list[Exchange]]]:
    """Return the recordings of one folder by name; none where there is no corpus."""
    found: list[tuple[str, list[Exchange]]] = []
    for path in sorted(ROOT.glob(f"recordings/{folder}/*.json")):
        interactions = json.loads(path.read_text(encoding="utf-8"))["interactions"]
        found.append((path.stem, [_exchange(interaction) for interaction in interactions]))
    return found


def _exchange(interaction: dict[str, Any]) -> Exchange:
    request, response = interaction["request"], interaction["response"]
    body = response["body"]
    data = b64decode(body) if response.get("bodyEncoding") == "base64" else body.encode()
    return Exchange(request["url"], json.loads(request["body"]), response["status"], response["headers"], data)
