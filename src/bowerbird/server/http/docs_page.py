"""`/docs`: the description of the routes as one page that needs nothing else (SV-4, SV-59); the socket's own.

Here: from the OpenAPI description to HTML, serving the socket's AsyncAPI. Not here: the descriptions
themselves (`routes/openapi.py`, `core/wire/reference.py`).

The usual pages for such a description load scripts from elsewhere, which our policy forbids and a server
without a network could not show. This one has no script: what can be opened are `<details>`.
"""

import html
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import Response

from bowerbird.core.wire.reference import asyncapi as socket_description
from bowerbird.server.common.context import context_of
from bowerbird.server.common.json_answers import answer

router = APIRouter(include_in_schema=False)

Schema = Mapping[str, Any]
_REF = "#/components/schemas/"
_COMMON = ("401", "403", "404", "409", "413", "415", "421", "429", "500", "502", "503", "507")
_STYLE = """
:root{color-scheme:light dark;--line:#8884;--dim:#777;--fill:#8881}
body{font:15px/1.55 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:2rem 1.25rem 6rem}
h1{margin:0}h2{margin:2.5rem 0 .5rem;border-bottom:1px solid var(--line)}
code,pre{font:13px/1.5 ui-monospace,monospace}summary{cursor:pointer;padding:.4rem .5rem}
details{border:1px solid var(--line);border-radius:8px;margin:.4rem 0}details>div{padding:.25rem .9rem .8rem}
summary:hover{background:var(--fill)}summary b{display:inline-block;min-width:4.2rem}
summary span{color:var(--dim);float:right}table{border-collapse:collapse;width:100%}
td,th{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;border-bottom:1px solid var(--line)}
nav a{margin-right:.9rem}p.dim{color:var(--dim)}
"""


@router.get("/docs")
async def docs(request: Request) -> Response:
    """Serve the page."""
    app = cast("FastAPI", request.app)
    return Response(_page(app), media_type="text/html", headers={"Cache-Control": "no-cache"})


@router.get("/asyncapi.json")
async def asyncapi(request: Request) -> Response:
    """Serve the description of the WebSocket's frames."""
    context = context_of(request)
    return answer(socket_description(context.version, needs_token=context.settings.auth != "none"))


@lru_cache(maxsize=4)
def _page(app: FastAPI) -> bytes:
    return page(app.openapi()).encode("utf-8", "replace")


def page(described: Mapping[str, Any]) -> str:
    """Return the page for an OpenAPI description.

    Args:
        described: as `/openapi.json` has it.
    """
    groups: dict[str, list[str]] = {}
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            tag = next(iter(operation.get("tags", ())), "other")
            groups.setdefault(tag, []).append(_operation(method.upper(), path, operation))
    title = f"{_text(described['info']['title'])} {_text(described['info']['version'])}"
    nav = " ".join(f'<a href="#{_text(tag)}">{_text(tag)}</a>' for tag in groups)
    body = "".join(f'<h2 id="{_text(tag)}">{_text(tag)}</h2>{"".join(rows)}' for tag, rows in groups.items())
    schemas = "".join(_component(name, schema) for name, schema in _schemas(described))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style><h1>{title}</h1>"
        '<p>Machines read <a href="openapi.json">openapi.json</a>. Errors are '
        '<code>{"detail", "code"}</code>; every changing request takes an <code>Idempotency-Key</code>. '
        "A conversation's events come over the WebSocket <code>/api/chat/{conversation_id}/ws</code>: "
        '<a href="asyncapi.json">asyncapi.json</a>.</p>'
        f'<nav>{nav} <a href="#schemas">schemas</a></nav>{body}<h2 id="schemas">schemas</h2>{schemas}</html>'
    )


def _operation(method: str, path: str, operation: Schema) -> str:
    parts = [f"<p>{_text(operation.get('description', ''))}</p>"]
    parameters = [p for p in operation.get("parameters", ()) if p["name"] != "Idempotency-Key"]
    if parameters:
        rows = [(p["name"], p["in"], _type(p["schema"]), _text(p.get("description", ""))) for p in parameters]
        parts.append(_table(("parameter", "in", "type", ""), rows))
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"<p>Body, <code>{_text(kind)}</code>: {_type(content.get('schema', {}))}</p>")
    parts.append(_table(("answer", "", ""), list(_answers(operation))))
    common = [status for status in _COMMON if status in operation.get("responses", {})]
    parts.append(f'<p class="dim">Errors that any route may answer: {", ".join(common)}</p>')
    return (
        f"<details><summary><b>{method}</b> <code>{_text(path)}</code>"
        f"<span>{_text(operation.get('summary', ''))}</span></summary><div>{''.join(parts)}</div></details>"
    )


def _answers(operation: Schema) -> Iterator[tuple[str, str, str]]:
    for status, response in operation.get("responses", {}).items():
        if status not in _COMMON:
            types = [_type(content.get("schema", {})) for content in response.get("content", {}).values()]
            yield status, _text(response.get("description", "")), " or ".join(types)


def _schemas(described: Mapping[str, Any]) -> list[tuple[str, Schema]]:
    found: Mapping[str, Schema] = described.get("components", {}).get("schemas", {})
    return sorted(found.items())


def _component(name: str, schema: Schema) -> str:
    needed = set(schema.get("required", ()))
    rows = [
        (member, "needed" if member in needed else "", _type(of), _text(of.get("description", "")))
        for member, of in schema.get("properties", {}).items()
    ]
    said = f"<p>{_text(schema.get('description', ''))}</p>"
    return (
        f'<details id="{_text(name)}"><summary><code>{_text(name)}</code></summary>'
        f"<div>{said}{_table(('member', '', 'type', ''), rows)}</div></details>"
    )


def _type(schema: Schema) -> str:
    """Return a schema in a few words, as HTML."""
    if "$ref" in schema:
        name = _text(str(schema["$ref"]).removeprefix(_REF))
        return f'<a href="#{name}">{name}</a>'
    if "enum" in schema:
        return " | ".join(f"<code>{_text(value)}</code>" for value in schema["enum"])
    forms = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if forms:
        return " | ".join(dict.fromkeys(_type(form) for form in forms))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    limits = [
        f"{key} {schema[key]}" for key in ("minimum", "maximum", "maxLength", "maxItems") if key in schema
    ]
    shown = _text(schema.get("type", "anything"))
    return f"{shown} ({', '.join(map(_text, limits))})" if limits else shown


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table; the first cells are names, the others HTML already."""
    if not rows:
        return ""
    heads = "".join(f"<th>{cell}</th>" for cell in head)
    lines = "".join(
        f"<tr><td><code>{_text(row[0])}</code></td>{''.join(f'<td>{cell}</td>' for cell in row[1:])}</tr>"
        for row in rows
    )
    return f"<table><tr>{heads}</tr>{lines}</table>"


def _text(value: object) -> str:
    return html.escape(str(value), quote=True)
