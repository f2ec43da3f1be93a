"""What every section of the settings tree is made of: `Section`, `key`, secret types.

Here: the base class of sections, the helper that declares a key together with what
`config explain` says of it, and the types whose value must not be shown. Not here: any
key (`sections/`), any source of values (`sources.py`), any check across keys (`checks.py`).
"""

import hmac
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

MASK = "********"
_USER_INFO = re.compile(r"(?<=://)(?P<user>[^/@:\s]*)(?::(?P<password>[^/@\s]*))?@")
_SECRET_NAME = re.compile(r"(key|token|secret)$|password", re.IGNORECASE)

Applies = Literal["N", "S"]


def is_secret_name(name: str) -> bool:
    """Whether a key or variable of this name holds a secret: `*key`, `*token`, …

    Example:
        >>> is_secret_name("brave_api_key"), is_secret_name("max_tokens")
        (True, False)
    """
    return _SECRET_NAME.search(name) is not None


def mask_url(url: str) -> str:
    """Return `url` without its password, or without its user when that stands alone.

    Example:
        >>> mask_url("postgresql://ann:pw@db/bower")
        'postgresql://ann:********@db/bower'
    """

    def masked(match: re.Match[str]) -> str:
        if match["password"] is None:
            return f"{MASK}@"  # a lone user part is usually an access token
        return f"{match['user']}:{MASK}@"

    return _USER_INFO.sub(masked, url)


class _Hidden:
    """Text that is shown masked wherever it turns up by accident; `reveal()` gives it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the real text; pass it on, never store or print it."""
        return self._text

    def __str__(self) -> str:
        return MASK

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __bool__(self) -> bool:
        return bool(self._text)

    def __hash__(self) -> int:
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Hidden):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> str:
        raise TypeError(f"a {type(self).__name__} is not written to disk; pass reveal() where it is used")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.union_schema(
            [
                core_schema.is_instance_schema(cls),
                core_schema.no_info_after_validator_function(cls, core_schema.str_schema(strict=True)),
            ],
            serialization=core_schema.to_string_ser_schema(),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        return {"type": "string", "writeOnly": True}


class Secret(_Hidden):
    """A key, token or password; prints as `********`."""

    __slots__ = ()


class Url(_Hidden):
    """An address that may carry user and password; prints with these masked."""

    __slots__ = ()

    def __str__(self) -> str:
        return mask_url(self.reveal())

    def __hash__(self) -> int:
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return self.reveal() == other
        return super().__eq__(other)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        return {"type": "string"}


def _http_only(value: object) -> object:
    text = value.reveal() if isinstance(value, Url) else value
    if isinstance(text, str) and not re.match(r"https?://[^\s/]", text):
        raise ValueError("must start with http:// or https:// and name a host")
    if isinstance(text, str) and not names_host(text):
        raise ValueError("is no address: its host or port cannot be read")
    return value


def names_host(url: str) -> bool:
    """Whether a client can read the host and the port of `url`.

    Example:
        >>> names_host("http://[::1]:8080/v1"), names_host("http://["), names_host("http://h:99999")
        (True, False, False)
    """
    try:
        parts = urlsplit(url)
        return parts.port != 0 and re.fullmatch(r"[^\s\\%\x00-\x1f]+", parts.hostname or "") is not None
    except ValueError:
        return False


HttpUrl = Annotated[Url, BeforeValidator(_http_only)]
"""A `Url` of a web server."""

Int = Annotated[int, Field(strict=True)]
Float = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]
Text = Annotated[str, Field(strict=True)]
Names = tuple[Text, ...]


class Section(BaseModel):
    """A group of keys. Values are frozen and unknown keys are refused at construction."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, validate_by_name=True)


def key(
    default: Any,
    meaning: str,
    *,
    env: tuple[str, ...] = (),
    unit: str = "",
    applies: Applies = "N",
    base: Literal["", "file", "workspace"] = "",
    allowed: str = "",
    other_names: tuple[str, ...] = (),
    ge: float | None = None,
    le: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """Declare one key of a `Section`.

    Args:
        default: its value when nothing sets it; a mutable one is copied per section.
        meaning: one sentence for `config explain` and the reference page.
        env: short environment names, first wins.
        unit: say `s`, `bytes`, `MiB`, `USD`; empty for none.
        applies: `N` from the next turn or connection, `S` after a restart.
        base: for paths: `file` = relative to the base directory, `workspace` = kept relative.
        allowed: range in words, where `ge`, `le` and the type do not say it.
        other_names: further spellings accepted in files.
        ge, le: smallest and largest number.
        choices: suggested values of an open text key.

    Example:
        >>> class Demo(Section):
        ...     port: Int = key(80, "TCP port.", ge=1, le=65_535)
        >>> Demo().port
        80
    """
    about: dict[str, Any] = {"x-applies": applies}
    extra: Mapping[str, Any] = {
        "x-env": list(env),
        "x-unit": unit,
        "x-base": base,
        "x-allowed": allowed,
        "x-other-names": list(other_names),
        "x-choices": list(choices),
    }
    about.update({name: value for name, value in extra.items() if value})
    options: dict[str, Any] = {"description": meaning, "json_schema_extra": about}
    if ge is not None:
        options["ge"] = ge
    if le is not None:
        options["le"] = le
    return Field(default, **options)


def section(kind: type[Section], meaning: str = "") -> Any:
    """Declare a nested section of type `kind` with all its defaults."""
    # Constructed: defaults need no validator, and building one for each section is most of what a load takes.
    return Field(default_factory=kind.model_construct, description=meaning or (kind.__doc__ or "").strip())
