"""Models by their names."""

import sys
from pathlib import Path
from typing import Any

import pytest

from suture import ChatModelAgent
from suture.errors import ConfigError
from suture.models import PROVIDERS, get_model

CLASSES = {
    "openai:gpt-5-mini": ("OpenAIChatModel", "openai-chat"),
    "openai-responses:gpt-5": ("OpenAIResponsesModel", "openai-responses"),
    "anthropic:claude-sonnet-4-5": ("AnthropicModel", "anthropic"),
    "gemini:gemini-2.5-flash": ("GeminiModel", "gemini"),
    "bedrock:us.amazon.nova-micro-v1:0": ("BedrockModel", "bedrock"),
    "ollama:qwen3": ("OpenAIChatModel", "openai-chat"),
    "local": ("LocalModel", "openai-chat"),
}


@pytest.mark.parametrize("name", CLASSES)
def test_a_name_says_which_model(name: str):
    model: Any = get_model(name)
    assert (type(model).__name__, model.profile) == CLASSES[name]
    assert model.wire == "message"


def test_only_the_first_colon_divides():
    assert get_model("bedrock:us.amazon.nova-micro-v1:0").model == "us.amazon.nova-micro-v1:0"


SERVERS = {
    "deepseek": ("DEEPSEEK_API_KEY", "deepseek"),
    "mistral": ("MISTRAL_API_KEY", "mistral"),
    "moonshot": ("MOONSHOT_API_KEY", "kimi"),
    "openrouter": ("OPENROUTER_API_KEY", "openai-chat"),
    "groq": ("GROQ_API_KEY", "groq"),
}


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_that_speaks_alike_has_its_own_key_and_rules(server: str, monkeypatch: pytest.MonkeyPatch):
    key, profile = SERVERS[server]
    monkeypatch.setenv(key, "sk-own")
    model: Any = get_model(f"{server}:some-model")
    assert (model.api_key, model.profile) == ("sk-own", profile)
    assert model.base_url.startswith("https://")


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_without_its_key_says_which_to_set(server: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(SERVERS[server][0], raising=False)
    with pytest.raises(ConfigError, match=SERVERS[server][0]):
        get_model(f"{server}:some-model")


@pytest.mark.parametrize("name", ["openai", "openai:", ":x", "", "anthropic:", "groq:"])
def test_half_a_name_is_told_how_a_whole_one_looks(name: str):
    with pytest.raises(ConfigError, match="provider:model, such as openai:gpt-5-mini"):
        ChatModelAgent(model=name)


def test_an_unknown_provider_is_told_which_there_are():
    with pytest.raises(ConfigError) as caught:
        get_model("opnai:gpt-5")
    assert all(name in str(caught.value) for name in PROVIDERS)


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = "models_of_my_own"
    (tmp_path / f"{name}.py").write_text(
        "from suture.testing import ScriptedModel\nmine = ScriptedModel(['hello'])\nnumber = 7\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def test_a_model_of_your_own_is_named_by_its_module(own_module: str):
    assert ChatModelAgent(model=f"{own_module}:mine").run_sync("hi").output == "hello"


def test_a_module_without_that_name_and_a_thing_that_is_no_model_are_told_apart(own_module: str):
    with pytest.raises(ConfigError, match=f"module {own_module} has no 'yours'"):
        get_model(f"{own_module}:yours")
    with pytest.raises(ConfigError, match=f"{own_module}:number is no model"):
        get_model(f"{own_module}:number")


@pytest.mark.parametrize(("name", "meant"), [("antropic:claude", "anthropic"), ("google:gemini-2.5-flash", "gemini")])
def test_a_provider_that_is_almost_one_is_guessed(name: str, meant: str):
    with pytest.raises(ConfigError, match=rf"did you mean {meant}:\?"):
        get_model(name)


@pytest.mark.parametrize(
    ("provider", "hint"),
    [
        ("azure", "client=openai.AsyncAzureOpenAI"),
        ("vertexai", "client=genai.Client(vertexai=True"),
        ("xai", "base_url="),
    ],
)
def test_a_provider_without_a_name_of_its_own_says_which_model_asks_it(provider: str, hint: str):
    with pytest.raises(ConfigError) as caught:
        get_model(f"{provider}:m")
    assert f"{provider!r} is no provider" in str(caught.value)
    assert hint in str(caught.value)


def test_the_settings_of_a_model_go_with_its_name(monkeypatch: pytest.MonkeyPatch):
    model: Any = get_model("openai:gpt-4.1", options={"temperature": 0}, timeout=30)
    assert (model.options, model.limits.silence) == ({"temperature": 0}, 30)
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    other: Any = get_model("groq:llama", api_key="of-my-own", timeout=30)
    assert (other.api_key, other.limits.silence, other.base_url) == ("of-my-own", 30, "https://api.groq.com/openai/v1")
    with pytest.raises(ConfigError, match="here it is called: timout"):
        get_model("openai:gpt-4.1", timout=30)
    with pytest.raises(
        ConfigError, match="'collections:deque' is no provider's model, and takes no settings here: timeout"
    ):
        get_model("collections:deque", timeout=30)
