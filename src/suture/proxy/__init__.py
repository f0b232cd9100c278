"""The proxy: any program's requests go through it to a provider, and none carries a broken history.

An ASGI application (`Proxy`), and what serves it. See `suture proxy --help`.
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
