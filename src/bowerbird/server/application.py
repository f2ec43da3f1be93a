"""The ASGI application: routes, layers around them, errors, OpenAPI (SV-4).

Here: how the parts of this package become one application. Not here: what any of them does; making
the context and listening (`app/serving.py`).
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.middleware import Middleware
from starlette.routing import Route

from bowerbird.server.access import middleware_for
from bowerbird.server.access import router as access_router
from bowerbird.server.common.errors import Guard, handle_errors
from bowerbird.server.common.metrics import Measured
from bowerbird.server.http.bodies import BodyLimit, Heads
from bowerbird.server.http.compressed import Compressed
from bowerbird.server.http.docs_page import router as docs_router
from bowerbird.server.http.idempotency import Idempotency
from bowerbird.server.http.pages import lost_page
from bowerbird.server.http.pages import router as pages_router
from bowerbird.server.routes import routers
from bowerbird.server.routes.openapi import describe, operation_id
from bowerbird.server.socket import no_socket
from bowerbird.server.socket import router as socket_router

if TYPE_CHECKING:
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp

    from bowerbird.server.common.context import ServerContext


def create_server(context: "ServerContext", mounts: "Mapping[str, ASGIApp] | None" = None) -> FastAPI:
    """Return the application over `context`; opening and closing the context is its owner's.

    Args:
        mounts: doors of other protocols by path; they stand behind the same gate and choose their methods.

    Example:
        uvicorn.run(create_server(context), ws="websockets-sansio")
    """
    layers = [
        Middleware(Guard),
        Middleware(Measured, metrics=context.metrics),
        Middleware(Heads),
        Middleware(Compressed),
        *middleware_for(context),
        Middleware(BodyLimit, in_force=context.in_force),
        Middleware(Idempotency, context=context),
    ]
    app = FastAPI(
        title="Bowerbird",
        version=context.version,
        root_path=context.settings.root_path,
        middleware=layers,
        redirect_slashes=False,
        docs_url=None,
        generate_unique_id_function=operation_id,
        redoc_url=None,
    )
    app.state.context = context
    handle_errors(app, lost_page)
    app.router.routes.extend(Route(path, door) for path, door in (mounts or {}).items())
    app.router.routes.extend(own_routes())
    app.router.add_websocket_route("/{path:path}", no_socket)  # the last: it takes what no other has
    # For the Allow of a 405: one path may have routes in several places.
    app.state.patterns = [
        (route.path_regex, frozenset(route.methods or ()))
        for router in _every_router()
        for route in router.routes
        if isinstance(route, APIRoute)
    ]
    describe(app)
    return app


@cache
def own_routes() -> "tuple[BaseRoute, ...]":
    """Return what Bowerbird itself serves, the same for every application.

    FastAPI works out the parameters of a hundred routes anew for each application that includes them.
    """
    whole = APIRouter(generate_unique_id_function=operation_id)
    for router in _every_router():
        whole.include_router(router)
    return tuple(whole.routes)


def _every_router() -> tuple[APIRouter, ...]:
    return (*routers(), access_router, socket_router, docs_router, pages_router)
