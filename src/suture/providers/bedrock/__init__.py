"""Amazon Bedrock Converse."""

from suture.profiles import GUESTS, IdForm, Profile, rules

__all__ = ["BEDROCK"]

BEDROCK = Profile(
    name="bedrock",
    wires=("bedrock", *GUESTS),
    ids=IdForm(pattern="[a-zA-Z0-9_-]+", limit=64, scope="history", prefix="tooluse_", length=30),
    names="[a-zA-Z0-9_-]{1,64}",
    system_outside=True,
    rules=rules(
        "bedrock",
        answered="400: 'Expected toolResult blocks at messages.N.content for the following Ids'",
        has_call="400: 'The number of toolResult blocks exceeds the number of toolUse blocks of previous turn'",
        same_id="400: 'Expected toolResult blocks at messages.N.content for the following Ids'",
        thinking_not_last="ValidationException where a turn is nothing but reasoningContent (hermes-agent#105780)",
        document_names="400: 'Duplicate document names found in messages'",
        result_content="botocore: 'Missing required parameter in toolResult: content'",
        sendable="a request is UTF-8",
        single_result="400: 'The number of toolResult blocks exceeds the number of toolUse blocks of previous turn'",
        adjacent="400: 'Expected toolResult blocks at messages.N.content' (agno#6698)",
        roles_alternate="400: 'roles must alternate between user and assistant'",
        user_first="400: 'A conversation must start with a user message'",
        results_first="400: 'Did not find N tool_result block(s) at the beginning of this message'",
        calls_last="Claude on Bedrock has Anthropic's rule",
        id_form=("An id has 1 to 64 letters, digits, _ and -.", "Converse reference, ToolResultBlock.toolUseId"),
        id_unique=("An id is used once in a request.", "Claude on Bedrock: 'tool_use ids must be unique'"),
        arguments="400: 'The format of the value at messages.N.content.M.toolUse.input is invalid. Provide a json object'",
        call_named="Converse reference, ToolUseBlock.name",
        name_form="Converse reference, ToolUseBlock.name",
        text_not_blank="400: 'The text field in the ContentBlock object is blank'",
        error_told="400: 'The content field at toolResult cannot be empty when status value is error'",
        not_empty="400: 'The content field in the Message object is empty'",
    ),
)
