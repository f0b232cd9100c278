"""A value of a wrong type, anywhere in a history: refused with its message, or mended. Never an error of our own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from suture.cli.files import open_source
from suture.errors import ConfigError, InputError
from suture.repair import repair

SAMPLES = sorted((Path(__file__).parents[2] / "examples" / "samples").iterdir())
WRONG = (None, True, 5, 1.5, "x", [], [None], ["x"], {}, {"a": 1})


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to everything inside `value`."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield (*way, key)
        yield from places(inner, (*way, key))


def changed(value: Any, way: tuple[Any, ...], new: Any) -> Any:
    """Return `value` with what stands at `way` replaced by `new`."""
    if not way:
        return new
    twin = value.copy()
    twin[way[0]] = changed(value[way[0]], way[1:], new)
    return twin


@pytest.mark.parametrize("told", [False, True], ids=["recognised", "told"])
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_wrong_type_at_any_place_is_refused_or_mended(path: Path, told: bool):
    wire = path.name.partition(".")[0] if told else None
    faults: list[str] = []
    with open_source(str(path)) as source:
        conversation = next(iter(source))
    for way in places(conversation.stored):
        for new in WRONG:
            twin = conversation._replace(stored=changed(conversation.stored, way, new))
            try:
                taken, found = twin.take(wire)
                twin.encode(twin.give(taken, repair(taken, wire=found).messages))
            except (InputError, ConfigError, RecursionError) as error:
                refusal = twin.refuse(error)
                if not any(place.startswith("message ") for place in refusal.places):
                    faults.append(f"{json.dumps(new)} at {way}: {refusal} does not say which message")
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                faults.append(f"{json.dumps(new)} at {way}: {type(error).__name__}: {error}")
    assert faults == []
