"""The modules that stand in other frameworks explain themselves, and their examples run."""

import doctest
import importlib
from pathlib import Path

import pytest

from tests.guest_modules import is_guest

ROOM = Path(__file__).parents[2] / "src" / "suture" / "integrations"
MODULES = [name for file in sorted(ROOM.glob("*.py")) if is_guest(name := f"suture.integrations.{file.stem}")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_a_module_run(name: str):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
