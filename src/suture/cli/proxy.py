"""`suture proxy` repairs the histories in requests on their way to a provider; `suture run` does so for one command."""

import logging
import os
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from suture.cli.files import Refusal
from suture.cli.output import complain
from suture.errors import ConfigError
from suture.profiles import get_profile

if TYPE_CHECKING:
    from suture.proxy import Proxy, Route

_NEEDED = "'aiohttp>=3.13' 'httptools>=0.6' 'uvicorn>=0.40'"


def run_proxy(asked: Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    proxy = _load()
    routes = _routes(asked, [] if asked.upstream else proxy.DEFAULT_ROUTES)
    app = _make(asked, routes)

    def tell(address: str) -> None:
        for route in routes:
            complain(f"{address}{route.prefix} -> {route.upstream}")

    try:
        proxy.serve(app, asked.host, asked.port, ready=tell)
    except ConfigError as error:
        raise Refusal(str(error), "proxy") from None
    return 0


def run_command(asked: Namespace) -> int:
    """Run a command, and return its exit status."""
    proxy = _load()
    command: Sequence[str] = asked.arguments[1:] if asked.arguments[:1] == ["--"] else asked.arguments
    if not command:
        raise Refusal("there is no command to run; as in: suture run -- python agent.py")
    try:
        app = _make(asked, _routes(asked, proxy.routes_from(os.environ)))
        return proxy.run_command(app, command, os.environ)
    except ConfigError as error:
        raise Refusal(str(error), "run") from None


def _load() -> Any:
    try:
        from suture import proxy
    except ModuleNotFoundError as error:
        raise Refusal(f"{error.name} is missing: pip install {_NEEDED}", "proxy") from None
    logging.basicConfig(level=logging.WARNING, format="suture: %(message)s")
    return proxy


def _make(asked: Namespace, routes: "Sequence[Route]") -> "Proxy":
    from suture.proxy import Lessons, Proxy, Records, Timing

    timing = Timing(idle=asked.timeout, max_body=asked.max_bytes)
    try:
        records, lessons = Records(asked.report), None if asked.learn is None else Lessons(asked.learn)
    except ConfigError as error:
        raise Refusal(str(error)) from None
    return Proxy(routes, records=records, lessons=lessons, timing=timing, language=asked.language)


def _routes(asked: Namespace, known: "Sequence[Route]") -> "list[Route]":
    """Return the routes: those that are known, and what was said of each, or of all."""
    from msgspec.structs import replace

    from suture.proxy import Reduction, Route

    try:
        routes = {route.prefix: route for route in known}
        routes |= {prefix: Route(prefix=prefix, upstream=url) for prefix, url in map(_split, asked.upstream)}
        for option in ("profile", "clear", "compact"):
            for prefix, value in map(_split, getattr(asked, option)):
                if prefix and prefix not in routes:
                    raise Refusal(f"nothing goes to {prefix}; give its --upstream", f"--{option}")
                for name, route in routes.items():
                    if prefix in ("", name):
                        reduction = route.reduction
                        if option != "profile":
                            reduction = Reduction(**{**reduction._asdict(), option: _number(value, option)})
                        profile = get_profile(value) if option == "profile" else route.profile
                        routes[name] = replace(route, profile=profile, reduction=reduction)
    except ConfigError as error:
        raise Refusal(str(error)) from None
    return list(routes.values())


def _split(text: str) -> tuple[str, str]:
    """Return what `[PATH=]VALUE` consists of."""
    path, sign, value = text.partition("=")
    return (path.rstrip("/"), value) if sign and path.startswith("/") else ("", text)


def _number(text: str, option: str) -> int:
    if not text.isdecimal() or not int(text):
        raise Refusal(f"expected a number of tokens, found {text!r}", f"--{option}")
    return int(text)
