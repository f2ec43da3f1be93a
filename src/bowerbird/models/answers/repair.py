"""A model's call arguments made readable, by a closed list of repairs (MO-25, MO-26).

Here: text → object, or the reason why not. Not here: the schema of a tool (`fitting`), running it.

Strict JSON first; then exactly these repairs in this order, each named in the result: empty → `{}`;
surrounding code fence or whitespace; a JSON string containing JSON, decoded once; raw control
characters in strings; trailing commas; `True`/`False`/`None`. Missing closers, quotes and keys are
never invented.
"""

import json
import re
from collections.abc import Callable
from typing import Any, cast

import msgspec

from bowerbird.models.answers.fitting import Fitted, fit_to_schema, json_type

__all__ = ["Fitted", "Repaired", "fit_to_schema", "repair_arguments"]

_FENCE = "```"
_FENCE_HEAD = re.compile(r"[A-Za-z0-9_+-]*[ \t]*")
_INVISIBLE = "\ufeff\u200b\u2060"
_SURROGATE = re.compile(r"(?P<at>\\u[dD][89a-fA-F][0-9a-fA-F]{2}|[\ud800-\udfff])")
_NO_JSON_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|(?P<at>-?Infinity|NaN|-?[0-9]{1000,})', re.DOTALL)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_WORD = re.compile(r"(?<![\w.$-])(True|False|None)(?![\w.$-])")
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


class Repaired(msgspec.Struct, frozen=True):
    """Decoded arguments.

    Attributes:
        input: what is stored as the call's input: the object, or `raw_arguments`/`value`.
        repairs: names of the repairs made, in order.
        error: why the call must not run, None when it may.
    """

    input: dict[str, Any]
    repairs: tuple[str, ...] = ()
    error: str | None = None


def repair_arguments(text: str, *, complete: bool = True) -> Repaired:
    """Decode the arguments of a call.

    Args:
        text: as the model sent them.
        complete: False when the answer was cut here; then nothing stands for empty arguments.

    Example:
        >>> repair_arguments('{"a": True,}')
        Repaired(input={'a': True}, repairs=('trailing commas', 'Python literals'), error=None)
    """
    if complete and not text.strip():
        return Repaired({}, ("empty arguments",))
    done: list[str] = []
    mended, string = text, None
    value, error = _decode(mended)
    for name, mend in _REPAIRS:
        if error is None and not isinstance(value, str):
            break
        if error is None and name != _STRING:
            continue  # readable, only a string: nothing but its content can help
        attempt = mend(mended)
        if attempt is None or attempt == mended:
            continue
        string = value if error is None else string
        mended = attempt
        done.append(name)
        value, error = _decode(mended)
    if error is not None and string is not None:
        value, error, done = string, None, []  # a string whose content is no JSON stays that string
    if error is not None:
        # The position of the first look: it belongs to the text that the model knows.
        return Repaired({"raw_arguments": text}, (), _decode(text)[1])
    if not isinstance(value, dict):
        reason = f"the arguments are a JSON {json_type(value)}; an object is needed"
        return Repaired({"value": value}, tuple(done), reason)
    return Repaired(cast("dict[str, Any]", value), tuple(done))


def _decode(text: str) -> tuple[Any, str | None]:
    try:
        value: Any = json.loads(text, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        return None, f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    except UnicodeEncodeError:
        return None, f"not JSON: an unpaired surrogate {_position(text, _SURROGATE)}"
    except RecursionError:
        return None, "not JSON: nested too deeply at line 1, column 1"
    except ValueError as error:  # NaN, Infinity, a number of thousands of digits
        return None, f"not JSON: {error} {_position(text, _NO_JSON_NUMBER)}"
    return value, None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _position(text: str, pattern: re.Pattern[str]) -> str:
    found = next((match for match in pattern.finditer(text) if match["at"] is not None), None)
    before = text[: found.start("at")] if found else ""
    return f"at line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"


def _unfence(text: str) -> str | None:
    stripped = text.strip().strip(_INVISIBLE).strip()
    if len(stripped) < 2 * len(_FENCE) or not (stripped.startswith(_FENCE) and stripped.endswith(_FENCE)):
        return stripped
    inner = stripped[len(_FENCE) : -len(_FENCE)]
    head = _FENCE_HEAD.match(inner)
    return inner[head.end() if head else 0 :].strip()


def _unstring(text: str) -> str | None:
    value, error = _decode(text)
    if error is not None:
        # A string whose own control characters are raw is still a string with JSON inside.
        value, error = _decode(_escape_controls(text)) if text.startswith('"') else (None, error)
    return value if error is None and isinstance(value, str) else None


def _outside_strings(text: str, mend: Callable[[str], str]) -> str:
    """Apply `mend` to the parts of `text` between JSON strings."""
    parts = re.split(r'("(?:[^"\\]|\\.)*(?:"|\Z))', text, flags=re.DOTALL)
    return "".join(part if index % 2 else mend(part) for index, part in enumerate(parts))


def _escape_controls(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        # A backslash before a raw line end is no escape of JSON: left alone, hence refused.
        token = found[0]
        return token if token[0] == "\\" else _ESCAPES.get(token, f"\\u{ord(token):04x}")

    def escaped(string: re.Match[str]) -> str:
        return re.sub(r"\\.|[\x00-\x1f]", one, string[0], flags=re.DOTALL)

    return re.sub(r'"(?:[^"\\]|\\.)*+(?:"|\Z)', escaped, text, flags=re.DOTALL)


def _without_trailing_commas(text: str) -> str:
    # A comma is trailing only after a value: `[,]` and `[1,,]` lack one and stay refused. What ends
    # a value before it may be a string, which lies in another part: hence the start of the part.
    return _outside_strings(text, lambda part: re.sub(r"(^|[^\s,:\[{])(\s*),(?=\s*[}\]])", r"\1\2", part))


def _json_literals(text: str) -> str:
    return _outside_strings(text, lambda part: _WORD.sub(lambda match: _WORDS[match[1]], part))


_STRING = "string containing JSON"
_REPAIRS: tuple[tuple[str, Callable[[str], str | None]], ...] = (
    ("code fence or whitespace", _unfence),
    (_STRING, _unstring),
    ("control characters", _escape_controls),
    ("trailing commas", _without_trailing_commas),
    ("Python literals", _json_literals),
)
