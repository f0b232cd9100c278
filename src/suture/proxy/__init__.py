"""The proxy: repairs the histories in the requests that programs send to providers.

An ASGI application (`Proxy`), and the server for it. See `suture proxy --help`.
"""

from suture.proxy.app import Proxy, Records, Timing
from suture.proxy.learning import Lessons
from suture.proxy.requests import DEFAULT_ROUTES, Reduction, Route
from suture.proxy.server import routes_from, run_command, serve

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
