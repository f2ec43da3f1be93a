"""Finding sessions by words in their titles and in what was said (UI-82).

Here: that part of sessions, folding, the place that is shown of a hit. Not here: the rows
(`store/journal/session_texts.py`), lists without words (`catalogue.py`).

What was said is kept once more, folded, as rows to look through. A search first brings them up to date, so
that it finds what was said a moment ago; a server does so beside its work, too, so that a search finds little
left to do. All of one session's words count, wherever they stand in it.
"""

import asyncio
import logging
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
from sqlalchemy import Connection, func, select

from bowerbird.core.threads import to_thread
from bowerbird.sessions.catalogue import LISTED
from bowerbird.sessions.journal.audit_log import content_text
from bowerbird.sessions.parts import SessionPart
from bowerbird.sessions.values import SessionInfo
from bowerbird.sessions.views import session_infos
from bowerbird.store.journal.journal import CORRUPT, Record
from bowerbird.store.rows.sessions import session_titles, sessions_of
from bowerbird.store.sql.tables import sessions
from bowerbird.store.store import Store

if TYPE_CHECKING:
    from bowerbird.store.journal.session_texts import Behind

MOST_WORDS = 10
MOST_FOUND = 100
_BATCH = 50
_FIRST_S = 10.0
_EVERY_S = 60.0
_BEFORE, _AFTER = 50, 90  # characters around the first word that is shown

_log = logging.getLogger(__name__)


class Found(msgspec.Struct, frozen=True):
    """A session that has all of the words.

    Attributes:
        cursor, role, text: the newest message with any of them, and the place in it, as one line; None, ""
            and "" when they stand in the title only.
    """

    info: SessionInfo
    cursor: int | None = None
    role: str = ""
    text: str = ""


class SessionSearch(SessionPart):
    """The search of one store.

    Args:
        store: open; closed by its owner.

    Example:
        hits = await sessions.part(SessionSearch).find("invoice ÄRGER", owner=None)
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def start(self, *, drives_all: bool) -> None:
        """Keep the rows up to date beside the turns of a server."""
        if drives_all:
            self._task = asyncio.create_task(self._keep_up(), name="bowerbird-texts")

    async def aclose(self) -> None:
        """End that."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def find(
        self,
        query: str,
        *,
        workspace: str | None = None,
        owner: str | None = None,
        before: str | None = None,
        limit: int = MOST_FOUND,
    ) -> list[Found]:
        """Return the living sessions with all words of a query, the most recently used first.

        A word is found in longer ones, in any case. The first 10 words count.

        Args:
            workspace, owner, before: as in `Catalogue.list`.
            limit: at most so many, and never more than 100: `before` goes on.
        """
        words = list(dict.fromkeys(fold(query).split()))[:MOST_WORDS]
        if not words:
            return []
        await self.refresh()

        def look(connection: Connection) -> list[tuple[SessionInfo, list[Record], list[str]]]:
            from bowerbird.store.journal.session_texts import matches, records_with

            titles = session_titles(connection, workspace=workspace, kinds=LISTED, before=before, owner=owner)
            said = matches(connection, words)
            none = (False,) * len(words)
            hits = [
                thread_id
                for thread_id, title in titles
                if _has_all(words, said.get(thread_id, none), fold(title))
            ][: min(limit, MOST_FOUND)]
            infos = session_infos(connection, sessions_of(connection, hits))
            found: list[tuple[SessionInfo, list[Record], list[str]]] = []
            for info in infos:
                bits = said.get(info.thread_id, none)
                here = [word for word, bit in zip(words, bits, strict=True) if bit]
                found.append((info, records_with(connection, info.thread_id, here) if here else [], here))
            return found

        return await to_thread(self._placed, await self._store.read(look))

    def _placed(self, found: list[tuple[SessionInfo, list[Record], list[str]]]) -> list[Found]:
        return [self._place(info, records, words) for info, records, words in found]

    def _place(self, info: SessionInfo, records: Sequence[Record], words: Sequence[str]) -> Found:
        best: tuple[int, Record, str] | None = None
        for record in reversed(records):
            text = _text_of(self._store.whole(record))
            folded = fold(text)
            has = sum(word in folded for word in words)
            if has > (best[0] if best else 0):
                best = (has, record, text)
            if has == len(words):
                break
        return (
            Found(info) if best is None else Found(info, best[1].seq, best[1].type, excerpt(best[2], words))
        )

    async def refresh(self) -> None:
        """Bring the rows up to date with the journal, in small transactions; one call at a time does it."""
        async with self._lock:
            from bowerbird.store.journal.session_texts import said_after, sessions_behind

            while behind := await self._store.read(lambda c: sessions_behind(c, LISTED, _BATCH)):
                batch = behind
                said = await self._store.read(lambda c: [(b, *said_after(c, b)) for b in batch])  # noqa: B023
                made = await to_thread(lambda: [(b, self._texts(r, upto)) for b, r, upto in said])  # noqa: B023
                await self._store.write(lambda c: _add_all(c, made), flush=False)  # noqa: B023

    def _texts(self, records: Sequence[Record], upto: int) -> list[tuple[int, str]]:
        """Return the folded texts of records in pieces, each with the record that it reaches to."""
        from bowerbird.store.journal.session_texts import PART_CHARS

        made: list[tuple[int, str]] = []
        gathered: list[str] = []
        size = 0
        for record in records:
            text = fold(_text_of(self._store.whole(record)))
            if text:
                gathered.append(text)
                size += len(text)
            if size >= PART_CHARS:
                made.append((record.seq, "\n".join(gathered)))
                gathered, size = [], 0
        return [*made, (upto, "\n".join(gathered))]

    async def _keep_up(self) -> None:
        known: str | None = None
        await asyncio.sleep(_FIRST_S)
        while True:
            try:
                newest = await self._store.read(lambda c: c.scalar(select(func.max(sessions.c.updated_at))))
                if newest != known:
                    await self.refresh()
                known = newest
            except Exception:  # noqa: BLE001  a search does it itself, and says what is wrong
                _log.warning("what was said was not prepared for searches", exc_info=True)
            await asyncio.sleep(_EVERY_S)


