"""A conversation that the model begins, behind a system message."""

import pytest

import suture
from suture.messages import AgenticMessage, Message

HISTORIES = {
    "message": [Message.system("Be brief."), Message.assistant("Hello!"), Message.user("Hi.")],
    "agentic": [AgenticMessage.system("Be brief."), AgenticMessage.assistant("Hello!"), AgenticMessage.user("Hi.")],
}


@pytest.mark.parametrize("wire", HISTORIES)
@pytest.mark.parametrize("profile", ["gemini", "bedrock"])
def test_where_the_system_is_kept_outside_the_user_is_put_first(wire: str, profile: str):
    fixed = suture.repair(HISTORIES[wire], profile=profile)
    assert [message.role for message in fixed.messages] == ["system", "user", "assistant", "user"]


@pytest.mark.parametrize("wire", HISTORIES)
@pytest.mark.parametrize("profile", ["mistral", "openai-chat", "anthropic"])
def test_where_it_is_one_of_the_messages_nothing_is_changed(wire: str, profile: str):
    assert suture.repair(HISTORIES[wire], profile=profile).messages is HISTORIES[wire]
