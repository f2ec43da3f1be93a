"""What settings say of web push, and which addresses a push service may have (UI-95). Pure.

Here: those values and that decision. Not here: resolving names (`door.py` connects to checked ones only).
"""

import ssl
from urllib.parse import urlsplit

import msgspec

from bowerbird.core.errors import InvalidArgument, ToolError
from bowerbird.tools.web.net_guard import Guard

DOOR = "push"
WHAT = "Messages to browsers (web push)"
LONGEST_ENDPOINT = 2_000


class PushRules(msgspec.Struct, frozen=True):
    """What settings say.

    Attributes:
        enabled: whether browsers may subscribe and are told. after_s: a turn that was shorter ends untold.
        contact: who runs the server, for push services. allow_hosts: services that may be private.
        verify: certificates of push services; None = the system's.
    """

    enabled: bool = True
    after_s: float = 10.0
    contact: str = "mailto:bowerbird@example.com"
    allow_hosts: frozenset[str] = frozenset()
    verify: ssl.SSLContext | None = None


def check_endpoint(endpoint: str, rules: PushRules) -> None:
    """Raises InvalidArgument for an address that no push service has: it is a browser that names it."""
    if len(endpoint) > LONGEST_ENDPOINT:
        raise InvalidArgument(f"an endpoint has at most {LONGEST_ENDPOINT} characters")
    try:
        host, port = guard_of(rules).check_url(endpoint)
    except ToolError as error:
        raise InvalidArgument(str(error)) from error
    named = host in rules.allow_hosts or f"{host}:{port}" in rules.allow_hosts
    if urlsplit(endpoint).scheme != "https" and not named:
        raise InvalidArgument("a push service is reached by https")


def guard_of(rules: PushRules) -> Guard:
    return Guard(allow_hosts=rules.allow_hosts)
