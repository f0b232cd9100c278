"""Clients that a program passes in: which a model takes, and a copy of each for every event loop.

Connections belong to the loop that opened them, but the client of an SDK keeps all of them in one pool. So each loop
gets a copy of the client, whose pools are its own. Everything else is the original's: keys, headers, hooks,
credentials, proxies, certificates. The original is never changed, used or closed. A transport that is not known to have
a pool is shared.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, cast
from weakref import ref

from suture._aio import LOG
from suture._loops import of_the_loop
from suture.errors import ConfigError

_ATTRIBUTE = "_suture_copies"
_PACKAGES = frozenset(("openai", "anthropic", "google", "botocore", "aiobotocore"))
"""The packages whose clients are known not to be those of another."""
_WAYS = frozenset(("_client", "_async_httpx_client", "_transport", "_pool"))
"""The attributes that lead from an SDK's client to the pools, through httpx or httpx2."""
_GENAI = "_api_client"
"""The attribute in which clients of google-genai have what sends their requests."""
_OF_A_LOOP = frozenset(("_aiohttp_session", "_async_auth_lock", "_async_auth_lock_creation_lock"))
"""What older releases of google-genai make when a loop first needs it, and newer ones for each loop."""
_NEW: Any = object()


def check_client(model: str, client: Any, package: str, example: str) -> None:
    """Raise `ConfigError` if `client` is surely not one that `model` can use.

    >>> from openai import OpenAI
    >>> check_client("OpenAIChatModel", OpenAI(api_key="none"), "openai", "openai.AsyncOpenAI()")
    Traceback (most recent call last):
    ...
    suture.errors.ConfigError: OpenAIChatModel takes an asynchronous client: AsyncOpenAI instead of OpenAI
    """
    if isinstance(client, type):
        raise ConfigError(f"client= takes a client such as {example}, not the class {client.__name__}")
    kinds = [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(client).__mro__]
    known = _PACKAGES & {root for root, _ in kinds}
    if known and (package not in known or "aiobotocore" in known):
        name = type(client).__name__
        raise ConfigError(f"{model} takes a client such as {example}, not a {name} of {', '.join(sorted(known))}")
    if any(name == "SyncAPIClient" for _, name in kinds):
        name = next(name for root, name in kinds if root == package)
        raise ConfigError(f"{model} takes an asynchronous client: Async{name} instead of {name}")


async def client_of_loop(client: Any) -> Any:
    """Return the running loop's copy of a client, or the client itself if it has no connections that we know."""
    copies = await of_the_loop(_ATTRIBUTE, _Copies, _Copies.close)
    return copies.of(client)


class _Copies:
    """The copies of one loop. They are closed with it, and each one when its original is gone."""

    def __init__(self) -> None:
        self.known: dict[int, _Copy] = {}
        self._open: set[_Copy] = set()
        """Those that are not closed yet: more than are known, since a task that closes one may be cancelled."""
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, client: Any) -> Any:
        node: Any = _state_of(client).get(_GENAI, client)
        http = getattr(node, "_client", None)
        if getattr(http, "is_closed", False) is True:
            raise ConfigError("the client that was passed in is closed; pass one that stays open until its last run")
        known = self.known.get(id(node))
        if known is not None and not known.follow(node):
            self._close_soon(known)
            known = None
        if known is None:
            known = self.known[id(node)] = _Copy(node)
            self._open.add(known)
            loop, key = ref(asyncio.get_running_loop()), id(node)
            known.original = ref(node, lambda _: self._drop(key, loop()))
        if known.node is node:
            return client
        if node is client:
            return known.node
        models = cast("Callable[[Any], Any]", type(getattr(client, "aio", client).models))
        return SimpleNamespace(models=models(known.node), **{_GENAI: known.node})

    def _drop(self, key: int, loop: asyncio.AbstractEventLoop | None) -> None:
        """Close the copy of a client that was collected, in whichever thread."""
        known = self.known.get(key)
        if known is not None and loop is not None:
            with suppress(RuntimeError):  # the loop was closed
                loop.call_soon_threadsafe(self._close_soon, known)

    def _close_soon(self, known: "_Copy") -> None:
        self.known = {key: other for key, other in self.known.items() if other is not known}
        task = asyncio.get_running_loop().create_task(self._close(known))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close(self, known: "_Copy") -> None:
        await known.close()
        self._open.discard(known)

    async def close(self) -> None:
        for known in list(self._open):
            await self._close(known)


