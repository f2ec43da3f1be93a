"""What a process that servers are forked from works out once, so that no fork has to.

Here: the validators of the settings, the parameters of the routes. Not here: imports, forks.
"""


def prepare() -> None:
    """Have pydantic and FastAPI build what they else build in each fork when it is first needed."""
    from fastapi.openapi.utils import get_openapi
    from pydantic import BaseModel

    from bowerbird.config.tree import Settings
    from bowerbird.server.application import own_routes

    for field in Settings.model_fields.values():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            kind.model_rebuild()
    get_openapi(title="Bowerbird", version="0", routes=own_routes())
