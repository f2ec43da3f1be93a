"""The JSON text of a value, whatever bytes file names brought into it.

Here: encoding. Not here: which values there are: frames (`wire/`), records (`store/journal/journal.py`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

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
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if isinstance(value, Mapping):
        rows = cast("Mapping[Any, Any]", value)
        return {_without_surrogates(key): _without_surrogates(inner) for key, inner in rows.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in cast("Sequence[Any]", value)]
    return value
