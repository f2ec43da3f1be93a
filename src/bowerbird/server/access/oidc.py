"""Sign-in tokens of an OpenID provider (SV-55): signature, issuer, audience, time, verified e-mail.

Here: the provider's keys, kept and fetched anew for an unknown key id; whether an address is admitted.
Not here: our own tokens (`store/rows/tokens.py`), what a caller may do.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, cast

from bowerbird.server.access.admission import Admission
from bowerbird.server.common.context import Caller

_log = logging.getLogger(__name__)

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
LEEWAY_S = 10
KEYS_S = 3600.0  # keys are fetched anew after this time
AGAIN_S = 10.0  # and for an unknown key id, at most this often
FETCH_S = 10.0
MAX_TOKEN = 16_384

Fetch = Callable[[str], Awaitable[Mapping[str, Any]]]


class Refused(Exception):
    """A sign-in token admits nobody; the message is for the log."""


class SignIn:
    """Verifies the tokens of one issuer for one client.

    Args:
        issuer: `server.oidc_issuer`. client_id: the audience.
        emails, domains, denied: see `Admission`.
        fetch: gets a JSON document; over HTTPS with httpx2 when None.
    """

    def __init__(
        self,
        issuer: str,
        client_id: str,
        *,
        emails: Collection[str] = (),
        domains: Collection[str] = (),
        denied: Collection[str] = (),
        fetch: Fetch | None = None,
    ) -> None:
        self._issuer = issuer.rstrip("/")
        self._client_id = client_id
        self._rules = Admission.made(emails, domains, denied)
        self._fetch = fetch or fetch_json
        self._keys: dict[str, Any] = {}
        self._fetched_at = float("-inf")
        self._fetching = asyncio.Lock()

    async def caller(self, token: str) -> tuple[Caller, float]:
        """Return who a token is of, and when it ends (seconds since the epoch).

        Raises:
            Refused: it is not valid, or its owner is not admitted.
        """
        import jwt

        if len(token) > MAX_TOKEN:
            raise Refused("the token is too long")
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
            key = await self._key(str(key_id or ""))
            claims = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=self._client_id,
                issuer=self._issuers(),
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise Refused(f"{type(error).__name__}: {error}") from error
        return self._admitted(claims), float(claims["exp"])

    def _issuers(self) -> list[str]:
        # Google's own tokens name the issuer with and without the scheme.
        google = ["accounts.google.com"] if self._issuer == "https://accounts.google.com" else []
        return [self._issuer, self._issuer + "/", *google]

    def _admitted(self, claims: Mapping[str, Any]) -> Caller:
        email = str(claims.get("email") or "").lower()
        if not email.rpartition("@")[0] or claims.get("email_verified") not in (True, "true"):
            raise Refused("the token names no verified e-mail address")
        if not self._rules.may_sign_in(email):
            raise Refused(f"{email} is not admitted (server.allowed_emails, allowed_domains, denied_users)")
        name, picture = str(claims.get("name") or ""), str(claims.get("picture") or "")
        return Caller(email, "user", email=email, name=name, picture=picture)

    async def _key(self, key_id: str) -> Any:
        async with self._fetching:
            age = time.monotonic() - self._fetched_at
            if age > KEYS_S or (key_id not in self._keys and age > AGAIN_S):
                await self._refresh()
        key = self._keys.get(key_id)
        if key is None:
            raise Refused(f"the issuer has no key {key_id!r}")
        return key

    async def _refresh(self) -> None:
        import jwt

        self._fetched_at = time.monotonic()
        try:
            found = await self._fetch(f"{self._issuer}/.well-known/openid-configuration")
            keys = await self._fetch(str(found["jwks_uri"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.warning("the keys of %s cannot be fetched: %s", self._issuer, error)
            return  # those that are known go on to hold
        fresh: dict[str, Any] = {}
        for entry in cast("list[dict[str, Any]]", keys.get("keys") or []):
            try:
                fresh[str(entry.get("kid") or "")] = jwt.PyJWK(entry).key
            except jwt.PyJWTError as error:
                _log.info("a key of %s is not used: %s", self._issuer, error)
        self._keys = fresh or self._keys


async def fetch_json(url: str) -> Mapping[str, Any]:
    """Return a JSON object from the network.

    Raises:
        OSError, ValueError: it cannot be had.
    """
    import httpx2

    try:
        async with httpx2.AsyncClient(timeout=FETCH_S, follow_redirects=False) as client:
            answer = await client.get(url)
            answer.raise_for_status()
            found: Any = answer.json()
    except httpx2.HTTPError as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
    if not isinstance(found, dict):
        raise ValueError("the answer is not a JSON object")
    return cast("dict[str, Any]", found)
