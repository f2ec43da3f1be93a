"""JSON and plain values into types, from whichever thread comes first.

Here: the one way to msgspec's typed decoding. Not here: encoding, which shares nothing between threads.

What msgspec learns of a class on its first use is stored on the class before it is complete, so that a
class can name itself. A second thread that decodes to the same class in that moment reads what is not there
yet, and the process dies with SIGSEGV: a server's first reads of several conversations are enough. Here a
type is prepared by one thread at a time before anybody uses it; a lint rule keeps the other ways out.
"""

import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast, overload

import msgspec

T = TypeVar("T")

_preparing = threading.Lock()


@lru_cache(maxsize=1024)
def _prepare(form: Any) -> None:
    with _preparing:
        msgspec.json.Decoder(form)


def _prepared(form: Any) -> Any:
    try:
        _prepare(form)
    except TypeError:  # not hashable (a default inside `Annotated`), or not a type: whoever uses it says so
        with _preparing:
            msgspec.json.Decoder(form)
    return form


@overload
def decode(content: bytes | str, form: type[T]) -> T: ...
@overload
def decode(content: bytes | str, form: Any = ...) -> Any: ...
def decode(content: bytes | str, form: Any = Any) -> Any:
    """Return JSON as a value of the type `form`.

    Args:
        form: a class or any other type that msgspec knows, unions included; the default takes any JSON.

    Raises:
        msgspec.DecodeError: it is not JSON. msgspec.ValidationError: it is not of this type.

    Example:
        >>> decode(b"[1, 2]", list[int])
        [1, 2]
    """
    return msgspec.json.decode(content, type=_prepared(form))


@overload
def convert(value: object, form: type[T]) -> T: ...
@overload
def convert(value: object, form: Any) -> Any: ...
def convert(value: object, form: Any) -> Any:
    """Return plain dictionaries, lists and scalars as a value of the type `form`.

    Raises:
        msgspec.ValidationError: it is not of this type.

    Example:
        >>> convert({"a": 1}, dict[str, int])
        {'a': 1}
    """
    return msgspec.convert(value, _prepared(form))


def unpack(content: bytes, form: type[T]) -> T:
    """Return MessagePack as a value of the type `form`; errors as `decode`."""
    return msgspec.msgpack.decode(content, type=_prepared(form))


@overload
def decoder(form: type[T]) -> Callable[[bytes | str], T]: ...
@overload
def decoder(form: Any) -> Callable[[bytes | str], Any]: ...
def decoder(form: Any) -> Callable[[bytes | str], Any]:
    """Return `decode` for one type, made once: for what is read many times a second."""
    return cast("Callable[[bytes | str], Any]", msgspec.json.Decoder(_prepared(form)).decode)
