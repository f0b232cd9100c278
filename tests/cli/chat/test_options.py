"""What a chat is started with: models and tools by name, and one line for what cannot be."""

import pytest

from tests.cli.chat.harbour import Harbour
from tests.cli.program import without


@pytest.mark.parametrize(
    ("name", "count", "said", "told"),
    [
        ("harbour:tides", 1, "tide", "06:12 in Dover"),
        ("harbour:depth", 1, "depth", "3 fathoms"),
        ("harbour:Shed.tools", 2, "depth", "3 fathoms"),
    ],
    ids=["a tool", "a function", "a tuple inside something"],
)
def test_tools_are_found_by_name_in_the_current_directory(
    harbour: Harbour, name: str, count: int, said: str, told: str
):
    harbour.tools = name
    assert f"It says: {told}\n" in harbour.pipe(f"{said}\n").out
    with harbour.terminal() as terminal:
        assert terminal.screen().startswith(f"harbour:model, {count} tool{'s' * (count > 1)}.")


def test_tools_of_several_options_come_together(harbour: Harbour):
    done = harbour.pipe("depth\ntide\n", "--tools", "harbour:depth")
    assert "It says: 3 fathoms\n" in done.out
    assert "It says: 06:12 in Dover\n" in done.out


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("tides", "expected MODULE:NAME"),
        ("harbour:", "expected MODULE:NAME"),
        (":tides", "expected MODULE:NAME"),
        ("no_such_module:tides", "no_such_module cannot be imported: ModuleNotFoundError: No module named"),
        ("harbour:no_such_tool", "there is no no_such_tool in harbour ("),
        ("harbour:EVIL", "item 0 is a str, not a tool"),
        ("harbour:Shed", "item 0 is the class Shed, not a tool"),
        ("harbour:CALLS", "item 0 is a dict, not a tool"),
        ("harbour:tides", "are both called 'tides'"),
        ("broken:tides", "broken cannot be imported: ZeroDivisionError: division by zero"),
        ("leaves:tides", "leaves cannot be imported: SystemExit: 3"),
        ("broken\x1b]0;x\x07:tides", "broken\\x1b]0;x\\x07 cannot be imported: "),
    ],
)
def test_tools_that_cannot_be_had_are_told_in_one_line(harbour: Harbour, name: str, told: str):
    (harbour.directory / "broken.py").write_text("1 / 0", encoding="utf-8")
    (harbour.directory / "leaves.py").write_text("raise SystemExit(3)", encoding="utf-8")
    done = harbour.pipe("hello\n", "--tools", name)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("suture: --tools")
    assert told in done.err
    assert done.err.removesuffix("\n").isprintable()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nobody", "suture: --model nobody: "),
        ("nobody:nothing", "suture: --model nobody:nothing: "),
        ("openai:", "suture: --model openai:: "),
        ("harbour:no_such_model", "suture: --model harbour:no_such_model: "),
        ("harbour:nothing", "suture: --model harbour:nothing: "),
        (
            "harbour:openai",
            "suture: --model harbour:openai: speaks openai-chat; a chat takes a model that speaks one of",
        ),
        ("broken:model", "suture: --model broken:model: ZeroDivisionError: division by zero"),
    ],
)
def test_a_model_that_cannot_be_had_is_told_in_one_line(harbour: Harbour, name: str, told: str):
    (harbour.directory / "broken.py").write_text("1 / 0", encoding="utf-8")
    done = harbour.pipe("hello\n", "--model", name)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(told)


def test_a_key_that_is_missing_is_told_in_one_line(harbour: Harbour):
    done = harbour.pipe_apart("hello\n", "--model", "groq:some-model", GROQ_API_KEY="")
    assert done == (2, "", "suture: --model groq:some-model: groq:some-model has no key: set GROQ_API_KEY\n")


def test_the_instruction_and_the_limit_reach_the_model(harbour: Harbour):
    options = ("--model", "harbour:limits", "--instruction", "Answer briefly.", "--max-reply", "7")
    assert harbour.pipe("hello\n", *options).out == "Answer briefly. {'max_tokens': 7}\n"
    assert harbour.pipe("hello\n", "--model", "harbour:limits").out == " {}\n"


@pytest.mark.parametrize("options", [("--max-reply", "0"), ("--max-tokens", "few"), ("talk.json",), ("--mod", "x")])
def test_a_command_that_makes_no_sense_is_told_in_one_line(harbour: Harbour, options: tuple[str, ...]):
    done = harbour.pipe("hello\n", *options)
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)


def test_a_module_that_is_installed_is_not_hidden_by_one_in_the_current_directory(harbour: Harbour):
    (harbour.directory / "colorsys.py").write_text("raise RuntimeError('the wrong one')", encoding="utf-8")
    (harbour.directory / "paint.py").write_text("import colorsys\nfrom harbour import tides", encoding="utf-8")
    harbour.tools = "paint:tides"
    assert "It says: 06:12 in Dover\n" in harbour.pipe("tide\n").out


@pytest.mark.parametrize("missing", ["prompt_toolkit", "rich"])
def test_without_the_extra_a_chat_says_in_one_line_how_to_install_it(harbour: Harbour, missing: str):
    status, out, err = harbour.pipe_apart("hello\n", **without(missing, harbour.directory / "hidden"))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"(extra cli), and {missing} is not installed: " in err
