"""What providers demand, as one table: what breaks a rule, what it says, and what mends it.

A profile names the rules that hold for it, each with the source it is known from; where a provider puts a rule
in its own words, those stand beside the source. To add a rule: one row here, its name in the profiles that have
it, and one case in the tests' table of broken histories.
"""

from msgspec.structs import replace

from suture.profiles._profile import Operation, Rule

__all__ = ["rules"]

BLOCK_WIRES = ("agentic", "anthropic", "gemini", "bedrock")
ORDERED_WIRES = (*BLOCK_WIRES, "pydantic-ai", "agent-framework")
"""Where the order of the blocks in a message is the order in which they are sent."""

_TABLE = (
    Rule(
        id="answered",
        problems=("dangling",),
        says="Every tool call has a result.",
        operation=Operation.ANSWER,
    ),
    Rule(
        id="has-call",
        problems=("orphan",),
        says="Every tool result has a call before it.",
        operation=Operation.RETELL,
    ),
    Rule(
        id="single-result",
        problems=("duplicate",),
        says="A tool call has one result.",
        operation=Operation.COLLAPSE,
    ),
    Rule(
        id="adjacent",
        problems=("late", "early", "out-of-order"),
        says="The results of a turn follow it, with nothing between.",
        operation=Operation.MOVE,
    ),
    Rule(
        id="id-form",
        problems=("illegal-id", "missing-id", "wrong-id"),
        says="An id is made of letters, digits, _ and -.",
        operation=Operation.RENAME_ID,
    ),
    Rule(
        id="id-unique",
        problems=("repeated-id",),
        says="Ids differ within one message.",
        operation=Operation.RENAME_ID,
    ),
    Rule(
        id="call-named",
        problems=("missing-name",),
        says="A call names its tool.",
        operation=Operation.NAME_CALL,
    ),
    Rule(
        id="arguments",
        problems=("bad-arguments",),
        says="The arguments of a call are a JSON object.",
        operation=Operation.EMPTY_ARGUMENTS,
    ),
    Rule(
        id="results-first",
        problems=("results-not-first",),
        says="In a message with tool results, these come first.",
        operation=Operation.RESULTS_FIRST,
        wires=(*BLOCK_WIRES, "pydantic-ai"),
    ),
    Rule(
        id="text-results",
        problems=("media-in-result",),
        says="A tool message is text; media go into a user message after the last result of the turn.",
        operation=Operation.PROMOTE_MEDIA,
        wires=("agentic", "message", "openai-chat"),
    ),
    Rule(
        id="result-content",
        problems=("no-content",),
        says="A tool message has content, which may be empty.",
        operation=Operation.FILL,
        wires=("openai-chat",),
    ),
    Rule(
        id="not-empty",
        problems=("empty-message", "empty-calls"),
        says="A message has content or calls, and a list of calls is not empty.",
        operation=Operation.DROP_EMPTY,
    ),
    Rule(
        id="item-id",
        problems=("repeated-item",),
        says="An item id is used once.",
        operation=Operation.RENAME_ID,
        wires=("openai-responses",),
    ),
    Rule(
        id="reasoning-pair",
        problems=("lone-reasoning",),
        says="A reasoning item is followed by the item it produced.",
        operation=Operation.UNREPAIRABLE,
        wires=("openai-responses",),
    ),
    Rule(
        id="one-result-message",
        problems=("split-results",),
        says="All results of a turn are in the next message.",
        operation=Operation.MERGE,
        wires=("agentic", "anthropic", "agent-framework"),
    ),
    Rule(
        id="calls-last",
        problems=("text-after-calls",),
        says="In a message with tool calls, these come last.",
        operation=Operation.TEXT_FIRST,
        wires=ORDERED_WIRES,
    ),
    Rule(
        id="text-not-blank",
        problems=("blank-text",),
        says="A text block is not blank.",
        operation=Operation.DROP_EMPTY,
        wires=ORDERED_WIRES,
    ),
    Rule(
        id="error-told",
        problems=("empty-error",),
        says="A result that reports an error has content.",
        operation=Operation.FILL,
    ),
    Rule(
        id="roles-alternate",
        problems=("same-role",),
        says="Two neighbouring messages have different roles.",
        operation=Operation.MERGE,
        wires=BLOCK_WIRES,
    ),
    Rule(
        id="user-first",
        problems=("model-first",),
        says="The conversation starts with the user.",
        operation=Operation.BRIDGE,
    ),
    Rule(
        id="result-named",
        problems=("result-name",),
        says="A response carries the name of its call.",
        operation=Operation.NAME_RESULT,
    ),
    Rule(
        id="name-form",
        problems=("illegal-name",),
        says="A tool's name has 1 to 64 letters, digits, _ and -.",
        operation=Operation.UNREPAIRABLE,
    ),
    Rule(
        id="tool-then-user",
        problems=("tool-then-user",),
        says="A user message does not follow a tool message.",
        operation=Operation.BRIDGE,
    ),
    Rule(
        id="results-alone",
        problems=("trailing-text",),
        says="A tool message holds nothing but its result.",
        operation=Operation.SPLIT,
        wires=("agentic", "anthropic", "pydantic-ai"),
    ),
    Rule(
        id="system-place",
        problems=("late-system",),
        says="A system message does not follow an assistant or tool message.",
        operation=Operation.UNREPAIRABLE,
    ),
    Rule(
        id="calls-together",
        problems=("text-between-calls",),
        says="The calls of one turn stand together.",
        operation=Operation.TEXT_FIRST,
        wires=("openai-responses",),
    ),
    Rule(
        id="reasoning-field",
        problems=("missing-field",),
        says="A message with tool calls has reasoning_content, which may be empty.",
        operation=Operation.FILL,
        wires=("openai-chat",),
    ),
)
_RULES = {rule.id: rule for rule in _TABLE}


def rules(profile: str, **sources: str | tuple[str, str]) -> tuple[Rule, ...]:
    """Return the rules named by `sources`, each with its source, or with (its own words, its source).

    >>> [rule.id for rule in rules("x", answered="400: …", id_form=("An id has 9 letters.", "400: …"))]
    ['x.answered', 'x.id-form']
    """
    made: list[Rule] = []
    for name, source in sources.items():
        rule = _RULES[name.replace("_", "-")]
        says, known_from = (rule.says, source) if isinstance(source, str) else source
        made.append(replace(rule, id=f"{profile}.{rule.id}", says=says, source=known_from))
    return tuple(made)
