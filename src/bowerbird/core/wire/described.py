"""What a frame's own class says about it, for the manual, the page's types and AsyncAPI.

Here: docstrings and types as values. Not here: any of those texts (`manual.py`, `typescript.py`,
`asyncapi.py`).
"""

import inspect
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from bowerbird.core.usage import Usage
from bowerbird.core.wire.base import ClientFrame, ServerFrame, frame_type
from bowerbird.core.wire.kinds import CLIENT_FRAMES, SERVER_FRAMES
from bowerbird.core.wire.rows import TurnUsage

Kind = type[ServerFrame] | type[ClientFrame]
Schema = Mapping[str, Any]
REF = "#/components/schemas/"

_SECTIONS = re.compile(r"^(Attributes|Example):\s*$", re.MULTILINE)
_ENDS = "(?:^|(?<=[.;?!])) *"


class Member(NamedTuple):
    """A member of a frame: its name on the wire, its JSON Schema, whether it is always there."""

    name: str
    schema: Schema
    is_needed: bool
    meaning: str


class Described(NamedTuple):
    """A frame as its class describes it; `members` are its own, without those that every frame has."""

    type: str
    name: str
    meaning: str
    members: tuple[Member, ...]
    example: dict[str, Any]


def describe(kind: Kind) -> Described:
    """Return what a frame's class says.

    Example:
        >>> from bowerbird.core import wire
        >>> describe(wire.PlanReady).meaning
        'The plan waits for a decision; `done` follows. Answer with `plan_approval`.'
    """
    meaning, attributes, example = sections(kind)
    schema = schemas()[kind.__name__]
    said = meanings(attributes, list(schema["properties"]), kind)
    own = [name for name in schema["properties"] if name != "type" and name not in common_members(kind)]
    members = tuple(
        Member(name, schema["properties"][name], name in schema["required"], said.get(name, ""))
        for name in own
    )
    return Described(frame_type(kind), kind.__name__, meaning, members, json.loads(example))


def common_members(kind: Kind) -> tuple[str, ...]:
    """Return the names of members that every frame of its direction has, without those it says more of."""
    base = ServerFrame if issubclass(kind, ServerFrame) else ClientFrame
    own = kind.__annotations__
    return tuple(name for name in base.__struct_fields__ if name not in own)


def sections(kind: type) -> tuple[str, str, str]:
    """Return a docstring's meaning, its members' text and its example, which is "" where there is none."""
    parts = _SECTIONS.split(inspect.cleandoc(kind.__doc__ or ""))
    named = dict(zip(parts[1::2], parts[2::2], strict=True))
    meaning = re.sub(r"(?<!\n)\n(?!\n)", " ", parts[0].strip())
    return meaning, _flat(named.get("Attributes", "")), named.get("Example", "").strip()


def meanings(text: str, names: list[str], kind: Any = None) -> dict[str, str]:
    """Return what a text such as `host: its name. port: on it.` says of each member.

    Args:
        names: of members, as on the wire. kind: a struct some of whose members are called otherwise there.

    Example:
        >>> meanings("host: its name. port: on it.", ["host", "port"])
        {'host': 'its name.', 'port': 'on it.'}
    """
    wired = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)) if kind else {}
    known = [*names, *(name for name, other in wired.items() if name != other)]
    cut = re.split(_ENDS + "(" + "|".join(map(re.escape, known)) + "): ", text)
    return {wired.get(name, name): said.strip() for name, said in zip(cut[1::2], cut[2::2], strict=True)}


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of every frame and of what they hold, by the name of its class."""
    kinds: list[Any] = [*SERVER_FRAMES.values(), *CLIENT_FRAMES.values()]
    _, found = msgspec.json.schema_components(kinds, ref_template=REF + "{name}")
    structs = {kind.__name__: kind for kind in (*kinds, TurnUsage, Usage)}
    return {
        name: _with_words(structs[name], schema) if name in structs else schema
        for name, schema in found.items()
    }


def _with_words(kind: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a struct's schema with what its docstring says; what a server sends, it sends whole."""
    meaning, attributes, _ = sections(kind)
    properties: dict[str, Any] = schema["properties"]
    said = meanings(attributes, list(properties), kind)
    base = next((base for base in (ServerFrame, ClientFrame) if issubclass(kind, base)), None)
    if base is not None:
        said = meanings(sections(base)[1], list(base.__struct_fields__)) | said
    needed = schema["required"] if base is ClientFrame else ["type"][: base is not None] + _always(kind)
    described = {
        name: {**inner, "description": said[name]} if said.get(name) else inner
        for name, inner in properties.items()
    }
    return {**schema, "description": meaning, "properties": described, "required": needed}


def _always(kind: Any) -> list[str]:
    """Return the members that are always sent, under their names on the wire."""
    names, defaults = kind.__struct_encode_fields__, kind.__struct_defaults__
    left_out = {
        name
        for name, default in zip(names[len(names) - len(defaults) :], defaults, strict=True)
        if default is UNSET
    }
    return [name for name in names if name not in left_out]


def _flat(text: str) -> str:
    return " ".join(text.split())
