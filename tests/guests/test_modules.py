"""The modules that stand in other frameworks explain themselves, and their examples run."""

import doctest
import importlib
from pathlib import Path

import pytest

from tests.guest_modules import is_guest

ROOM = Path(__file__).parents[2] / "src" / "suture" / "integrations"
PATHS = [file.relative_to(ROOM.parents[1]).with_suffix("") for file in sorted(ROOM.rglob("*.py"))]
MODULES = [name for path in PATHS if is_guest(name := ".".join(path.parts).removesuffix(".__init__"))]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_a_module_run(name: str):
    if name.endswith(".litellm"):
        pytest.importorskip("litellm", reason="its releases do not go with the newest SDKs")
    assert doctest.testmod(importlib.import_module(name)).failed == 0
