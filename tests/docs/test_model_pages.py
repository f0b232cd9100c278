"""What the pages on models, on moving between them and on errors say is what the code has."""

import inspect
import re
from importlib import import_module
from typing import Any

import pytest

import suture
from suture import codecs, errors, models
from suture.codecs import CODECS, Codec, Lost, Request, get_codec
from suture.messages import AgenticMessage, ToolInfo
from suture.models import PROVIDERS, LocalModel, OpenAIChatModel, get_model
from suture.models.provider import Settings
from tests.docs.pages import DOCS, blocks, code, named, prose, table
from tests.models.local.asking import needs_model

MODELS, MOVING, ERRORS = DOCS / "models.md", DOCS / "moving.md", DOCS / "errors.md"
TIDES = ToolInfo("tides", "Look it up.", {"type": "object", "properties": {"port": {"type": "string"}}})
ASKED = {
    "max_tokens": 100,
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 4,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
    "seed": 7,
    "stop": ["END"],
    "tool_choice": "tides",
    "parallel_tool_calls": False,
    "output_schema": {"type": "object", "properties": {}},
}


# --- models.md --------------------------------------------------------------------------------


def test_every_prefix_of_a_name_has_a_row():
    assert [prefix.rstrip(":") for prefix in named(MODELS, "prefix")] == list(PROVIDERS)


@pytest.mark.parametrize("row", table(MODELS, "prefix")[1:], ids=lambda row: code(row[0]))
def test_a_name_gives_the_class_that_its_row_says_and_asks_for_the_key_that_it_says(
    row: list[str], monkeypatch: pytest.MonkeyPatch
):
    keys = re.findall("`([A-Z_]+)`", row[3])
    for key in keys:
        monkeypatch.setenv(key, "sk-none")
    model: Any = get_model(f"{code(row[0])}some-model")
    assert type(model).__name__ == code(row[1])
    if model.base_url is None:
        assert keys[0] in model.key_from
    elif keys:
        monkeypatch.delenv(keys[0])
        with pytest.raises(suture.ConfigError, match=keys[0]):
            get_model(f"{code(row[0])}some-model")


@needs_model
def test_the_local_model_is_the_class_that_its_row_says():
    assert type(get_model("local")).__name__ == code(table(MODELS, "prefix")[0][1])


def test_every_setting_of_a_model_is_explained_with_its_default():
    assert set(named(MODELS, "setting")) == {*Settings.__annotations__, "wire"}
    model = OpenAIChatModel("m")
    told = {code(row[0]): row[1].strip("`") for row in table(MODELS, "setting")}
    limits = model.limits
    names = ("connect_timeout", "timeout", "total_timeout")
    assert [repr(seconds) for seconds in limits] == [told[name] for name in names]
    assert repr(model.streaming) == told["streaming"]
    assert told["wire"].strip('"') == model.wire


def test_every_setting_of_the_local_model_is_explained_with_its_default():
    rows = {code(row[0]): row for row in table(MODELS, "setting of `LocalModel`")}
    taken = {name: one for name, one in inspect.signature(LocalModel.__init__).parameters.items() if name != "self"}
    assert set(rows) == set(taken)
    for name, parameter in taken.items():
        assert repr(parameter.default).replace("'", '"') == rows[name][1].strip("`"), name


def keys_in(value: Any) -> set[str]:
    """Return every name that is used in a payload."""
    if isinstance(value, list):
        return {key for item in value for key in keys_in(item)}
    return {*value, *(key for item in value.values() for key in keys_in(item))} if isinstance(value, dict) else set()


@pytest.mark.parametrize("codec", CODECS)
def test_an_option_is_written_as_its_row_says_or_told_as_lost(codec: str):
    assert f"\n| option | {' | '.join(CODECS)} |\n" in prose(MODELS)
    rows = {code(row[0]): row for row in table(MODELS, "option")}
    place = 1 + CODECS.index(codec)
    assert set(rows) == set(ASKED)
    user = [AgenticMessage.user("hi")]
    plain = keys_in(get_codec(codec).encode_request(Request(user, "", [TIDES])).payload)
    for option, value in ASKED.items():
        payload, losses = get_codec(codec).encode_request(Request(user, "", [TIDES], {option: value}))
        written = code(rows[option][place])
        if written == "None":
            assert [(loss.name, loss.what) for loss in losses] == [(Lost.OPTION, option)]
            assert keys_in(payload) == plain
        else:
            assert losses == ()
            assert written in keys_in(payload) - (plain - {"max_tokens"})


def test_every_name_of_the_models_room_is_on_the_page():
    told = MODELS.read_text(encoding="utf-8") + (DOCS / "middleware.md").read_text(encoding="utf-8")
    assert [one for one in models.__all__ if not re.search(rf"\b{one}\b", told)] == []


# --- moving.md --------------------------------------------------------------------------------


def test_every_kind_of_loss_is_explained():
    assert named(MOVING, "name") == [lost.value for lost in Lost]


def test_every_method_of_a_codec_is_explained():
    told = {method.partition("(")[0] for method in named(MOVING, "method of a codec")}
    inner = {"read_messages", "read_request", "read_system", "write_system", "system_field", "link"}
    inner |= {"has_bytes", "read_reply", "read_message", "learn", "plain"}
    assert told == {name for name in vars(Codec) if not name.startswith("_") and name != "name"} - inner


def test_every_name_of_the_codecs_room_is_on_the_page_or_in_its_classes():
    told = MOVING.read_text(encoding="utf-8")
    inner = {"Codec", "Converted", "Framing", "StreamReader"}
    assert [one for one in codecs.__all__ if one not in inner and not re.search(rf"\b{one}\b", told)] == []


# --- errors.md --------------------------------------------------------------------------------


def test_every_error_has_a_row_and_its_place_in_the_tree():
    assert sorted(named(ERRORS, "error")) == sorted(errors.__all__)
    drawn = next(block.body for block in blocks(ERRORS) if block.body.startswith("SutureError"))
    parents: dict[int, str] = {}
    for line in drawn.splitlines():
        found = re.match(r"([│├└─ ]*)(\w+)", line)
        assert found
        depth, error = len(found[1]) // 4, found[2]
        parents[depth] = error
        assert depth == 0 or vars(errors)[parents[depth - 1]] in vars(errors)[error].__bases__, line
    assert sorted(re.findall(r"^[│├└─ ]*(\w+)", drawn, re.MULTILINE)) == sorted(errors.__all__)


@pytest.mark.parametrize("row", table(ERRORS, "error"), ids=lambda row: code(row[0]))
def test_what_a_row_says_of_trying_again_is_what_the_error_says(row: list[str]):
    retryable = getattr(vars(errors)[code(row[0])], "retryable", None)
    if row[2] == "yes":
        assert retryable is True
    elif row[2] == "no":
        assert not retryable


def test_every_field_of_a_model_error_is_explained():
    assert sorted(named(ERRORS, "field of `ModelError`")) == sorted({*inspect.signature(suture.ModelError).parameters})


def test_every_error_of_a_room_is_where_the_page_says():
    for row in table(ERRORS, "error of a module"):
        for room in re.findall("`([^`]+)`", row[1]):
            assert issubclass(getattr(import_module(room), code(row[0])), suture.SutureError)
