"""Headers of every answer: what a browser may do with it, and for whom (SV-58, SV-59). Pure.

Not here: deciding about an Origin (`origins.py`).
"""

from collections.abc import Iterable

RawHeaders = list[tuple[bytes, bytes]]

PREFLIGHT_S = 600
_GOOGLE = "https://accounts.google.com"
_PICTURES = " https://lh3.googleusercontent.com"  # of people who signed in


def content_security_policy(*, google: bool) -> str:
    """Return the policy: nothing from elsewhere, no inline script, no frame around us.

    Args:
        google: sign-in with Google is on; its button comes from there.
    """
    more = f" {_GOOGLE}" if google else ""
    rules = [
        "default-src 'self'",
        f"script-src 'self'{more}",
        f"style-src 'self' 'unsafe-inline'{more}",
        f"img-src 'self' data: blob:{_PICTURES if google else ''}",
        f"connect-src 'self'{more}",
        f"frame-src {_GOOGLE}" if google else "frame-src 'none'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
    return "; ".join(rules)


def security_headers(*, google: bool) -> RawHeaders:
    """Return what every answer carries unless it says otherwise itself."""
    return [
        (b"content-security-policy", content_security_policy(google=google).encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
    ]


def cors_headers(origin: str) -> RawHeaders:
    """Return what lets pages of one foreign, admitted origin read an answer."""
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-allow-credentials", b"true"),
        (b"access-control-expose-headers", b"Content-Disposition, Retry-After, X-Truncated"),
        (b"vary", b"Origin"),
    ]


def preflight_headers(origin: str, requested: str | None) -> RawHeaders:
    """Return the answer to a preflight of an admitted origin.

    Args:
        requested: the headers that the page wants to send.
    """
    wanted = requested or "Authorization, Content-Type, Idempotency-Key, Last-Event-ID"
    return [
        *cors_headers(origin),
        (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE"),
        (b"access-control-allow-headers", wanted.encode("latin-1", "ignore")),
        (b"access-control-max-age", str(PREFLIGHT_S).encode()),
        (b"content-length", b"0"),
    ]


def completed(headers: Iterable[tuple[bytes, bytes]], more: RawHeaders) -> RawHeaders:
    """Return `headers` and those of `more` that they do not set themselves; `vary` is added to.

    Example:
        >>> completed([(b"referrer-policy", b"origin")], [(b"referrer-policy", b"no-referrer")])
        [(b'referrer-policy', b'origin')]
    """
    out = list(headers)
    set_already = {name.lower() for name, _ in out} - {b"vary"}
    return out + [pair for pair in more if pair[0] not in set_already]