def _add_all(connection: Connection, made: "Sequence[tuple[Behind, list[tuple[int, str]]]]") -> None:
    from bowerbird.store.journal.session_texts import add_texts

    for behind, texts in made:
        add_texts(connection, behind, texts)


def _has_all(words: Sequence[str], said: Sequence[bool], title: str) -> bool:
    return all(bit or word in title for word, bit in zip(words, said, strict=True))


def _text_of(record: Record) -> str:
    content = record.body.get("content")
    if record.type == CORRUPT:
        return ""
    if record.type == "assistant" and isinstance(content, list):
        blocks = cast("list[dict[str, Any]]", content)
        content = [block for block in blocks if block.get("type") == "text"]
    return content_text(content)


def fold(text: str) -> str:
    """Return a text as searches compare it: without case, one form of each character, nothing unstorable.

    Example:
        >>> fold("Straße A\u0308")
        'strasse ä'
    """
    plain = text.replace("\0", "").encode("utf-8", "replace").decode()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", plain).casefold())


def excerpt(text: str, words: Sequence[str]) -> str:
    """Return the place of the first word that a text has, as one line; "" when it has none. Pure.

    Args:
        words: folded.

    Example:
        >>> excerpt("The bill\\nis DUE tomorrow.", ["due"])
        'The bill is DUE tomorrow.'
    """
    folded = fold(text)
    places = [at for word in words if (at := folded.find(word)) >= 0]
    if not places:
        return ""
    at = min(places)
    if len(folded) != len(text):  # folded characters may be more or fewer: count those before
        at = _unfolded(text, at)
    start, end = max(at - _BEFORE, 0), at + _AFTER
    piece = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{piece}{'…' if end < len(text) else ''}"


def _unfolded(text: str, at: int) -> int:
    passed = 0
    for place, char in enumerate(text):
        if passed >= at:
            return place
        passed += len(fold(char))
    return len(text)
