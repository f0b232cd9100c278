"""What the tests of models share."""

from functools import cache

import botocore.loaders
import pytest

create_loader = cache(botocore.loaders.create_loader)  # to read what it says of the service takes 50 ms


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no setting of this machine have a say, and give boto3 what it asks for."""
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
        monkeypatch.delenv(f"{name}_BASE_URL", raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setattr("botocore.session.create_loader", create_loader)
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)  # it keeps the credentials that it found first
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIANONE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
