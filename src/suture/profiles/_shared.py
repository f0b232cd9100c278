"""Rules that several providers have in the same words; each profile says where it knows them from."""

from suture.profiles._profile import Operation, Rule

__all__ = [
    "arguments_object",
    "blank_text",
    "call_named",
    "empty_error",
    "empty_message",
    "legal_id",
    "media_outside",
    "name_form",
    "reasoning_field",
    "result_content",
    "results_first",
    "roles_alternate",
    "starts_with_user",
    "text_first",
    "unique_id",
]

BLOCK_WIRES = ("agentic", "anthropic", "gemini", "bedrock")


def legal_id(name: str, says: str, source: str) -> Rule:
    """Ids look as the provider demands, and a result carries its call's."""
    problems = ("illegal-id", "missing-id", "wrong-id")
    return Rule(id=f"{name}.id-form", problems=problems, says=says, source=source, operation=Operation.RENAME_ID)


def unique_id(name: str, says: str, source: str) -> Rule:
    """Ids are not used twice."""
    return Rule(
        id=f"{name}.id-unique",
        problems=("repeated-id",),
        says=says,
        source=source,
        operation=Operation.RENAME_ID,
    )


def arguments_object(name: str, source: str) -> Rule:
    """Arguments are a JSON object."""
    return Rule(
        id=f"{name}.arguments",
        problems=("bad-arguments",),
        says="The arguments of a call are a JSON object.",
        source=source,
        operation=Operation.EMPTY_ARGUMENTS,
    )


def call_named(name: str, source: str) -> Rule:
    """A call names its tool."""
    return Rule(
        id=f"{name}.call-named",
        problems=("missing-name",),
        says="A call names its tool.",
        source=source,
        operation=Operation.NAME_CALL,
    )


def name_form(name: str, says: str, source: str) -> Rule:
    """Tool names look as the provider demands; they cannot be changed for the user."""
    return Rule(
        id=f"{name}.name-form",
        problems=("illegal-name",),
        says=says,
        source=source,
        operation=Operation.UNREPAIRABLE,
    )


def empty_message(name: str, source: str) -> Rule:
    """A message says something."""
    return Rule(
        id=f"{name}.not-empty",
        problems=("empty-message", "empty-calls"),
        says="A message has content or calls, and a list of calls is not empty.",
        source=source,
        operation=Operation.DROP_EMPTY,
    )


def blank_text(name: str, source: str) -> Rule:
    """A text block says something."""
    return Rule(
        id=f"{name}.text-not-blank",
        problems=("blank-text",),
        says="A text block is not blank.",
        source=source,
        operation=Operation.DROP_EMPTY,
        wires=BLOCK_WIRES,
    )


def empty_error(name: str, source: str) -> Rule:
    """A failed result says something."""
    return Rule(
        id=f"{name}.error-told",
        problems=("empty-error",),
        says="A result that reports an error has content.",
        source=source,
        operation=Operation.FILL,
    )


def result_content(name: str, source: str) -> Rule:
    """A result has content, which may be empty."""
    return Rule(
        id=f"{name}.result-content",
        problems=("no-content",),
        says="A tool message has content, which may be empty.",
        source=source,
        operation=Operation.FILL,
        wires=("openai-chat",),
    )


def results_first(name: str, source: str) -> Rule:
    """Results stand before anything else in their message."""
    return Rule(
        id=f"{name}.results-first",
        problems=("results-not-first",),
        says="In a message with tool results, these come first.",
        source=source,
        operation=Operation.RESULTS_FIRST,
        wires=BLOCK_WIRES,
    )


def text_first(name: str, source: str) -> Rule:
    """Calls stand last in their message."""
    return Rule(
        id=f"{name}.calls-last",
        problems=("text-after-calls",),
        says="In a message with tool calls, these come last.",
        source=source,
        operation=Operation.TEXT_FIRST,
        wires=BLOCK_WIRES,
    )


def roles_alternate(name: str, source: str) -> Rule:
    """Neighbours have different roles."""
    return Rule(
        id=f"{name}.roles-alternate",
        problems=("same-role",),
        says="Two neighbouring messages have different roles.",
        source=source,
        operation=Operation.MERGE,
        wires=BLOCK_WIRES,
    )


def starts_with_user(name: str, source: str) -> Rule:
    """The user speaks first."""
    return Rule(
        id=f"{name}.user-first",
        problems=("model-first",),
        says="The conversation starts with the user.",
        source=source,
        operation=Operation.BRIDGE,
    )


def media_outside(name: str, source: str) -> Rule:
    """Tool results are text; pictures are shown after the whole group."""
    return Rule(
        id=f"{name}.text-results",
        problems=("media-in-result",),
        says="A tool message is text; media go into a user message after the last result of the turn.",
        source=source,
        operation=Operation.PROMOTE_MEDIA,
        wires=("openai-chat", "message", "agentic"),
    )


def reasoning_field(name: str, source: str) -> Rule:
    """A message with calls carries its reasoning, even if there is none."""
    return Rule(
        id=f"{name}.reasoning-field",
        problems=("missing-field",),
        says="A message with tool calls has reasoning_content, which may be empty.",
        source=source,
        operation=Operation.FILL,
        wires=("openai-chat",),
    )
