"""Wrong ways to make an agent, to run it, and to read what came of it."""

from suture import ChatModelAgent, Message, Run
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
agent.run_sync(input="hi")  # wrong: the input has no name
agent.stream("hi", "there")  # wrong: one input
agent.stream("hi", history=7)  # wrong: a number is no history
agent.run_sync("hi", answers={})  # wrong: nothing was asked yet
agent.stream(resume=7)  # wrong: a number is no run
agent.stream("hi", stream=True)  # wrong: it is called streaming
agent.run_sync("hi", stream=True)  # wrong: it is called streaming
agent.run_sync("hi", streaming="no")  # wrong: a text is no flag
agent.stream(resume="c1", answers=["yes"])  # wrong: answers go by the ids of interrupts
agent.as_tool("writer")  # wrong: a name is given by name


async def read(run: Run[str]) -> None:
    result = await run.result()
    number: int = result.output  # wrong: the output is a text
    result.text  # wrong: it is called output  # noqa: B018
    result.messages.append_all(Message.user("hi"))  # wrong: a list has no such method
    result.outcome = "finished"  # wrong: a result does not change
    tokens: str = result.usage.total_tokens  # wrong: a number is no text
    async for text in run.text():
        print(text + 1, tokens)  # wrong: texts and numbers do not add up
    print(number, list(run))  # wrong: a run is iterated with async for
    await run.cancel(at="later")  # wrong: no such point
    await run.cancel(timeout="5")  # wrong: a text is no number of seconds
    run.final_result.output  # wrong: there may be no result yet  # noqa: B018
    await run  # wrong: its result is awaited


class City:
    pass


async def typed() -> None:
    other: ChatModelAgent[str] = ChatModelAgent(model=model, output_type=City)  # wrong: it gives a city
    city = (await ChatModelAgent(model=model, output_type=City).run("hi")).output
    print(other, city.name)  # wrong: a city has no name
    agent.run("hi").output  # wrong: a run is awaited  # noqa: B018
