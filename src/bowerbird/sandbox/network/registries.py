"""Hosts of the package tools as this host has them configured: the allow-list entry `packages` (SB-28).

Here: asking pip and npm, at run time, where they fetch from. No registry is named in this program. Not here:
what follows for a sandbox (`network`).
"""

import re
import subprocess
from collections.abc import Iterable
from urllib.parse import urlsplit

from bowerbird.core.processes.host_programs import package_environment, run
from bowerbird.sandbox.network.egress_policy import normal_name

_ANSWER_S = 15.0
_INDEX_KEYS = ("index-url", "extra-index-url", "find-links")
_PIP_DEFAULT = (
    "from pip._internal.models.index import PyPI as index;"
    "print(index.simple_url); print('//' + index.file_storage_domain)"
)
_URL = re.compile(r"[a-z+]+://[^\s'\"]+")


def package_hosts() -> tuple[str, ...]:
    """Return the hosts that pip and npm fetch from; a tool that is not installed adds none. Blocks.

    A program's own default is asked of that program. An index of one's own may name files on further hosts;
    these are for a person to list.
    """
    found = [*_pip_urls(), *_npm_urls()]
    return tuple(dict.fromkeys(host for url in found if (host := host_of(url)) is not None))


def host_of(url: str) -> str | None:
    """Return the host of an http(s) URL in normal form, with its port unless it is the usual one.

    >>> host_of("https://packages.test/simple"), host_of("http://packages.test:8080/")
    ('packages.test', 'packages.test:8080')
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    name = normal_name(parts.hostname or "")
    if parts.scheme not in ("http", "https", "") or name is None:
        return None
    return name if port in (None, 80, 443) else f"{name}:{port}"


def pip_config_urls(lines: Iterable[str]) -> tuple[bool, list[str]]:
    """Read `pip config list`: whether it names an index of its own, and all URLs it fetches from."""
    urls: list[str] = []
    has_index = False
    for line in lines:
        key, _, value = line.partition("=")
        name = key.strip().rsplit(".", 1)[-1]
        if name in _INDEX_KEYS:
            urls += _URL.findall(value.replace("\\n", " "))  # values of several lines are shown escaped
            has_index = has_index or name == "index-url"
    return has_index, urls


def _pip_urls() -> list[str]:
    has_index, urls = pip_config_urls(_answer(["pip", "config", "list"]).splitlines())
    if has_index:
        return urls
    default = _answer(["python3", "-c", _PIP_DEFAULT]) or _answer(["python", "-c", _PIP_DEFAULT])
    return [*urls, *default.split()]


def _npm_urls() -> list[str]:
    return _URL.findall(_answer(["npm", "config", "get", "registry"]))


def _answer(command: list[str]) -> str:
    """Return what a tool prints, "" when it is missing or fails."""
    try:
        # A project's own configuration must not widen what the sandbox may reach.
        done = run(command, env=package_environment(), timeout=_ANSWER_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
