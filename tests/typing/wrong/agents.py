"""Wrong ways to make an agent, to run it, and to read what came of it."""

from suture import AgenticMessage, ChatModelAgent, Message, Run
from suture.stores import MemoryStore
from suture.testing import ScriptedModel

model = ScriptedModel(["hello"])

ChatModelAgent(name="nobody")  # wrong: no model
ChatModelAgent(model)  # wrong: everything is given by name
ChatModelAgent(model=7)  # wrong: a number is no model
ChatModelAgent(model=model, max_iterations="3")  # wrong: a text is no number
ChatModelAgent(model=model, on_max_iterations="stop")  # wrong: neither raise nor answer
ChatModelAgent(model=model, tool_errors="ignore")  # wrong: neither result nor raise
ChatModelAgent(model=model, tools=[42])  # wrong: a number is no tool
ChatModelAgent(model=model, tools=["search"])  # wrong: a name is no tool
ChatModelAgent(model=model, middleware=[])  # wrong: it is called middlewares
ChatModelAgent(model=model, middlewares=["patch"])  # wrong: a text is no middleware
ChatModelAgent(model=model, checkpoint_store="runs.db")  # wrong: a path is no store
ChatModelAgent(model=model, checkpoint_store=MemoryStore)  # wrong: a class is no store
ChatModelAgent(model=model, format_tool_error=len)  # wrong: it gives a number

agent = ChatModelAgent(model=model)
agent.name = "another"  # wrong: an agent does not change
agent.run()  # wrong: no input
agent.run(42)  # wrong: a number is no input
agent.run([1, 2])  # wrong: numbers are no messages
agent.run([AgenticMessage.user("hi")])  # wrong: messages of another wire
agent.run(AgenticMessage.user("hi"))  # wrong: a message of another wire
agent.run("hi", stream=True)  # wrong: it is called streaming
agent.run("hi", deps=7)  # wrong: a number is no list of dependencies
agent.run_sync("hi", stream=True)  # wrong: it is called streaming
agent.run_sync("hi", streaming="no")  # wrong: a text is no flag
agent.resume("c1", ["yes"])  # wrong: answers go by the ids of interrupts
agent.as_tool("writer")  # wrong: a name is given by name


async def read(run: Run[Message]) -> None:
    result = await run
    result.text  # wrong: it is called output  # noqa: B018
    result.messages[0].contents  # wrong: it is called content  # noqa: B018
    result.messages.append(Message.user("hi"))  # wrong: a result does not change
    result.outcome = "finished"  # wrong: a result does not change
    first: AgenticMessage = result.messages[0]  # wrong: a message of another wire
    tokens: str = result.usage.total_tokens  # wrong: a number is no text
    async for text in run.text():
        print(text + 1, tokens)  # wrong: texts and numbers do not add up
    print(first, list(run))  # wrong: a run is iterated with async for
    await run.cancel(at="later")  # wrong: no such point
    await run.cancel(timeout="5")  # wrong: a text is no number of seconds
    run.result.output  # wrong: there may be no result yet  # noqa: B018
