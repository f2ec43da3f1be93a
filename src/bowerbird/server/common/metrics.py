"""Figures of this process for Prometheus (SV-34): an own registry, no id or user as a label.

Here: what is counted and the text form. Not here: who may read it, OpenTelemetry.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class ServerMetrics:
    """Counters and gauges of one server process.

    Attributes:
        requests: finished HTTP requests by method, route pattern and status.
        request_seconds: their duration by method and route pattern.
        viewers: open sockets and streams. sent_events: to all viewers.
        stalled: viewers closed because they did not read. refused: requests refused by reason
            (`rate_limited`, `overloaded`, `unauthorized`, `origin`, `host`).
        turns: turns submitted by door.

    Example:
        >>> metrics = ServerMetrics()
        >>> metrics.refused.labels("rate_limited").inc()
        >>> b'bowerbird_refused_total{reason="rate_limited"} 1.0' in metrics.text()
        True
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        register = self.registry
        self.requests = Counter(
            "bowerbird_http_requests",
            "Finished HTTP requests.",
            ("method", "route", "status"),
            registry=register,
        )
        self.request_seconds = Histogram(
            "bowerbird_http_request_seconds", "Duration of HTTP requests.", ("method", "route"),
            registry=register, buckets=_SECONDS,
        )  # fmt: skip
        self.viewers = Gauge("bowerbird_viewers", "Open sockets and event streams.", registry=register)
        self.sent_events = Counter("bowerbird_sent_events", "Events sent to viewers.", registry=register)
        self.stalled = Counter(
            "bowerbird_stalled_viewers", "Viewers closed because they did not read.", registry=register
        )
        self.refused = Counter("bowerbird_refused", "Requests refused.", ("reason",), registry=register)
        self.turns = Counter("bowerbird_turns_accepted", "Inputs accepted.", ("door",), registry=register)

    def gauge(self, name: str, meaning: str, read: Callable[[], float]) -> None:
        """Add a figure that is read when somebody asks for it."""
        Gauge(f"bowerbird_{name}", meaning, registry=self.registry).set_function(read)

    def text(self) -> bytes:
        """Return all figures in the text form."""
        return generate_latest(self.registry)


class Measured:
    """ASGI: counts requests by the pattern of their route, never by what a path holds."""

    def __init__(self, app: "ASGIApp", metrics: ServerMetrics) -> None:
        self.app = app
        self._metrics = metrics

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def watched(message: "Message") -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            route = getattr(scope.get("route"), "path_format", "other")
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.requests.labels(method, route, str(status)).inc()
            self._metrics.request_seconds.labels(method, route).observe(time.perf_counter() - began)


_METHODS = frozenset(("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"))
