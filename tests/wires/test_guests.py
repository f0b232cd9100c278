"""Wires for other frameworks' messages: known by name, loaded when they are met, and clear where they cannot be."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

import suture
from suture.errors import ConfigError
from suture.wires import GUEST_WIRES, get_wire, recognise

FRAMEWORKS = {"langchain": "langchain_core", "pydantic-ai": "pydantic_ai", "agent-framework": "agent_framework"}


def test_each_guest_is_known_by_name():
    assert set(GUEST_WIRES) == set(FRAMEWORKS)
    with pytest.raises(ConfigError, match=r"unknown wire 'lang'; known: message, .*, langchain, pydantic-ai"):
        get_wire("lang")


@pytest.mark.parametrize("wire", [wire for wire, package in FRAMEWORKS.items() if find_spec(package) is None])
def test_a_guest_whose_framework_is_not_installed_says_what_to_install(wire: str):
    with pytest.raises(ConfigError, match=rf"\(extra {wire}\), and \S+ is not installed: "):
        suture.repair([], wire=wire)


def test_an_object_of_a_package_that_only_looks_like_a_guest_is_none():
    looks = type("Message", (), {"__module__": "langchain_corexyz.messages", "role": "user", "content": "hi"})
    assert recognise([looks()]) == ("openai-chat",)


def test_nothing_of_a_guest_is_loaded_before_it_is_met():
    script = """
import sys, suture
suture.repair([{"role": "user", "content": "hi"}], wire="openai-chat")
print([name for name in sys.modules if name.startswith(("suture.integrations", "langchain", "pydantic_ai", "agents"))])
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.strip() == "[]"
