"""What boto3 itself makes of requests, responses and streams: botocore's model of the service, without the network."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from botocore.eventstream import EventStream
from botocore.parsers import EventStreamJSONParser, create_parser
from botocore.session import Session
from botocore.validate import ParamValidator


@cache
def operation(name: str) -> Any:
    return Session().get_service_model("bedrock-runtime").operation_model(name)


def complaints(request: dict[str, Any]) -> str:
    """Return what boto3 has to say against a request."""
    found = ParamValidator().validate({"modelId": "m.m", **request}, operation("Converse").input_shape)
    return found.generate_report()


def parsed_reply(body: bytes) -> dict[str, Any]:
    """Return a response as boto3 hands it out: bytes are bytes, and `ResponseMetadata` is added."""
    response = {"status_code": 200, "headers": {"x-amzn-requestid": "req_1"}, "body": body, "context": {}}
    return create_parser("rest-json").parse(response, operation("Converse").output_shape)


class _Raw:
    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    def stream(self) -> Iterator[bytes]:
        yield from self._chunks


def parsed_events(*chunks: bytes) -> list[dict[str, Any]]:
    """Return the events of a stream as boto3 hands them out."""
    shape = operation("ConverseStream").output_shape.members["stream"]
    return list(EventStream(_Raw(list(chunks)), shape, EventStreamJSONParser(), "ConverseStream"))
