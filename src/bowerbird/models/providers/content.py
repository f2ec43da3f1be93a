"""What all wires share when a request is translated: the one check that the strictest provider takes it.

Here: pictures that fit, files as text or base64, ids, names of calls, schemas of tools: what a model or a
server said in a form that some provider refuses is said in one that all take. Not here: the form of a request
(`anthropic_model`, `openai_model`), reading bytes from the blob store (the adapters do, before).
"""

import base64
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from bowerbird.core.messages import Block, ImageBlock, Message, TextBlock, ToolResultBlock
from bowerbird.core.pictures import PICTURE_BYTES, picture_size, picture_type
from bowerbird.core.requests import ToolSpec

BlobReader = Callable[[str], bytes]
"""Returns the bytes of `sha256:…`; raises a BowerbirdError or OSError when there are none."""

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MOST_TOOLS = 128  # OpenAI and those who follow it refuse more
LONGEST_SIDE = 8_000  # pixels; Claude refuses more, and 2,000 where a request has more than 20 pictures
LONGEST_OF_MANY, MANY, MOST_PICTURES = 2_000, 20, 100
_AT_ONCE = 10  # that are left out: what was sent stays as it was for the next ones
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME = 64
_NO_NAME = "unnamed"
_COMBINED = ("anyOf", "oneOf", "allOf")
_NOT_AT_TOP = (*_COMBINED, "not", "enum", "const", "$ref", "if", "then", "else")
_NO_SCHEMAS = frozenset(("enum", "const", "default", "examples", "required", "type"))
_NAMED = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"))
_DEEPEST = 16
_KEPT_AS = "_wire_schema"
# What a form of answers may say where each object must be closed and no limit is known.
_SAID_STRICTLY = frozenset(("type", "enum", "const", "title", "required", "$ref"))
_STRICT_FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
)


def images_in(messages: Iterable[Message]) -> list[ImageBlock]:
    """Return every image or file block of `messages`, also those inside tool results."""
    return [image for images in [message.images for message in messages] if images for image in images]


def with_fit_pictures(
    messages: Sequence[Message], blobs: Mapping[str, bytes], refused: Collection[str]
) -> tuple[Sequence[Message], tuple[str, ...]]:
    """Return messages in which each picture is one that every provider takes, the others as text; and notes.

    Args:
        messages: what is sent; returned itself where nothing has to change.
        blobs: the bytes of pictures.
        refused: blobs that this provider did not take.
    """
    pictures = images_in(messages)
    counted = [n for n, block in enumerate(pictures) if block.media_type.startswith("image/")]
    fit: list[TextBlock | ImageBlock] = list(pictures)
    cut = _left_out(len(counted), MOST_PICTURES)
    longest = {n: _put_in_place(fit, n, blobs, refused) for n in counted[cut:]}
    shown = [n for n, side in longest.items() if side]
    large = any(side > LONGEST_OF_MANY for side in longest.values())
    for n in counted[:cut] + shown[: _left_out(len(shown), MANY) if large else 0]:
        fit[n] = _older(pictures[n])
    if fit == pictures:
        return messages, ()
    blocks = iter(fit)
    notes = (f"left out: {block.text}" for block in fit if isinstance(block, TextBlock))
    return [_with_blocks(m, blocks) if m.images else m for m in messages], tuple(dict.fromkeys(notes))


