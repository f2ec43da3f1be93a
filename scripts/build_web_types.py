"""Writes what the web app's types are made from: the server's OpenAPI, without prose, limits and errors, and
the frames of the WebSocket as TypeScript, with one example of each.

Run by hand after a change of a route or a frame; tests compare the files with the server (UI-3). What types
do not hold is left out, so that a better sentence in a docstring is no change of the API.
"""

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from bowerbird.app.serving import open_server
from bowerbird.config import load_settings
from bowerbird.core import wire
from bowerbird.core.wire.described import REF, describe, schemas

GENERATED = Path(__file__).resolve().parent.parent / "web" / "generated"
TARGET = GENERATED / "openapi.json"
PROSE = frozenset(("description", "summary", "title", "examples", "example", "tags", "operationId"))
LIMITS = frozenset(
    ("pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "minItems", "maxItems")
)
OWN_NAMES = frozenset(("preset", "workspace"))


async def schema() -> dict[str, Any]:
    """Return the OpenAPI of a server with default settings; it is opened in a directory of its own."""
    with TemporaryDirectory() as place:
        values = {"agent.data_dir": f"{place}/data", "agent.workspace": f"{place}/workspace"}
        environment = {"HOME": place, "PATH": "/usr/bin:/bin", "ANTHROPIC_API_KEY": "none is used"}
        loaded = load_settings(values, env=environment, cwd=place, home=place, kind="serve")
        async with open_server(loaded, version="0") as serving:
            return cast("dict[str, Any]", bare(serving.app.openapi()))


def bare(value: Any, *, names: bool = False) -> Any:
    """Return `value` without prose; `names`: its keys are names of things, not words of OpenAPI."""
    if isinstance(value, dict):
        kept = cast("dict[str, Any]", value)
        return {key: _member(key, inner, names=names) for key, inner in kept.items() if names or _says(key)}
    if isinstance(value, list):
        return [bare(inner) for inner in cast("list[Any]", value)]
    return value


def _says(key: str) -> bool:
    return key not in PROSE and key not in LIMITS and not key.startswith(("4", "5"))


def _member(key: str, inner: Any, *, names: bool) -> Any:
    if names and key in OWN_NAMES:  # presets and workspaces are this installation's: any name fits the type
        return {"type": ["string", "null"]}
    return bare(inner, names=not names and key in ("properties", "schemas", "paths"))


def text() -> str:
    """Return the file's content."""
    return json.dumps(asyncio.run(schema()), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


# ---------------------------------------------------------------- frames


def frames_text() -> str:
    """Return the frames as TypeScript types, and the lines that say some of them."""
    parts = [_MADE]
    parts += [_interface(name, schema) for name, schema in schemas().items()]
    parts += [
        _union("ServerFrame", [kind.__name__ for kind in wire.SERVER_FRAMES.values()]),
        _union("ClientFrame", [kind.__name__ for kind in wire.CLIENT_FRAMES.values()]),
    ]
    rows = [
        f"  {name}: {json.dumps(kind.line, ensure_ascii=False)},"
        for name, kind in wire.SERVER_FRAMES.items()
        if kind.line
    ]
    said = "/** What one line says of a frame; `{name}` stands for a member. */\n"
    parts.append(said + "\n".join(["export const LINES = {", *rows, "} as const;"]))
    return "\n\n".join(parts) + "\n"


def examples_text() -> str:
    """Return one example of every frame that the server sends."""
    rows = [
        f"  {json.dumps(describe(kind).example, ensure_ascii=False)}," for kind in wire.SERVER_FRAMES.values()
    ]
    lines = [
        'import type { ServerFrame } from "./frames.ts";',
        "",
        "export const EXAMPLES: readonly ServerFrame[] = [",
    ]
    return "\n".join([_MADE, "", *lines, *rows, "];"]) + "\n"


_MADE = "/** Made by scripts/build_web_types.py from src/bowerbird/core/wire; never edited by hand. */"


def _interface(name: str, schema: dict[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = [
        f"  {member}{'' if member in needed else '?'}: {_type(inner)};"
        for member, inner in schema["properties"].items()
    ]
    return "\n".join([f"export interface {name} {{", *rows, "}"])


def _union(name: str, members: list[str]) -> str:
    return "\n".join([f"export type {name} =", *(f"  | {member}" for member in members)]) + ";"


def _type(schema: dict[str, Any]) -> str:
    """Return a JSON Schema as a type of TypeScript."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(REF)
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_type(form) for form in schema["anyOf"])
    kind = schema.get("type")
    if kind == "array":
        inner = _type(schema.get("items", {}))
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, dict) else 'unknown'}>"
    return {"integer": "number"}.get(str(kind), str(kind)) if kind else "unknown"


FILES = {
    TARGET: text,
    GENERATED / "frames.ts": frames_text,
    GENERATED / "frame_examples.ts": examples_text,
}
"""What is written where, and by which function."""


if __name__ == "__main__":
    GENERATED.mkdir(parents=True, exist_ok=True)
    for target, made in FILES.items():
        target.write_text(made(), encoding="utf-8")
        print(f"written: {target.name}")
