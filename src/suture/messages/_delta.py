"""`Delta`: one piece of a reply that is still being said."""

from suture.errors import InputError
from suture.messages._meta import TokenUsage
from suture.messages._value import Value

__all__ = ["Delta"]


class Delta(Value):
    """One piece of a streamed reply, on any wire.

    Pieces of `text` and of `reasoning` are joined in order. The pieces of one call share its `call_index`: its
    id and name come with the first, `arguments` are joined. `usage`, where it comes, counts the whole reply.

    >>> from suture.messages import Delta
    >>> Delta("Let me ")
    Delta(text='Let me ')
    >>> Delta(call_index=0, call_id="call_1", name="search", arguments='{"query"').name
    'search'
    """

    text: str = ""
    reasoning: str = ""
    call_index: int | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    usage: TokenUsage | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.call_index is None and (self.call_id or self.name or self.arguments):
            raise InputError("a piece of a call says which: give the call's place in the reply", path="call_index")