def _left_out(count: int, most: int) -> int:
    """Return how many of the oldest to leave out: many at once, so that a beginning stays equal."""
    return -(-max(0, count - most) // _AT_ONCE) * _AT_ONCE


def _older(block: ImageBlock) -> TextBlock:
    return TextBlock(f"[image: {block.media_type}; not shown: of so many pictures only the newest are]")


def _put_in_place(
    fit: list[TextBlock | ImageBlock], at: int, blobs: Mapping[str, bytes], refused: Collection[str]
) -> int:
    """Put a picture as what it is, or the reason why not, in its place; return its longest side, or 0."""
    block = cast("ImageBlock", fit[at])
    content = blobs.get(block.source.blob)
    if content is None:
        return 0  # it is described as what is lost
    size, kind = picture_size(content), picture_type(content)
    if block.source.blob in refused:
        why = "it was refused by the provider"
    elif len(content) > PICTURE_BYTES:
        why = f"larger than {PICTURE_BYTES >> 20} MiB"
    elif size is None or kind is None:
        why = "broken, or of a format that is not known"
    elif max(size) > LONGEST_SIDE:
        why = f"{size[0]:,} × {size[1]:,} pixels, over {LONGEST_SIDE:,}"
    else:
        fit[at] = msgspec.structs.replace(block, media_type=kind)
        return max(size)
    fit[at] = TextBlock(described(block, blobs, why))
    return 0


def _with_blocks(message: Message, blocks: Iterator[TextBlock | ImageBlock]) -> Message:
    """Return a message whose pictures are the next of `blocks`, in their order."""
    content: list[Block] = []
    for block in message.content:
        if isinstance(block, ImageBlock):
            content.append(next(blocks))
        elif isinstance(block, ToolResultBlock) and not isinstance(block.content, str):
            parts = [next(blocks) if isinstance(part, ImageBlock) else part for part in block.content]
            content.append(msgspec.structs.replace(block, content=parts))
        else:
            content.append(block)
    return msgspec.structs.replace(message, content=tuple(content))


def described(block: ImageBlock, blobs: Mapping[str, bytes], why: str = "") -> str:
    """Return the text line that stands for a file a model cannot take, and why it cannot."""
    content = blobs.get(block.source.blob)
    size = "not available" if content is None else f"{len(content):,} bytes"
    kind = "image" if block.media_type.startswith("image/") else "file"
    return f"[{kind}: {block.media_type}, {size}{why and f'; not shown: {why}'}]"


def base64_of(block: ImageBlock, blobs: Mapping[str, bytes]) -> str | None:
    """Return the bytes of `block` as base64, None when they could not be read."""
    content = blobs.get(block.source.blob)
    return None if content is None else base64.b64encode(content).decode("ascii")


def wire_id(call_id: str, *, short: bool = False) -> str:
    """Return `call_id` as a provider takes it; another provider's form becomes a stable hash.

    Example:
        >>> wire_id("call_1"), len(wire_id("call_1", short=True))
        ('call_1', 9)
    """
    pattern = _SHORT_ID if short else _SAFE_ID
    if pattern.fullmatch(call_id):
        return call_id
    digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
    return digest[:9] if short else f"call_{digest[:16]}"


def wire_name(name: str) -> str:
    """Return the name of a call as every provider takes it back; models say names that no tool can have.

    Example:
        >>> wire_name("bash"), wire_name("functions.bash"), wire_name("")
        ('bash', 'functions_bash', 'unnamed')
    """
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or _NO_NAME


def few_tools(tools: Sequence[ToolSpec]) -> tuple[Sequence[ToolSpec], tuple[str, ...]]:
    """Return as many tools as every provider takes, the first ones, and a note that names the others."""
    left = ", ".join(tool.name for tool in tools[MOST_TOOLS:])
    return tools[:MOST_TOOLS], (f"left out, over {MOST_TOOLS} tools: {left}",) if left else ()


def wire_schema(tool: ToolSpec) -> dict[str, Any]:
    """Return the schema of a tool's parameters as every provider takes it; made once per tool.

    What is left out here still holds: a call's arguments are checked against the tool's own schema.
    """
    kept = cast("dict[str, dict[str, Any]]", vars(tool))
    if _KEPT_AS not in kept:
        kept[_KEPT_AS] = _object(_with_items(tool.input_schema), tool.input_schema)
    return kept[_KEPT_AS]


def _object(schema: dict[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with properties, among them those of alternatives: no such may stand at the top."""
    properties: dict[str, Any] = {}
    for part in _alternatives(schema, root, 0):
        properties |= {name: shown for name, shown in part.items() if name not in properties}
    kept = {key: value for key, value in schema.items() if key not in _NOT_AT_TOP}
    return {**kept, "type": "object", "properties": properties}


def _alternatives(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Iterable[dict[str, Any]]:
    """Yield the properties of a schema and of all that it combines."""
    own = schema.get("properties")
    if isinstance(own, dict):
        yield cast("dict[str, Any]", own)
    parts = [part for key in _COMBINED for part in cast("list[Any]", schema.get(key) or [])]
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = root
        for step in reference[2:].split("/"):
            target = cast("Mapping[str, Any]", target).get(step) if isinstance(target, Mapping) else None
        parts.append(_with_items(target))
    for part in parts if depth < _DEEPEST else ():
        if isinstance(part, Mapping):
            yield from _alternatives(cast("Mapping[str, Any]", part), root, depth + 1)


def _with_items(schema: Any) -> Any:
    """Return a schema in which every array says what it holds; some providers take no other."""
    if isinstance(schema, list):
        return [_with_items(part) for part in cast("list[Any]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Any] = {}
    for key, value in cast("Mapping[str, Any]", schema).items():
        if key in _NO_SCHEMAS:
            made[key] = value
        elif key in _NAMED and isinstance(value, Mapping):
            named = cast("Mapping[str, Any]", value)
            made[key] = {name: _with_items(part) for name, part in named.items()}
        else:
            made[key] = _with_items(value)
    kinds: Any = made.get("type")
    is_array = kinds == "array" or (isinstance(kinds, list) and "array" in kinds)
    if is_array and not isinstance(made.get("items"), dict):
        # A tuple says its places one by one, and closes its end with `false`.
        places = cast("list[Any]", made.get("prefixItems") or made.get("items") or [])
        different = [place for at, place in enumerate(places) if place not in places[:at]]
        made["items"] = different[0] if len(different) == 1 else {"anyOf": different} if different else {}
    return made


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a form of answers as the strictest provider takes it; None where it cannot be said there.

    Objects are closed; limits stand in the description, and still hold when the answer is checked.

    Example:
        >>> strict_schema({"type": "integer", "minimum": 1})
        {'type': 'integer', 'description': '{minimum: 1}'}
        >>> strict_schema({"type": "object", "additionalProperties": {"type": "string"}})
    """
    try:
        return _strict(schema)
    except ValueError:
        return None


def _strict(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise ValueError("no schema")
    given = dict(cast("Mapping[str, Any]", schema))
    kinds = given.get("type")
    if isinstance(kinds, list):
        apart = [{**given, "type": kind} for kind in cast("list[str]", kinds)]
        return {"anyOf": [_strict(one) for one in apart]}
    made: dict[str, Any] = {}
    limits: list[str] = []
    if kinds == "object" and "properties" not in given and given.get("additionalProperties") is not False:
        raise ValueError("an object whose keys are not known")
    for key, value in given.items():
        if key in _SAID_STRICTLY or (key == "minItems" and value in (0, 1)):
            made[key] = value
        elif key in ("$defs", "definitions", "properties"):
            named = cast("Mapping[str, Any]", value)
            made[key] = {name: _strict(part) for name, part in named.items()}
        elif key in _COMBINED:
            parts = cast("list[Any]", value)
            made["allOf" if key == "allOf" else "anyOf"] = [_strict(part) for part in parts]
        elif key == "items":
            made[key] = _strict(value)
        elif key == "format" and value in _STRICT_FORMATS:
            made[key] = value
        elif key not in ("description", "additionalProperties", "default"):
            limits.append(f"{key}: {value}")
    if kinds == "object":
        made = {**made, "properties": made.get("properties", {}), "additionalProperties": False}
    said = [str(given.get("description") or ""), "{" + ", ".join(limits) + "}" if limits else ""]
    if any(said):
        made["description"] = "\n\n".join(filter(None, said))
    return made
