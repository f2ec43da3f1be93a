"""Where a provider's requests go, and with what.

Here: the address, its key, headers and times, refused where they make no sense. Not here: a connection to it
(`connection.py`), HTTP (`transport.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from bowerbird.core.errors import ConfigError
from bowerbird.models.failures import Asked
from bowerbird.models.settings import Timeouts, is_loopback

_AZURE = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")


def is_azure(url: str) -> bool:
    """Whether OpenAI's models are served at `url` by Azure, in the form of the vendor itself.

    Example:
        >>> is_azure("https://mine.openai.azure.com/openai/v1"), is_azure("https://api.openai.com/v1")
        (True, False)
    """
    return (urlsplit(url).hostname or "").endswith(_AZURE)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go and with what.

    Args:
        asked: provider, model and address for errors.
        base_url: http(s) URL.
        api_key: sent to this host only; None = none is sent.
        headers: further headers.
        timeouts: see `Timeouts`.
        verify_tls: False for loopback hosts only.
    """

    asked: Asked
    base_url: str
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    timeouts: Timeouts = field(default_factory=Timeouts)
    verify_tls: bool = True

    def __post_init__(self) -> None:
        if not _is_address(self.base_url):
            raise ConfigError(
                f"the base URL of {self.asked.provider} is {self.base_url!r}; use http(s)://host/…"
            )
        if not self.verify_tls and not is_loopback(self.base_url):
            raise ConfigError(
                f"TLS verification is turned off for {self.base_url}; only loopback hosts allow that"
            )

    @property
    def proof(self) -> dict[str, str]:
        """The header that proves who asks; for a server without keys none is invented."""
        if not self.api_key:
            return {}
        return (
            {"api-key": self.api_key}
            if is_azure(self.base_url)
            else {"authorization": f"Bearer {self.api_key}"}
        )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        return False
