"""Answers of a type, as type checkers see them."""

from dataclasses import dataclass
from typing import Any, assert_type

from suture import ChatModelAgent
from suture.testing import ScriptedModel


@dataclass
class City:
    name: str


@dataclass
class Harbour:
    depth: int


def main() -> None:
    model = ScriptedModel(['{"name": "Dover"}', '[{"name": "Dover"}]', '{"depth": 9}', "true", "fog"])
    assert_type(ChatModelAgent(model=model, output_type=City).run_sync("hi").output, City)
    assert_type(ChatModelAgent(model=model, output_type=list[City]).run_sync("hi").output, list[City])
    either: Any = assert_type(ChatModelAgent(model=model, output_type=City | Harbour).run_sync("hi").output, Any)
    print(either.depth)
    assert_type(ChatModelAgent(model=model, output_type=bool).run_sync("hi").output, bool)
    typed: ChatModelAgent[City | None] = ChatModelAgent(model=model, output_type=City | None)
    print(typed.name)
    assert_type(ChatModelAgent(model=model).run_sync("hi").output, str)


if __name__ == "__main__":
    main()
