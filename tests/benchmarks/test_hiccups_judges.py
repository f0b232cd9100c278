"""The runs with hiccups are judged by their answer, by how often the tool ran, and by what the server was asked."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "hiccups"


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    for module in ("table", "_server"):
        monkeypatch.delitem(sys.modules, module, raising=False)


def outcome(**seen: Any) -> Any:
    usual = {"wire": "anthropic", "kind": "503", "turn": 1, "streamed": True, "good": True, "ran": 1}
    return import_module("table").Outcome(**{**usual, "requests": 1, "seconds": 0.6, "said": "done", **seen})


def test_a_cell_says_how_many_ended_well_with_how_many_requests_more_and_in_what_time():
    cell = import_module("table")._cell
    assert cell([outcome(), outcome(seconds=0.8), outcome(seconds=0.7)]) == "3 of 3, +1, 0.7 s"
    assert cell([outcome(), outcome(requests=3)]) == "2 of 2, +1 to +3, 0.6 s"
    assert cell([outcome(), outcome(good=False, seconds=9.0)]) == "**1 of 2**, +1, 0.6 s"
    assert (cell([outcome(good=False)]), cell([])) == ("**0 of 1**", "–")


@pytest.mark.parametrize(("turn", "told"), [(1, ["503", "", ""]), (2, ["", "503", ""])])
def test_a_request_fails_in_its_turn_as_often_as_the_models_name_says(turn: int, told: list[str]):
    provider = import_module("_server").Provider()
    asked = f'{{"model": "hiccup_503_{turn}_1_c7"}}'.encode()
    behind = asked + b'{"tool_call_id": "call_1"}'
    assert [provider.fails(body) for body in (asked, behind, behind)] == told
    assert provider.requests["c7"] == 3
