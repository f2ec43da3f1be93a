"""The description of the routes (SV-4): what FastAPI cannot know is added once, when it is first asked for.

Here: errors that every route may answer, the key of repeated requests, credentials, names of presets and
workspaces. Not here: the routes' own members.
"""

from typing import TYPE_CHECKING, Any, cast

from fastapi.openapi.utils import get_openapi

from bowerbird.server.conversations.incoming import NewMessage
from bowerbird.server.http.idempotency import MAX_KEY, MUTATING
from bowerbird.server.routes.common import InvalidShown, ProblemShown

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.routing import APIRoute

    from bowerbird.server.common.context import ServerContext

# Everything a client may meet anywhere: access, limits, failures.
EVERYWHERE = {
    "401": "A credential is missing or wrong",
    "403": "Not allowed",
    "404": "There is nothing here",
    "409": "Not possible in the present state",
    "413": "Too large",
    "415": "The body has a wrong type",
    "421": "This server does not answer for that host",
    "429": "Too many requests",
    "500": "A bug; `request_id` is in the log",
    "502": "A model provider failed",
    "503": "Not now; see Retry-After",
    "507": "The disk is full",
}
OPEN = ("/health", "/health/live", "/health/ready", "/api/auth/config")
_REF = "#/components/schemas/"


def describe(app: "FastAPI") -> None:
    """Make `app.openapi` return the whole description."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = build(app, cast("ServerContext", app.state.context))
        return app.openapi_schema

    app.openapi = openapi


def build(app: "FastAPI", context: "ServerContext") -> dict[str, Any]:
    """Return the description of `app` as it is configured."""
    schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
    schemas: dict[str, Any] = schema.setdefault("components", {}).setdefault("schemas", {})
    for model in (ProblemShown, InvalidShown, NewMessage):
        described = model.model_json_schema(ref_template=_REF + "{model}")
        schemas |= described.pop("$defs", {})
        schemas[model.__name__] = described
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    _name_choices(schemas, context)
    for path, operations in cast("dict[str, dict[str, Any]]", schema["paths"]).items():
        for method, operation in operations.items():
            _complete(operation, method.upper(), is_open=path in OPEN)
    if context.settings.auth != "none":
        schema["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        for path, operations in schema["paths"].items():
            for operation in operations.values():
                operation["security"] = [] if path in OPEN else [{"bearer": []}]
    return schema


def _complete(operation: dict[str, Any], method: str, *, is_open: bool) -> None:
    del is_open
    for content in operation.get("requestBody", {}).get("content", {}).values():
        content["schema"] = _as_text(content["schema"])  # a body may be left out; it is never null
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = (
            _as_text(parameter["schema"]) if parameter["in"] == "query" else parameter["schema"]
        )
    responses = operation.setdefault("responses", {})
    for status, meaning in EVERYWHERE.items():
        responses.setdefault(status, _response(meaning, "ProblemShown"))
    if operation.get("parameters") or operation.get("requestBody") or method in MUTATING:
        responses["422"] = _response("The request does not fit its description", "InvalidShown")
    if method in MUTATING:
        key = {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "description": "A repeat within 24 h gets the first answer.",
            "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": "^[!-~]+$"},
        }
        operation.setdefault("parameters", []).append(key)


def operation_id(route: "APIRoute") -> str:
    """Return the name of a route in generated clients, such as `conversations_fork`."""
    return f"{route.tags[0] if route.tags else 'server'}_{route.name}"


def _as_text(schema: dict[str, Any]) -> dict[str, Any]:
    """Return what a parameter of a query can be: a query has no null, and one value is a list of one."""
    forms = [form for form in schema.get("anyOf", ()) if form != {"type": "null"}]
    if len(forms) == 1:
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return {**forms[0], **rest}
    if schema.get("type") == "array":
        one = {**schema["items"], "title": schema.get("title", "")}
        return {"anyOf": [schema, one]}
    return schema


def _response(meaning: str, model: str) -> dict[str, Any]:
    return {
        "description": meaning,
        "content": {"application/json": {"schema": {"$ref": _REF + model}}},
    }


def _name_choices(schemas: dict[str, Any], context: "ServerContext") -> None:
    """Say which presets and workspaces there are: other names are refused."""
    choices = {
        "preset": [found.name for found in context.offers.presets()],
        "workspace": sorted(context.settings.registered),
    }
    members = schemas.get("NewConversation", {}).get("properties", {})
    for name, known in choices.items():
        if name in members:
            kept = {k: v for k, v in members[name].items() if k not in ("anyOf", "type")}
            members[name] = {**kept, "enum": [*known, None]}
    for owner in ("NewConversation", "Changes"):
        model = schemas.get(owner, {}).get("properties", {}).get("model", {})
        for form in model.get("anyOf", ()):
            if form.get("type") == "string":
                form["pattern"] = context.offers.model_pattern
    models = schemas.get("NewTournament", {}).get("properties", {}).get("models", {})
    if models:
        models["items"]["pattern"] = context.offers.model_pattern
