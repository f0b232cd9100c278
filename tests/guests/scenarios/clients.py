"""The providers' own clients, for the strict provider at an address."""

from functools import cache
from typing import Any

import boto3
from anthropic import AsyncAnthropic
from botocore.config import Config
from google.genai import Client
from google.genai.types import HttpOptions
from openai import AsyncOpenAI


def openai_client(url: str) -> AsyncOpenAI:
    return AsyncOpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0)


def anthropic_client(url: str) -> AsyncAnthropic:
    return AsyncAnthropic(api_key="none", base_url=url, max_retries=0)


def google_client(url: str) -> Client:
    return Client(api_key="none", http_options=HttpOptions(base_url=url))


@cache
def boto_session() -> boto3.Session:
    """Return one session for all: it reads the descriptions of the services once."""
    return boto3.Session(aws_access_key_id="none", aws_secret_access_key="none", region_name="eu-west-1")


BOTO_CONFIG = Config(retries={"total_max_attempts": 1})


def bedrock_client(url: str) -> Any:
    return boto_session().client("bedrock-runtime", endpoint_url=url, config=BOTO_CONFIG)


async def close(client: Any) -> None:
    """Close a client of any of these."""
    if isinstance(client, Client):
        await client.aio.aclose()
        client.close()
    elif isinstance(client, AsyncOpenAI | AsyncAnthropic):
        await client.close()
    else:
        client.close()
