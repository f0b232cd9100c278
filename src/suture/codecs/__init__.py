"""Codecs translate native messages into the payloads of each provider, and back. Nothing here sends anything.

Options of a `Request` have one name for all providers; a codec writes them under the provider's name:

| option | meaning |
|---|---|
| `max_tokens`, `temperature`, `top_p`, `top_k`, `seed` | what they usually mean |
| `stop` | texts that end the reply |
| `tool_choice` | `"auto"`, `"none"`, `"required"`, or the name of a tool |
| `parallel_tool_calls` | whether one reply may hold several calls |
| `output_schema` | the JSON Schema of the answer |

Any other option is put into the payload as it is; a mapping is merged into one that is already there.
"""

from suture.codecs.codec import CODECS, OPTIONS, Codec, Encoded, Request, get_codec
from suture.codecs.conversion import Converted, convert, decode, encode
from suture.codecs.losses import Loss, Losses, Lost
from suture.codecs.native import from_agentic, to_agentic
from suture.codecs.replies import Framing, StreamReader

__all__ = [
    "CODECS",
    "OPTIONS",
    "Codec",
    "Converted",
    "Encoded",
    "Framing",
    "Loss",
    "Losses",
    "Lost",
    "Request",
    "StreamReader",
    "convert",
    "decode",
    "encode",
    "from_agentic",
    "get_codec",
    "to_agentic",
]
