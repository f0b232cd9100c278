"""What the oldest releases of the SDKs cannot do: where one is installed, the tests of it are left out."""

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import pytest


class Lack(NamedTuple):
    """What a package has since a release, and the tests that need it."""

    package: str
    since: str
    what: str
    tests: str


LACKS = (
    Lack(
        "boto3", "1.42.42", "outputConfig of Converse", r"(test_answers|answer_of_a_type|schema_of_an_answer).*bedrock"
    ),
    Lack("openai", "2.54", "beta.responses", r"openai-responses beta create"),
    Lack("openai", "2.54", "responses.compact", r"openai-responses compact"),
    Lack("openai", "2.54", "responses.input_tokens", r"openai-responses input_tokens|\[counting"),
    Lack("openai", "2.54", "BedrockOpenAI", r"_openai_bedrock"),
    Lack("anthropic", "0.125", "messages.parse", r"anthropic parse"),
    Lack("anthropic", "0.125", "credentials", r"test_copies_keep_the_credentials"),
    Lack("anthropic", "2", "threads of the beta", r"test_a_thread_that_goes_on"),
    Lack("xllamacpp", "0", "the local model", r"test_a_name_says_which_model\[local\]"),
)
"""As far as the releases were tried: an earlier one may have it, too."""


@cache
def release(package: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in re.findall(r"\d+", version(package))[:3])
    except PackageNotFoundError:
        return ()


def leave_out(item: pytest.Item) -> None:
    """Skip a test of what an installed release lacks."""
    for lack in LACKS:
        found = release(lack.package)
        if found < tuple(map(int, lack.since.split("."))) and re.search(lack.tests, item.nodeid):
            item.add_marker(pytest.mark.skip(reason=f"{lack.package} {found} has no {lack.what}"))
