"""What the programs share that run in an environment: finding SDKs, clients of them, and saying what went well."""

import traceback
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

SDKS = {"openai-chat": "openai", "openai-responses": "openai", "anthropic": "anthropic"}
SDKS |= {"gemini": "google.genai", "bedrock": "boto3"}
"""The module that each wire's SDK is."""


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def make_client(wire: str, url: str, *, asynchronous: bool = True) -> Any:
    """Return a client of the SDK as a program makes it."""
    if wire == "gemini":
        import google.genai as genai  # noqa: PLR0402 - stubs of another package hide it from `from google import`

        return genai.Client(api_key="none", http_options={"base_url": url})
    if wire == "bedrock":
        import boto3

        return boto3.client("bedrock-runtime", endpoint_url=url)
    if wire == "anthropic":
        import anthropic

        kind: Any = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
        return kind(api_key="none", base_url=url, max_retries=0)
    import openai

    kind = openai.AsyncOpenAI if asynchronous else openai.OpenAI
    return kind(api_key="none", base_url=f"{url}/v1", max_retries=0)


def run_checks(checks: Mapping[str, Callable[[], object]]) -> int:
    """Run each check and print how it went: `ok NAME`, or `failed NAME: ERROR`. Return the exit status."""
    failed = 0
    for name, check in checks.items():
        try:
            check()
        except Exception as error:  # noqa: BLE001 - whatever it is, the next check runs
            traceback.print_exc()
            told = " ".join(str(error).split())[:160]
            print(f"failed {name}: {type(error).__name__}{': ' if told else ''}{told}", flush=True)
            failed += 1
        else:
            print(f"ok {name}", flush=True)
    return int(failed > 0)
