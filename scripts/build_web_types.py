"""Writes what the web app's types are made from: the server's OpenAPI, without prose, limits and errors.

Run by hand after a change of a route; a test compares the file with the server (UI-3). What types do not
hold is left out, so that a better sentence in a docstring is no change of the API.
"""

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from bowerbird.app.serving import open_server
from bowerbird.config import load_settings

TARGET = Path(__file__).resolve().parent.parent / "web" / "generated" / "openapi.json"
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


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text(), encoding="utf-8")
    print(f"written: {TARGET.name}")
