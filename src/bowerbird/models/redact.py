"""Secrets removed from what leaves the program: traces, logs, spans, errors (MO-35).

Here: what is recognised and what stands in its place. Not here: who calls it. The request to a
provider is never redacted.

Recognised: every configured secret by exact value (also base64 and URL-encoded), and the formats of
common keys. Ordinary paths, hashes and identifiers stay.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast
from urllib.parse import quote, quote_plus

from bowerbird.models.settings import ModelSettings

SHORTEST_SECRET = 4  # a shorter value would blank ordinary words
_CERTAIN = 8  # characters; a shorter secret that is a plain word would blank it wherever it stands
_SHORTEST_ENCODED = 6

# Where a word begins, also after a line break that JSON or repr has written out as `\n`.
_EDGE = r"(?:\b|(?<=\\[nrt]))"
# Each needs a mark that ordinary text lacks: a prefix, armour, or three dotted base64 parts.
_FORMATS: tuple[tuple[str, str], ...] = (
    ("pem", r"-----BEGIN [A-Z0-9 ]{0,40}-----.*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)"),
    ("jwt", _EDGE + r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("bearer", _EDGE + r"(?i:bearer\s+)[A-Za-z0-9._~+/=-]{8,}"),
    ("key", _EDGE + r"sk-[A-Za-z0-9_-]{16,}"),
    ("aws", _EDGE + r"(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("github", _EDGE + r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    ("slack", _EDGE + r"xox[a-z]-[A-Za-z0-9-]{10,}"),
)
_FORMAT = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _FORMATS), re.DOTALL)
# One cheap look decides whether the pattern above can match at all.
_HINT = re.compile(r"sk-|AKIA|ASIA|gh[pousr]_|github_pat_|xox|-----BEGIN|eyJ|bearer", re.IGNORECASE)


_SECRET_HEADER = re.compile(r"key|token|auth|secret|cookie|password", re.IGNORECASE)


def _is_secret(value: str) -> bool:
    return len(value) >= _CERTAIN or (
        len(value) >= SHORTEST_SECRET and not (value.isalpha() and value.islower())
    )


def _pattern(secret: str) -> str:
    found = re.escape(secret)
    return found if len(secret) >= _CERTAIN else rf"(?<![A-Za-z0-9]){found}(?![A-Za-z0-9])"


class Redactor:
    """Replaces secrets by `[redacted:kind]`.

    Args:
        secrets: configured values. Empty and very short ones are ignored, and so are short plain words
            (`ollama`, a database's user): what anybody may write is no secret. Other short ones are
            recognised as whole words only.

    Example:
        >>> Redactor(["swordfish-77"]).text("the key is swordfish-77")
        'the key is [redacted:secret]'
    """

    def __init__(self, secrets: Iterable[str | None] = ()) -> None:
        known = {secret for secret in secrets if secret and _is_secret(secret)}
        encoded = {form for secret in known for form in _forms(secret) if len(form) >= _SHORTEST_ENCODED}
        # The longest first: a secret that contains another is replaced as a whole.
        ordered = sorted(known | encoded, key=len, reverse=True)
        self._values = re.compile("|".join(map(_pattern, ordered))) if ordered else None

    def text(self, text: str) -> str:
        """Return `text` without secrets."""
        if self._values is not None:
            text = self._values.sub("[redacted:secret]", text)
        if _HINT.search(text):
            text = _FORMAT.sub(lambda match: f"[redacted:{match.lastgroup}]", text)
        return text

    def data(self, value: Any) -> Any:
        """Return plain data (as JSON has it) with every string and key redacted."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            table = cast("Mapping[Any, Any]", value)
            return {self.data(k): self.data(v) for k, v in table.items()}
        if isinstance(value, list | tuple):
            return [self.data(item) for item in cast("list[Any]", value)]
        return value


def redactor_of(settings: ModelSettings) -> Redactor:
    """Return a redactor that knows every secret of `settings`."""
    secrets: list[str | None] = [*settings.secrets]
    for provider in settings.providers.values():
        secrets.append(provider.api_key)
        # Other header values (a version, a media type) are ordinary words that must stay readable.
        secrets += [value for name, value in provider.headers.items() if _SECRET_HEADER.search(name)]
    secrets += [tier.api_key for tier in settings.router.tiers.values()]
    return Redactor(secrets)


def _forms(secret: str) -> set[str]:
    """Return the ways `secret` may be encoded."""
    raw = secret.encode("utf-8", "surrogateescape")
    forms = {secret, quote(secret, safe=""), quote_plus(secret), quote(secret)}
    # In base64 a secret inside longer data starts at any of three offsets: its inner part is the
    # same whatever stands around it.
    for pad in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * pad + raw).decode("ascii")
            inner = text[(0, 2, 3)[pad] :].rstrip("=")
            if (pad + len(raw)) % 3:
                inner = inner[:-1]
            forms.add(inner)
            if pad == 0:
                forms.update((text, text.rstrip("=")))
    # A secret escaped inside JSON or repr.
    forms.add(secret.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))
    return forms
