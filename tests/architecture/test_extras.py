"""A package that is too old is named, with the release that is needed."""

from importlib.metadata import version

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
