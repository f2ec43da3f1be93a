"""What a run is given: chat, or data that goes into a file and a short message (AG-28 … AG-31, AG-9).

Here: telling the two apart, previews, the inputs file's name and text, the message's template. Not
here: the run itself, structured output.
"""

import base64
import hashlib
import json
import math
import string
from collections.abc import Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any, cast

import msgspec

from bowerbird.agent.branch_files import is_taken
from bowerbird.core.errors import InvalidArgument
from bowerbird.core.messages import Message, UnknownBlock, message_from_data, user_text
from bowerbird.core.pictures import PICTURE_BYTES, picture_type
from bowerbird.core.threads import to_thread

if TYPE_CHECKING:
    from bowerbird.workspace import Branch

MAX_INPUT_BYTES = 64 * 1024 * 1024
PREVIEW_CHARS = 200
PREVIEW_ITEMS = 5
PLACEHOLDERS = ("inputs", "inputs_schema", "outputs_schema", "examples")
_MOST_NAMES = 10_000


class PromptParts(msgspec.Struct, frozen=True):
    """What a data message may show beside the inputs; "" leaves a part out."""

    template: str | None = None
    examples: str = ""
    outputs_schema: str = ""
    with_inputs_schema: bool = False


def is_chat(inputs: Any) -> bool:
    """Whether `inputs` is chat: a string, messages, or `{"messages": […]}` with no other key."""
    if isinstance(inputs, str):
        return True
    if isinstance(inputs, Mapping):
        only = cast("Mapping[str, Any]", inputs)
        return set(only) == {"messages"} and isinstance(only["messages"], Sequence | tuple)
    if isinstance(inputs, Sequence) and not isinstance(inputs, bytes | bytearray):
        items = cast("Sequence[Any]", inputs)
        return bool(items) and all(isinstance(i, Message) or _is_message(i) for i in items)
    return False


def check_given(inputs: object) -> None:
    """Raise InvalidArgument when there is nothing to answer: None, a blank text, no messages."""
    empty = isinstance(inputs, list | tuple) and not inputs
    if inputs is None or empty or (isinstance(inputs, str) and not inputs.strip()):
        raise InvalidArgument(f"inputs is {inputs!r}: nothing to answer; give a text, messages or data")


def chat_messages(inputs: Any, pictures: list[bytes] | None = None) -> tuple[Message, ...]:
    """Return the messages of chat `inputs`.

    Args:
        pictures: the bytes of those in it are added, for the run to keep; None = none are taken.

    Raises:
        InvalidArgument: there is none, or one has a wrong role or block; its index is named.
    """
    check_given(inputs)
    if isinstance(inputs, str):
        return (user_text(inputs),)
    items = cast("Mapping[str, Any]", inputs)["messages"] if isinstance(inputs, Mapping) else inputs
    if not items:
        raise InvalidArgument("messages is empty; give at least one message")
    messages: list[Message] = []
    for at, item in enumerate(cast("Sequence[Any]", items)):
        if isinstance(item, Message):
            messages.append(item)
            continue
        try:
            message = message_from_data(item if pictures is None else _with_blobs(item, pictures))
        except (ValueError, TypeError, AttributeError) as error:
            raise InvalidArgument(f"messages[{at}] is not a message: {error}") from error
        strange = next((block.raw for block in message.content if isinstance(block, UnknownBlock)), None)
        if strange is not None:  # left out without a word, the model would answer as if it had seen it
            raise InvalidArgument(
                f"messages[{at}] has a part of the type {strange.get('type')!r}, which is not taken: "
                "use text, an image with a base64 source, or name the path of a picture in the workspace, "
                "so that read_file shows it"
            )
        messages.append(message)
    return tuple(messages)


def _with_blobs(item: Mapping[str, Any], pictures: list[bytes]) -> dict[str, Any]:
    """Return a plain message with each picture by the name of its bytes; raises ValueError for none."""
    content = item.get("content")
    if isinstance(content, str) or not content:
        return dict(item)
    parts: list[Any] = []
    for part in cast("Sequence[dict[str, Any]]", content):
        source: Any = part.get("source") if part.get("type") == "image" else None
        if source is None or "blob" in source:
            parts.append(part)
        else:
            if source.get("type") != "base64":
                raise ValueError(f"a picture's source is {source.get('type')!r}; use base64")
            picture = base64.b64decode(source.get("data", ""), validate=True)
            kind = picture_type(picture[:12])
            if kind is None or len(picture) > PICTURE_BYTES:
                raise ValueError("a picture is PNG, JPEG, GIF or WebP, of 5 MiB at most")
            pictures.append(picture)
            blob = f"sha256:{hashlib.sha256(picture).hexdigest()}"
            parts.append({"type": "image", "media_type": kind, "source": {"blob": blob}})
    return {**item, "content": parts}


async def data_message(data: Any, branch: "Branch", parts: PromptParts) -> Message:
    """Write `data` to an inputs file on `branch` and return the message that describes it.

    Raises:
        InvalidArgument: a value has no JSON form (its path is named), or the text is over 64 MiB.
    """
    text = data_text(data)
    name = await _free_name(branch)
    await to_thread(branch.write_private, f"/{name}", text)
    described = {"fields": describe(data), "inputs_file": name}
    return user_text(_fill(parts, described, data))


