"""`BedrockModel`: Amazon Bedrock's Converse."""

import asyncio
import socket
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from os import environ, getpid
from threading import Lock
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar, cast

from suture._aio import Worker
from suture._extras import import_extra
from suture.errors import (
    ConfigError,
    ModelConnectionError,
    ModelRequestError,
    SutureError,
)
from suture.messages import NativeM
from suture.models.http import Bound, brief, may_pass, status_error
from suture.models.provider import Body, ProviderModel
from suture.providers.bedrock.codec import BedrockCodec

_END: Any = object()
_making = Lock()
"""boto3 makes one client at a time."""
_BEARER = "AWS_BEARER_TOKEN_BEDROCK"
_OPEN = frozenset(("input", "json", "additionalModelRequestFields"))
"""Fields with arbitrary JSON, in which a field called `bytes` is plain text."""
_STATUS = {
    "throttlingException": 429,
    "ThrottlingException": 429,
    "internalServerException": 500,
    "modelStreamErrorException": 424,
    "serviceUnavailableException": 503,
    "validationException": 400,
}


class BedrockModel(ProviderModel[NativeM]):
    """A model behind Converse, through `boto3` (extra `bedrock`).

    boto3 finds credentials and region as usual, and a Bedrock key in `AWS_BEARER_TOKEN_BEDROCK`.
    For anything else, pass a client: `BedrockModel(…, client=boto3.client("bedrock-runtime", region_name=…))`.
    boto3 is synchronous, so each reply has a thread while it lasts.

    >>> BedrockModel("us.amazon.nova-micro-v1:0").profile
    'bedrock'
    """

    codec_name: ClassVar[str] = "bedrock"
    closes_schema: ClassVar[bool] = True  # 400: 'additionalProperties must be explicitly set to false' (future-agi#412)
    key_from: ClassVar[str] = "the AWS credentials, or AWS_BEARER_TOKEN_BEDROCK"
    without: ClassVar[Mapping[str, str]] = {
        "extra_body": "a model's own fields go into additionalModelRequestFields",
        "extra_query": "Converse takes none",
        "http_options": "extra_headers and timeout are, or client=",
    }
    client_from: ClassVar[tuple[str, str]] = ("botocore", 'boto3.client("bedrock-runtime")')

    _client: Any = None
    _process: int | None = None
    """The process that made the client."""

    async def events(self, body: Body) -> AsyncGenerator[dict[str, Any]]:
        connections: list[Any] = []
        async with Worker() as worker:
            client = await _do(worker, connections, self._get_client, _ignore)
            ask = client.converse_stream if body.streaming else client.converse
            ask = partial(ask, **_with_bytes(body.settings), messages=body.forms)
            ask = partial(_send_with, body.envelope.headers, ask)
            answer = await _do(worker, connections, ask, _close)
            if not body.streaming:
                yield {name: value for name, value in answer.items() if name != "ResponseMetadata"}
                return
            try:
                step = partial(next, iter(answer["stream"]), _END)
                while (event := await _do(worker, connections, step, _ignore)) is not _END:
                    yield event
            finally:
                _close(answer)

    def form(self, message: Any) -> Any:
        return _with_bytes(message)

    def event_silence(self, body: Body) -> float | None:
        """Return the silence of a request that has one of its own, which boto3 does not know."""
        is_own = body.envelope.is_timed or (self.given_client is not None and self.is_timed)
        return body.envelope.limits.silence if is_own else None

    def lay_over(self, body: Body) -> Body:
        """Return the body; if it has no tools, those that were called are declared."""
        if body.envelope.headers and self.given_client is not None:
            raise ConfigError("a client of boto3 that is passed in takes headers from its own events, not from here")
        named = cast("BedrockCodec", self.codec).name_called_tools({"modelId": self.model, **body.payload})
        del named[body.field]
        return body._replace(settings=named)

    def failure(self, error: Exception) -> SutureError | None:
        found = import_extra("botocore.exceptions", "bedrock")
        given: Any = error
        text = brief(error)
        if isinstance(error, found.HTTPClientError) and isinstance(given.kwargs.get("error"), SutureError):
            return given.kwargs["error"]
        if isinstance(error, found.ClientError):
            meta = given.response.get("ResponseMetadata", {})
            said = given.response.get("Error", {})
            code = said.get("Code", "")
            status = meta.get("HTTPStatusCode") or _STATUS.get(code, 500)
            if status == 200:
                status = _STATUS.get(code, 500)
            body = {"message": said.get("Message", ""), "code": code}
            headers: Mapping[str, str] = meta.get("HTTPHeaders", {})
            identity = meta.get("RequestId", "")
            return status_error("bedrock", status, body, headers, key=self.key_from, request_id=identity)
        if isinstance(error, found.ParamValidationError):
            is_unknown = "Unknown parameter in input" in str(error)
            hint = f" (boto3 {import_extra('boto3', 'bedrock').__version__}; a newer release may)" if is_unknown else ""
            return ModelRequestError(f"{error}{hint}", provider="bedrock")
        if isinstance(error, (found.NoCredentialsError, found.NoRegionError, found.PartialCredentialsError)):
            return ConfigError(
                f"BedrockModel cannot ask: {error} Set {self.key_from} and AWS_DEFAULT_REGION, or pass client="
            )
        if isinstance(error, found.ConnectionError):
            return ModelConnectionError(text, provider="bedrock", retryable=may_pass(error))
        if isinstance(error, (found.HTTPClientError, found.IncompleteReadError)):
            return self.cut(error)
        return ModelRequestError(text, provider="bedrock") if isinstance(error, found.BotoCoreError) else None

    def keys_of(self, client: Any) -> list[str]:
        """Return the secrets with which the client signs, and the token that it may send."""
        signer = getattr(client or self._client, "_request_signer", None)
        credentials = getattr(signer, "_credentials", None)
        frozen = getattr(credentials, "_frozen_credentials", credentials)  # the public attributes might refresh them
        held = [getattr(frozen, "secret_key", None), getattr(frozen, "token", None), environ.get(_BEARER)]
        return [secret for secret in held if isinstance(secret, str)]

    def _get_client(self) -> Any:
        if self.given_client is not None:
            return self.given_client
        with _making:
            if self._process != getpid():  # a forked process must not share connections
                self._client, self._process = self._make_client(), getpid()
            return self._client

    def _make_client(self) -> Any:
        if self.api_key is not None:
            raise ConfigError(f"boto3 takes a Bedrock key from {_BEARER} only; set that")
        boto3 = import_extra("boto3", "bedrock")
        config = import_extra("botocore.config", "bedrock").Config(
            retries={"total_max_attempts": 1},
            read_timeout=self.limits.silence,
            connect_timeout=self.limits.connect,
            max_pool_connections=100,
        )
        client = boto3.client("bedrock-runtime", endpoint_url=self.base_url, config=config)
        client.meta.events.register("before-call.bedrock-runtime", _add_headers)
        return watch(client)


