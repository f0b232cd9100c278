"""The samples of docs/guests/others.md, against a strict server, where their frameworks are installed."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from tests.docs.pages import DOCS, blocks
from tests.guests.strict_provider import Script, strict_provider

PAGE = DOCS / "guests" / "others.md"
MARKED = [block for block in blocks(PAGE) if block.info.startswith("python others")]
HISTORY = MARKED[0].body
SAMPLES = [(block.info.split()[2], block.body) for block in MARKED[1:]]
EACH = pytest.mark.parametrize(
    ("framework", "body"), SAMPLES, ids=[f"{n}-{name}" for n, (name, _) in enumerate(SAMPLES)]
)
pytestmark = pytest.mark.filterwarnings("ignore")  # these are others' warnings


def is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    with strict_provider('{"text": "Very well."}') as made:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{made.url}/v1")
        monkeypatch.setenv("OPENAI_API_BASE", f"{made.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        yield made
        if "litellm" in sys.modules:
            vars(sys.modules["litellm"])["callbacks"] = []


def run(body: str) -> None:
    exec(HISTORY + body, {"__name__": "sample"})


@EACH
def test_a_sample_is_accepted(framework: str, body: str, server: Script):
    if not is_installed(framework):
        pytest.skip(f"{framework} is not installed")
    run(body)
    assert server.refused == []
    assert [message["role"] for message in server.bodies[-1]["messages"]][-3:] == ["assistant", "tool", "user"]


@EACH
def test_without_suture_it_is_refused(framework: str, body: str, server: Script):
    if not is_installed(framework):
        pytest.skip(f"{framework} is not installed")
    without = (
        body.replace("wrap(OpenAI())", "OpenAI()")
        .replace("[Repairing()]", "[]")
        .replace("messages=sent", "messages=history")
    )
    assert without != body
    refusal: Any = pytest.raises(Exception)  # noqa: PT011 - each framework has its own
    with refusal:
        run(without)
    assert server.refused