def data_text(data: Any) -> bytes:
    """Return the UTF-8 JSON of `data`, 2 spaces deep, non-ASCII kept."""
    try:
        text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument(f"inputs cannot be written as JSON: {_culprit(data, 'inputs')}") from error
    if len(text) > MAX_INPUT_BYTES:
        raise InvalidArgument(
            f"inputs are {len(text):,} bytes of JSON; at most {MAX_INPUT_BYTES:,} are taken"
        )
    return text


def describe(data: Any) -> list[dict[str, Any]]:
    """Return name, type, size and preview of each field; what is no mapping is one field `inputs`."""
    if isinstance(data, Mapping):
        return [_field(str(name), value) for name, value in cast("Mapping[Any, Any]", data).items()]
    return [_field("inputs", data)]


def check_template(template: str) -> None:
    """Raise InvalidArgument when `template` has a placeholder other than the four known ones."""
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise InvalidArgument(f"prompt_template cannot be read: {error}") from error
    for name in names:
        if name not in PLACEHOLDERS:
            known = ", ".join(f"{{{p}}}" for p in PLACEHOLDERS)
            raise InvalidArgument(f"prompt_template has the placeholder {{{name}}}; known: {known}")


def examples_text(examples: Sequence[Mapping[str, Any]] | None) -> str:
    """Return worked examples as text, "" for none."""
    parts = [f"Input:\n{_compact(e['input'])}\nOutput:\n{_compact(e['output'])}" for e in examples or ()]
    return "Examples:\n\n" + "\n\n".join(parts) if parts else ""


def schema_of(data: Any) -> dict[str, Any]:
    """Return a JSON Schema that describes the shape of `data`, two levels deep."""
    kind = _json_type(data)
    if isinstance(data, Mapping):
        fields = cast("Mapping[Any, Any]", data)
        return {"type": kind, "properties": {str(k): {"type": _json_type(v)} for k, v in fields.items()}}
    if isinstance(data, list | tuple) and data:
        items = cast("Sequence[Any]", data)
        return {"type": kind, "items": {"type": _json_type(items[0])}}
    return {"type": kind}


def _fill(parts: PromptParts, described: Mapping[str, Any], data: Any) -> str:
    values = {
        "inputs": _compact(described),
        "inputs_schema": _compact(schema_of(data)),
        "outputs_schema": parts.outputs_schema,
        "examples": parts.examples,
    }
    if parts.template is not None:
        return parts.template.format(**values)
    shown = [f"Inputs (the whole data is in the file {described['inputs_file']}):\n{values['inputs']}"]
    if parts.with_inputs_schema:
        shown.append(f"Schema of the inputs:\n{values['inputs_schema']}")
    if parts.outputs_schema:
        shown.append(f"Schema of the answer:\n{parts.outputs_schema}")
    if parts.examples:
        shown.append(parts.examples)
    return "\n\n".join(shown)


async def _free_name(branch: "Branch") -> str:
    for number in range(_MOST_NAMES):
        name = "inputs.json" if number == 0 else f"inputs_{number}.json"
        if not await is_taken(branch, f"/{name}"):
            return name
    raise InvalidArgument(f"inputs.json … inputs_{_MOST_NAMES - 1}.json are all taken in this branch")


def _field(name: str, value: Any) -> dict[str, Any]:
    preview, truncated = _preview(value)
    return {
        "name": name,
        "type": type(value).__name__,
        "size": len(value) if isinstance(value, Sized) else None,
        "preview": preview,
        "truncated": truncated,
    }


def _preview(value: Any) -> tuple[Any, bool]:
    if isinstance(value, str):
        return value[:PREVIEW_CHARS], len(value) > PREVIEW_CHARS
    if isinstance(value, Mapping | list | tuple):
        many = cast("Mapping[Any, Any] | Sequence[Any]", value)
        whole = _compact(_first_items(many))
        return whole[:PREVIEW_CHARS], len(many) > PREVIEW_ITEMS or len(whole) > PREVIEW_CHARS
    return value, False


def _first_items(many: "Mapping[Any, Any] | Sequence[Any]") -> Any:
    if isinstance(many, Mapping):
        return {str(k): v for k, v, _ in zip(many.keys(), many.values(), range(PREVIEW_ITEMS), strict=False)}
    return list(many[:PREVIEW_ITEMS])


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _json_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"


def _is_message(item: Any) -> bool:
    if not isinstance(item, Mapping):
        return False
    keys = set(cast("Mapping[str, Any]", item))
    return {"role", "content"} <= keys <= {"role", "content", "id", "ts"}


def _culprit(value: Any, path: str, depth: int = 0) -> str:
    """Return the path of the first value in `value` without a JSON form, and what it is."""
    if depth > 200:
        return f"{path} is nested too deeply"
    if isinstance(value, dict):
        for key, inner in cast("dict[Any, Any]", value).items():
            if not isinstance(key, str | int | float | bool | None):
                return f"{path} has the key {key!r} ({type(key).__name__})"
            if found := _culprit(inner, f"{path}[{key!r}]", depth + 1):
                return found
        return ""
    if isinstance(value, list | tuple):
        for at, inner in enumerate(cast("Sequence[Any]", value)):
            if found := _culprit(inner, f"{path}[{at}]", depth + 1):
                return found
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{path} is {value}"
    if isinstance(value, str):
        return f"{path} holds an unpaired surrogate" if _broken(value) else ""
    return (
        ""
        if value is None or isinstance(value, bool | int | float)
        else f"{path} is a {type(value).__name__}"
    )


def _broken(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)
