"""A written value into the type of its key: texts of the environment, blanks, sizes.

Here, pure: `convert`, which refuses what no reader would expect (true as a number, a
number as a name). Not here: ranges and choices (the `Section` classes), sources.
"""

import json
import math
import re
from typing import Any, cast

from bowerbird.config.keys import KeyInfo

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})
_SIZE = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)\s*(?P<unit>[KMGT]i?B?|B)", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


class Wrong(ValueError):
    """The value has the wrong form; the text says what it should be."""


class _NotSet:
    def __repr__(self) -> str:
        return "not set"


NOT_SET = _NotSet()


def convert(info: KeyInfo, value: Any, *, from_text: bool) -> Any:
    """Return `value` in the type of the key `info`, or `NOT_SET` for a blank optional one.

    Args:
        info: the key. value: what the source wrote.
        from_text: it came as text from environment, `.env` or a flag, where lists and
            mappings are JSON or comma-separated.

    Raises:
        Wrong: the form is wrong.

    Example:
        >>> from bowerbird.config.keys import find
        >>> convert(find(("tools", "allowed_commands")), "ls, cat", from_text=True)
        ['ls', 'cat']
    """
    if isinstance(value, str) and not value.strip() and info.nullable:
        return NOT_SET  # CF-7, CF-64: a blank optional text is null
    if info.kind == "int":
        return _integer(value, info.unit)
    if info.kind == "float":
        return _float(value)
    if info.kind == "bool":
        return _flag(value)
    if info.kind == "list":
        return _list(info, value, from_text)
    if info.kind == "any":
        return _structured(value) if from_text else value
    if info.kind == "choice":
        return _choice(value)
    if not isinstance(value, str):
        raise Wrong("must be text; put it in quotes")
    if "\0" in value:
        raise Wrong("must not hold a NUL character")
    return _secret(value) if info.kind == "secret" else value


def _secret(text: str) -> str:
    """Return a key or token without what an editor or a mounted file puts around it: headers take no line."""
    text = text.strip()
    if not text.isprintable():
        raise Wrong("holds a line break, or another character that is not seen; copy it again")
    return text


def _integer(value: Any, unit: str) -> int:
    if isinstance(value, bool):
        raise Wrong("must be an integer")
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        text = value.strip()
        if re.fullmatch(r"[-+]?[0-9]{1,30}", text):
            return int(text)
        size = _SIZE.fullmatch(text)
        if unit == "bytes" and size:
            return int(float(size["number"]) * 1024 ** _POWERS[size["unit"].lower().rstrip("b").rstrip("i")])
    raise Wrong("must be an integer")


def _float(value: Any) -> float:
    if isinstance(value, bool):
        raise Wrong("must be a number")
    if isinstance(value, str):
        try:
            value = float(value.strip())
        except ValueError:
            raise Wrong("must be a number") from None
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise Wrong("must be a number")
    return float(value)


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if isinstance(value, str | int) and text in _TRUE | _FALSE:
        return text in _TRUE
    raise Wrong("must be true or false")


def _choice(value: Any) -> str:
    if isinstance(value, bool):  # YAML reads `on` and `off` as text, but true and false not
        return str(value).lower()
    if not isinstance(value, str):
        raise Wrong("must be one of the names")
    return value.strip()


def _list(info: KeyInfo, value: Any, from_text: bool) -> list[Any]:
    if isinstance(value, str) and from_text:
        text = value.strip()
        if text.startswith("["):
            value = _structured(text)
        else:
            value = [part.strip() for part in text.split(",") if part.strip()]
    if isinstance(value, str) and value in info.choices:
        value = [value]  # one word that stands for a whole list
    if not isinstance(value, list | tuple):
        raise Wrong("must be a list")
    items = list(cast("list[Any]", value))
    if info.item_kind == "text":
        for number, item in enumerate(items, 1):
            if not isinstance(item, str):
                raise Wrong(f"item {number} must be text; put it in quotes")
    return items


def _structured(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text.startswith(("[", "{")):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise Wrong(f"is not JSON: {str(error)[:80]}") from None


def shown(info: KeyInfo, value: Any) -> str:
    """Return `value` for an error message: short, and never a secret."""
    if info.secret or info.kind == "url":
        return "a value not shown"
    text = json.dumps(value, ensure_ascii=False, default=str) if not isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
