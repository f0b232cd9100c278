"""The tools of a server as an agent has them: names, schemas, descriptions, what they say of themselves."""

import asyncio
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture import ChatModelAgent, ConfigError, Tool
from suture.integrations.mcp import MCPServer, safe_names
from tests.integrations.mcp.calling import model_that, odd, results, sound, texts


def entered(server: MCPServer) -> tuple[Tool[..., Any], ...]:
    async def main() -> tuple[Tool[..., Any], ...]:
        async with server:
            return server.tools

    return asyncio.run(main())


def names(server: MCPServer) -> list[str]:
    return [tool.name for tool in entered(server)]


def test_a_server_shows_its_tools_with_their_schemas_as_they_are():
    tools = {tool.name: tool for tool in entered(sound())}
    assert tools["tides"].info.description == "Look up the high tide."
    assert tools["tides"].info.parameters == {
        "type": "object",
        "title": "tidesArguments",
        "properties": {
            "port": {"title": "Port", "type": "string"},
            "day": {"title": "Day", "type": "integer", "default": 1},
        },
        "required": ["port"],
    }


def test_only_what_says_that_it_may_run_twice_is_idempotent():
    flags = {tool.name: tool.idempotent for tool in entered(sound(include=["depths", "files.read", "sink", "tides"]))}
    assert flags == {"depths": True, "files_read": True, "sink": False, "tides": False}


def test_a_tool_without_a_description_is_described_by_its_title():
    (tool,) = entered(odd("titles"))
    assert tool.info.description == "A plain tool"


def test_every_tool_of_every_page_is_there():
    assert names(odd("pages")) == ["echo0", "echo1", "echo2", "echo3"]


def test_a_server_without_tools_has_none():
    assert names(odd("no tools")) == []


def test_names_that_a_provider_would_refuse_are_changed_and_none_is_lost_or_alike():
    dotted, plain, spaced, long = names(odd("many names"))
    assert plain == "a_b"
    assert re.fullmatch("a_b_[0-9a-f]{6}", dotted)
    assert re.fullmatch("a_b_[0-9a-f]{6}", spaced)
    assert dotted != spaced
    assert re.fullmatch("x{57}_[0-9a-f]{6}", long)


def test_a_changed_name_still_calls_the_tool_that_it_stands_for():
    async def main() -> list[str]:
        async with sound(prefix="quay_") as server:
            return await texts(server, ("quay_files_read", '{"path": "log"}'))

    assert asyncio.run(main()) == ['{\n  "path": "log",\n  "lines": 2\n}']


def test_include_exclude_and_prefix_say_what_is_offered():
    chosen = sound(prefix="port-", include=["tides", "sink", "files.read"], exclude=["sink"])
    assert names(chosen) == ["port-tides", "port-files_read"]


@pytest.mark.parametrize("choice", [{"include": ["tide"]}, {"exclude": ["tide"]}])
def test_a_name_that_the_server_does_not_have_is_refused(choice: Any):
    with pytest.raises(ConfigError, match=f"{next(iter(choice))}: .* has no tool 'tide'; it has echo"):
        entered(odd("sound", **choice))


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"include": "tides"}, "Expected `array | null`, got `str` - at `include`"),
        ({"exclude": [3]}, "Expected `str`, got `int` - at `exclude"),
        ({"prefix": "my tools: "}, "Expected `str` matching regex .* - at `prefix`"),
        ({"prefix": "x" * 64}, "Expected `str` matching regex .* - at `prefix`"),
        ({"timeout": 0}, "Expected `int` >= 1 - at `timeout`"),
        ({"timeout": True}, "Expected `int | float | null`, got `bool` - at `timeout`"),
        ({"env": {"A": 1}}, "Expected `str`, got `int` - at `env"),
        ({"prefx": "a"}, "unknown field `prefx`"),
    ],
)
def test_a_wrong_choice_is_refused_before_anything_is_started(choice: Any, said: str):
    with pytest.raises(ConfigError, match=said):
        odd("sound", **choice)


def test_a_server_is_named_by_a_program_or_an_address():
    with pytest.raises(ConfigError, match="Expected `array`, got `str` - at `args`"):
        MCPServer.stdio("python", "server.py")
    with pytest.raises(ConfigError, match="Expected `str` of length >= 1 - at `command`"):
        MCPServer.stdio("")
    with pytest.raises(ConfigError, match=r"Expected `str` matching regex .* - at `url`"):
        MCPServer.http("127.0.0.1:8000")


def test_wrong_arguments_are_told_to_the_model_without_asking_the_server():
    async def main() -> list[tuple[str, bool]]:
        async with sound(include=["tides"]) as server:
            found = await results(server, ("tides", "{}"), ("tides", '{"port": 3}'), ("tides", '{"po'), ("tides", "[]"))
            return [(message.content, message.is_error) for message in found]

    missing, wrong, cut, no_object = asyncio.run(main())
    assert missing == ("arguments.port: missing", True)
    assert wrong == ("arguments.port: expected string, got integer", True)
    assert cut == ("the arguments are not valid JSON: input data was truncated", True)
    assert no_object == ("the arguments must be one JSON object, got array", True)


def test_options_of_a_run_are_not_sent_to_the_server():
    async def main() -> Any:
        async with odd("sound") as server:
            agent = ChatModelAgent(model=model_that(("echo", '{"say": "ahoy"}')), tools=server.tools)
            return (await agent.run("hi", tool_options={"tenant": "harbour master"})).messages[2].content

    assert asyncio.run(main()) == '{"say": "ahoy"}'


@given(st.lists(st.text("ab._ é", max_size=70) | st.text(max_size=80)), st.sampled_from(["", "p_"]))
def test_names_are_safe_different_and_the_same_in_any_order(given_names: list[str], prefix: str):
    made = safe_names(given_names, prefix)
    assert set(made) == set(given_names)
    assert len(set(made.values())) == len(made)
    assert all(1 <= len(name) <= 64 and name.replace("_", "a").replace("-", "a").isalnum() for name in made.values())
    assert all(name.isascii() for name in made.values())
    assert safe_names(reversed(given_names), prefix) == made


@given(st.lists(st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True)))
def test_a_name_that_is_accepted_everywhere_stays_as_it_is(given_names: list[str]):
    assert safe_names(given_names) == {name: name for name in given_names}