def _send_with(headers: Mapping[str, str], ask: Callable[[], Any]) -> Any:
    """Ask in a thread, which serves one reply, and send `headers` with the request."""
    _headers.set(headers)
    return ask()


def _add_headers(params: dict[str, Any], **_: Any) -> None:
    """Put headers into a request before boto3 signs it."""
    params["headers"].update(_headers.get())


def _ignore(_: object) -> None:
    """Ignore a result that nobody waits for."""


def _close(answer: Mapping[str, Any]) -> None:
    """Close the connection; if a thread waits on it, only a shutdown wakes that."""
    stream = answer.get("stream")
    raw = getattr(stream, "_raw_stream", None)
    with suppress(Exception):
        raw.shutdown()  # pyright: ignore[reportOptionalMemberAccess]
    with suppress(Exception):
        stream.close()  # pyright: ignore[reportOptionalMemberAccess]


def _with_bytes(value: Any, name: str = "") -> Any:
    """Return a payload with bytes in place of base64, as boto3 wants it."""
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        return {key: item if key in _OPEN else _with_bytes(item, key) for key, item in held.items()}
    if isinstance(value, list):
        return [_with_bytes(item) for item in cast("list[Any]", value)]
    if isinstance(value, str) and name in {"bytes", "redactedContent"}:
        with suppress(NotBase64, ValueError):
            return b64decode(value, validate=True)
    return value


T = TypeVar("T")
_headers: ContextVar[Mapping[str, str]] = ContextVar("suture_bedrock_headers", default=MappingProxyType({}))
"""The headers that go with the request of a thread."""
_connections: ContextVar[list[Any]] = ContextVar("suture_bedrock_connections")
"""The connections on which a watched client is waiting."""


async def _do(worker: Worker, connections: list[Any], work: Callable[[], T], undo: Callable[[T], None]) -> T:
    """Do `work` in the thread. If this is cancelled, wake the thread, and call `undo` with the late result."""
    made: list[T] = []
    given_up: list[bool] = []

    def run() -> T:
        _connections.set(connections)
        made.append(work())
        if given_up:
            undo(made[0])
        return made[0]

    try:
        return await worker.run(run)
    except asyncio.CancelledError:
        given_up.append(True)
        for result in made:
            undo(result)
        if not made and connections:
            with suppress(OSError, AttributeError):
                connections[-1].sock.shutdown(socket.SHUT_RDWR)
        raise


def watch(client: Any) -> Any:
    """Make the client report its connections, bound the bodies it reads and follow no redirects; return it."""
    kinds: dict[str, Any] = client._endpoint.http_session._pool_classes_by_scheme  # noqa: SLF001 - there is no other way
    for scheme, pool in kinds.items():
        kinds[scheme] = type(pool.__name__, (pool,), {"ConnectionCls": _watch_connections(pool.ConnectionCls)})
    return client


def _watch_connections(kind: Any) -> Any:
    class Watched(kind):
        _ask: Callable[[], Any]
        _is_kept = False

        def request(self, *given: Any, **named: Any) -> Any:
            _connections.get([]).append(self)
            above: Any = super()
            self._ask = partial(above.request, *given, **named)
            return self._ask()

        def getresponse(self) -> Any:
            above: Any = super()
            try:
                response: Any = above.getresponse()
            except ConnectionError:
                if not self._is_kept or self._tunnel_host is not None:  # closing would forget the tunnel
                    raise
                self.close()  # the server was closing it when the request came, and did not read that
                self._ask()
                response = above.getresponse()
            self._is_kept = True
            response.stream = partial(_bound_stream, response.stream, is_error=response.status >= 300)
            response.get_redirect_location = lambda: None
            return response

    return Watched


def _bound_stream(stream: Callable[..., Iterator[bytes]], *given: Any, is_error: bool, **named: Any) -> Iterator[bytes]:
    bound = Bound(is_error=is_error)
    for chunk in stream(*given, **named):
        yield bound.take(chunk)
        if bound.reached:
            return
