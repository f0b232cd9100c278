"""The proxy: repairs the histories in a program's requests on their way to a provider.

It is an ASGI application (`Proxy`) and functions that serve it. See `suture proxy --help`.
"""

from suture._extras import check_extra

try:
    from suture.proxy.app import Proxy, Records, Timing
    from suture.proxy.learning import Lessons
    from suture.proxy.requests import DEFAULT_ROUTES, Reduction, Route
    from suture.proxy.server import routes_from, run_command, serve
finally:
    for _module in ("aiohttp", "httptools", "uvicorn"):
        check_extra("proxy", _module)

__all__ = [
    "DEFAULT_ROUTES",
    "Lessons",
    "Proxy",
    "Records",
    "Reduction",
    "Route",
    "Timing",
    "routes_from",
    "run_command",
    "serve",
]
