"""Which hosts a conversation may fetch from unasked: those that people wrote in it (D-10).

Here: finding hosts in what people wrote, remembered per session. Not here: the decision
(`agent/permissions.py`), hosts that settings name.

What models, tools and files say counts for nothing: an agent that was talked into fetching an address
must not be able to name it itself. A subagent's task is written by a model, so its session's own messages
do not count, but those of the person's conversation above it.
"""

import re
from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import Connection, select

from bowerbird.core.addresses import host_and_port
from bowerbird.core.forms import decode
from bowerbird.sessions.journal.audit_log import content_text
from bowerbird.store.sql.tables import journal

if TYPE_CHECKING:
    from bowerbird.store.store import Store

_MOST_SESSIONS = 1000
_ADDRESS = re.compile(r"https?://[^\s<>\"'`)\]}]{1,2000}", re.IGNORECASE)
# Without a scheme only what cannot be a file's name: `setup.py` is a host, too.
_NAME = re.compile(
    r"(?<![\w@./-])((?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,5}(?:com|org|net|edu|gov|io|dev|ai))"
    r"(?![\w-]|\.\w)",
    re.IGNORECASE,
)
_MOST_TEXT = 100_000


def hosts_in(text: str) -> frozenset[str]:
    """Return the hosts that a person's text names; quoted lines (`> …`) are somebody else's.

    Example:
        >>> sorted(hosts_in("look at https://a.example/x and docs.b.com, not at setup.py\\n> http://evil.test"))
        ['a.example', 'docs.b.com']
    """
    own = "\n".join(line for line in text[:_MOST_TEXT].split("\n") if not line.startswith(">"))
    found = {host_and_port(address)[0] for address in _ADDRESS.findall(own)}
    return frozenset(found | {name.lower() for name in _NAME.findall(own)}) - {""}


class NamedHosts:
    """What people named, by conversation; reads only what is new since it was asked last.

    Args:
        store: open; closed by its owner.
    """

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._known: OrderedDict[str, tuple[int, frozenset[str]]] = OrderedDict()

    async def of(self, thread_id: str) -> frozenset[str]:
        """Return the hosts that people named in the conversation that `thread_id` belongs to."""
        person = re.split(r"\.(?:sub\d|team\.)", thread_id, maxsplit=1)[0]
        seen, hosts = self._known.get(person, (0, frozenset[str]()))
        last, bodies = await self._store.read(lambda c: _since(c, person, seen))
        if bodies:
            hosts |= frozenset(host for body in bodies for host in hosts_in(_text(body)))
        self._known[person] = (max(seen, last), hosts)
        self._known.move_to_end(person)
        while len(self._known) > _MOST_SESSIONS:
            self._known.popitem(last=False)
        return hosts


def _since(connection: Connection, thread_id: str, seen: int) -> tuple[int, list[str]]:
    rows = connection.execute(
        select(journal.c.seq, journal.c.body).where(
            journal.c.thread_id == thread_id, journal.c.seq > seen, journal.c.type == "user"
        )
    ).all()
    return max((row.seq for row in rows), default=seen), [str(row.body) for row in rows]


def _text(body: str) -> str:
    try:
        record: dict[str, object] = decode(body, dict[str, object])
    except msgspec.MsgspecError:
        return ""  # a damaged record names nobody
    return content_text(record.get("content"))
