"""Amazon Bedrock Converse."""

from suture.profiles import _shared as shared
from suture.profiles._profile import NATIVE, IdForm, Profile, structure

__all__ = ["BEDROCK"]

BEDROCK = Profile(
    name="bedrock",
    wires=("bedrock", *NATIVE),
    ids=IdForm(pattern="[a-zA-Z0-9_-]+", limit=64, scope="history", prefix="tooluse_", length=30),
    names="[a-zA-Z0-9_-]{1,64}",
    rules=(
        *structure(
            "bedrock",
            answered="400: 'Expected toolResult blocks at messages.N.content for the following Ids'",
            orphaned="400: 'The number of toolResult blocks exceeds the number of toolUse blocks of previous turn'",
            single="400: 'The number of toolResult blocks exceeds the number of toolUse blocks of previous turn'",
            adjacent="400: 'Expected toolResult blocks at messages.N.content' (agno#6698)",
        ),
        shared.roles_alternate("bedrock", "400: 'roles must alternate between user and assistant'"),
        shared.starts_with_user("bedrock", "400: 'A conversation must start with a user message'"),
        shared.results_first("bedrock", "400: 'Did not find N tool_result block(s) at the beginning of this message'"),
        shared.text_first("bedrock", "Claude on Bedrock has Anthropic's rule"),
        shared.legal_id(
            "bedrock",
            "An id has 1 to 64 letters, digits, _ and -.",
            "Converse reference, ToolResultBlock.toolUseId",
        ),
        shared.unique_id(
            "bedrock", "An id is used once in a request.", "Claude on Bedrock: 'tool_use ids must be unique'"
        ),
        shared.arguments_object(
            "bedrock",
            "400: 'The format of the value at messages.N.content.M.toolUse.input is invalid. Provide a json object'",
        ),
        shared.call_named("bedrock", "Converse reference, ToolUseBlock.name"),
        shared.name_form(
            "bedrock",
            "A tool's name has 1 to 64 letters, digits, _ and -.",
            "Converse reference, ToolUseBlock.name",
        ),
        shared.blank_text("bedrock", "400: 'The text field in the ContentBlock object is blank'"),
        shared.empty_error(
            "bedrock", "400: 'The content field at toolResult cannot be empty when status value is error'"
        ),
        shared.empty_message("bedrock", "400: 'The content field in the Message object is empty'"),
    ),
)
