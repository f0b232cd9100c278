"""A conversation as users write it: the messages of a result are a list that grows and goes in again."""

from typing import assert_type

from suture import ChatModelAgent, Message
from suture.messages import ImagePart
from suture.testing import ScriptedModel


def main() -> None:
    agent = ChatModelAgent(model=ScriptedModel(["hello", "well", "more", "a cat", "yes", "so"]))
    result = agent.run_sync([{"role": "user", "content": "hi"}])
    messages = result.messages
    assert_type(messages, list[Message])
    messages.append(Message.user("how are you?"))
    messages += [Message.assistant("well"), Message.user("and now?")]
    messages[0] = Message.user("hello")
    result = agent.run_sync(messages)
    result = agent.run_sync("and?", history=[*result.messages, {"role": "user", "content": "hm"}])
    result = agent.run_sync(["what is this?", ImagePart(url="https://example.com/cat.png")], history=result)
    result = agent.run_sync([("system", "Be brief."), ("user", "sure?")])
    result.messages.append(Message.user("so?"))
    assert agent.run_sync(history=result.messages).output == "so"


if __name__ == "__main__":
    main()