class _Copy:
    """The copy of one client for one loop."""

    def __init__(self, node: Any) -> None:
        self._ends: list[Callable[[], Awaitable[object]]] = []
        self._seen: dict[str, Any] = _settings_of(node)
        self.node: Any = self._renew(node, {})
        self.original: ref[Any] | None = None

    def follow(self, node: Any) -> bool:
        """Take over what was set on the original since then, such as a new key; return whether that was possible."""
        if self.original is None or self.original() is not node:
            return False
        state = _settings_of(node)
        changed = {name: value for name, value in state.items() if self._seen.get(name, _NEW) is not value}
        changed = {name: value for name, value in changed.items() if name not in _OF_A_LOOP}
        self._seen.update(changed)
        if self.node is node or not changed:
            return True
        if changed.keys() & (_WAYS | {"_mounts"}):
            return False
        _state_of(self.node).update(changed)
        return True

    async def close(self) -> None:
        for end in self._ends:
            try:
                await end()
            except Exception:  # noqa: BLE001 - the others are to be closed, too
                LOG.warning("the connections of a client's copy failed to close", exc_info=True)

    def _renew(self, node: Any, known: dict[int, Any]) -> Any:
        """Return a copy of `node` with pools of its own, or `node` itself if there is none below it."""
        state = _state_of(node)
        if not state or id(node) in known:
            return known.get(id(node), node)
        known[id(node)] = node  # a transport may lead to itself
        own = self._own_connections(node, state)
        if own is None:
            own = dict[str, Any]()
            for name, value in state.items():
                if name == "_mounts":
                    renewed: Any = {pattern: self._renew(mount, known) for pattern, mount in value.items()}
                    if all(renewed[pattern] is mount for pattern, mount in value.items()):
                        renewed = value
                elif name in _WAYS or hasattr(value, "handle_async_request"):
                    renewed = self._renew(value, known)
                else:
                    continue
                if renewed is not value:
                    own[name] = renewed
        if not own:
            return node
        made: Any = object.__new__(cast("type[Any]", type(node)))
        _state_of(made).update(_settings_of(node), **own)
        known[id(node)] = made
        if hasattr(made, "aclose") and own.keys() & {"_connections", "client"}:
            self._ends.append(made.aclose)
        if "_aiohttp_session" in own:
            self._ends.append(partial(_close_sessions, made))
        return made

    def _own_connections(self, node: Any, state: dict[str, Any]) -> dict[str, Any] | None:
        """Return the attributes of a pool without connections, or `None` if `node` is no pool."""
        if isinstance(state.get("_connections"), list) and isinstance(state.get("_requests"), list):
            return {"_connections": [], "_requests": []}
        if "client" in state and hasattr(node, "get_client"):  # aiohttp under httpx, which makes its session when used
            return {"client": None} if _is_own_session(node, state["client"]) else {}
        if "_async_httpx_client" in state:  # google-genai
            # A copy closes the synchronous client when it is collected, so it must not have that.
            own: dict[str, Any] = dict.fromkeys(("_httpx_client", "_authorized_session", *_OF_A_LOOP))
            own |= {"_aiohttp_sessions": {}, "_aiohttp_session": _find_session(state)}
            return {**own, "_async_httpx_client": self._renew(state["_async_httpx_client"], {})}
        return None


def _state_of(thing: Any) -> dict[str, Any]:
    return getattr(thing, "__dict__", {})


def _settings_of(node: Any) -> dict[str, Any]:
    """Return the attributes of `node` but for parts that an SDK's client made of itself, such as `client.chat`."""
    return {name: value for name, value in _state_of(node).items() if _state_of(value).get("_client") is not node}


def _find_session(genai: dict[str, Any]) -> Any:
    """Return the session of aiohttp that a program has given to a client of google-genai."""
    return getattr(genai.get("_http_options"), "aiohttp_client", None)


async def _close_sessions(genai: Any) -> None:
    """Close the sessions of aiohttp that a copy of a client of google-genai has opened."""
    state = _state_of(genai)
    for session in (*state["_aiohttp_sessions"].values(), state["_aiohttp_session"]):
        if session is not None and session is not _find_session(state):
            await session.close()


def _is_own_session(transport: Any, session: Any) -> bool:
    """Return whether the transport made, or would make, this session by its own settings."""
    if session is None:
        return True
    connector = getattr(session, "connector", None)
    own = getattr(transport, "ssl_context", None)
    return own is not None and getattr(connector, "_ssl", None) is own
