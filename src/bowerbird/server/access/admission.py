"""Who may come in by the rules of the settings (SV-55, D-31). Pure.

Here: the decision, the same for a request that comes and for a socket that is open. Not here: whether a token
or a sign-in is valid (`identity.py`, `oidc.py`), what a role may do.
"""

from collections.abc import Collection
from dataclasses import dataclass

from bowerbird.server.common.context import Caller, ServerSettings


@dataclass(frozen=True, slots=True)
class Admission:
    """The rules of the settings.

    Attributes:
        emails, domains: who may sign in; both empty = nobody. denied: who may not come in at all.
    """

    emails: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()

    @classmethod
    def of(cls, settings: ServerSettings) -> "Admission":
        """Return the rules of these settings."""
        return cls.made(settings.allowed_emails, settings.allowed_domains, settings.denied_users)

    @classmethod
    def made(
        cls, emails: Collection[str] = (), domains: Collection[str] = (), denied: Collection[str] = ()
    ) -> "Admission":
        """Return rules of names as people write them."""
        return cls(
            frozenset(email.lower() for email in emails),
            frozenset(domain.lower().lstrip("@") for domain in domains),
            frozenset(name.lower() for name in denied),
        )

    def may_sign_in(self, email: str) -> bool:
        """Whether the owner of a verified address may sign in.

        Example:
            >>> rules = Admission.made(domains=["birds.example"], denied=["Gus@birds.example"])
            >>> rules.may_sign_in("ann@birds.example"), rules.may_sign_in("gus@birds.example")
            (True, False)
        """
        name = email.lower()
        listed = name in self.emails or name.rpartition("@")[2] in self.domains
        return listed and name not in self.denied

    def stays(self, caller: Caller) -> bool:
        """Whether somebody who came in may stay, as the rules are now; tokens are looked up elsewhere."""
        if caller.user_id.lower() in self.denied or caller.email.lower() in self.denied:
            return False
        came_by_sign_in = bool(caller.email) and not caller.credential
        return not came_by_sign_in or self.may_sign_in(caller.email)
