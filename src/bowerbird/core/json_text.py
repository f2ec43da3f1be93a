"""The JSON text of a value, whatever bytes file names brought into it.

Here: encoding; halves of characters that others' JSON names. Not here: which values there are: frames
(`wire/`), records (`store/journal/journal.py`).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

_ESCAPED = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_HALF = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # the others stand for bytes of file names
_encoder = msgspec.json.Encoder(enc_hook=str, order=None)


def json_text(value: Any) -> str:
    """Return `value` as JSON; bytes that are no UTF-8 show as `\\xHH`.

    Example:
        >>> json_text({"path": "caf\\udce9"})
        '{"path":"caf\\\\\\\\xe9"}'
    """
    try:
        return _encoder.encode(value).decode()
    except UnicodeEncodeError:
        return _encoder.encode(_without_surrogates(msgspec.to_builtins(value, enc_hook=str))).decode()


def _without_surrogates(value: Any) -> Any:
    """File names may carry undecodable bytes as lone surrogates, which JSON cannot hold."""
    if isinstance(value, str):
        return (
            _HALF.sub("\ufffd", value).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        )
    if isinstance(value, Mapping):
        rows = cast("Mapping[Any, Any]", value)
        return {_without_surrogates(key): _without_surrogates(inner) for key, inner in rows.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in cast("Sequence[Any]", value)]
    return value


def whole_escapes(text: str) -> str:
    r"""Return others' JSON with U+FFFD where an escape names one half of a surrogate pair.

    JSON can say it, and no store, page or terminal takes it.

    Example:
        >>> whole_escapes(r'"\ud800 \ud83d\ude00 \\ud800"')
        '"\\ufffd \\ud83d\\ude00 \\\\ud800"'
    """
    return _ESCAPED.sub(lambda found: found[0] if found["half"] is None else "\\ufffd", text)
