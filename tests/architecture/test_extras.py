"""A package that is missing or too old is named, with the release that is needed."""

import re
import tomllib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

from suture._extras import check_version, import_extra
from suture.errors import ConfigError
from suture.integrations.openai import wrap


@pytest.mark.parametrize("needed", ["999", "999.1.2", f"{version('msgspec')}.1"])
def test_a_release_that_is_too_old_is_named_with_the_one_that_is_needed(needed: str):
    said = (
        f"this needs msgspec>={needed}, and msgspec {version('msgspec')} is installed: pip install 'msgspec>={needed}'"
    )
    with pytest.raises(ConfigError) as raised:
        import_extra("msgspec", f"msgspec>={needed}")
    assert str(raised.value) == said


@pytest.mark.parametrize("needed", [version("msgspec"), "0.18", "0"])
def test_a_release_that_is_new_enough_passes(needed: str):
    assert import_extra("msgspec", f"msgspec>={needed}").json


def _old_release(_: str) -> str:
    return "2.53.0"


def test_a_client_of_an_old_release_is_refused(monkeypatch: pytest.MonkeyPatch):
    openai = pytest.importorskip("openai")
    check_version.cache_clear()
    monkeypatch.setattr("importlib.metadata.version", _old_release)
    with pytest.raises(ConfigError, match=r"needs openai>=2.54, and openai 2.53.0 is installed"):
        wrap(openai.OpenAI(api_key="none"))
    check_version.cache_clear()


@pytest.mark.parametrize(
    ("extra", "module"),
    [
        ("langchain", "langchain.PatchToolCallsMiddleware"),
        ("pydantic-ai", "pydantic_ai.PatchToolCalls"),
        ("openai-agents", "openai_agents.PatchToolCalls"),
        ("google-adk", "google_adk.PatchToolCalls"),
        ("strands", "strands.PatchToolCalls"),
        ("agent-framework", "agent_framework.PatchToolCalls"),
    ],
)
def test_a_guest_without_its_framework_says_what_to_install(extra: str, module: str):
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    (needed,) = project["optional-dependencies"][extra]
    room, name = module.split(".")
    with pytest.raises(ConfigError, match=re.escape(f"which is not installed: pip install '{needed}'")):
        getattr(import_module(f"suture.integrations.{room}"), name)
