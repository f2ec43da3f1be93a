"""Where limits in USD stand (SE-41): of many at once, as of each alone, on both databases."""

import itertools

from sqlalchemy import Connection

from bowerbird.store import Store
from bowerbird.store.rows.sessions import SessionRow, insert_session
from bowerbird.store.rows.turns import TurnRow, insert_turn
from bowerbird.store.rows.usage import MoneyScope, add_to_limit, hold, standings
from bowerbird.store.sql.tables import usage

DAY, ANOTHER = "2026-11-22", "2026-11-23"
ROOTS = ("0123456789ab", "0123456789AB", "telegram_7_s1", "odd_%x")
# What belongs to the first, and what only looks as if it did.
THREADS = (
    *ROOTS, f"{ROOTS[0]}.sub1", f"{ROOTS[0]}.sub1.sub0", f"{ROOTS[0]}.team.ann", f"{ROOTS[0]}.team.ann.sub2",
    f"{ROOTS[0]}.tea", f"{ROOTS[0]}x.sub1", f"{ROOTS[1]}.sub1", "odd_ax.sub1", f"{ROOTS[3]}.sub1",
)  # fmt: skip
OWNERS = ("ben", "", None)
KINDS = ("user", "schedule")


def filled(connection: Connection) -> dict[tuple[str, str, str], float]:
    """Store one model call per thread, kind and day, each of another price; return the sums by hand."""
    sums: dict[tuple[str, str, str], float] = {}
    prices = (2.0**n for n in itertools.count())
    for number, thread in enumerate(THREADS):
        owner = OWNERS[number % len(OWNERS)]
        insert_session(connection, SessionRow(thread_id=thread, kind="web", owner=owner))
        for n, kind in enumerate(KINDS):
            turn = TurnRow(turn_id=f"t_{number}_{n}", thread_id=thread, n=n + 1, kind=kind)
            insert_turn(connection, turn)
            for day in (DAY, ANOTHER):
                usd = next(prices)
                row = {"thread_id": thread, "turn_id": turn.turn_id, "purpose": "main", "model": "m",
                       "cost": usd, "priced": True, "at": f"{day}T10:00:00.000000+00:00"}  # fmt: skip
                connection.execute(usage.insert().values(**row))
                root = thread if thread in ROOTS else thread.split(".sub")[0].split(".team.")[0]
                places = [("session", root, ""), ("user", owner or "", day), ("deployment", "", day)]
                places += [("schedule", thread, day)] if kind == "schedule" else []
                for place in places:
                    sums[place] = sums.get(place, 0.0) + usd
    return sums


async def test_many_limits_stand_where_each_stands(store: Store) -> None:
    """SE-41: with everything that works for a session, and with no other session's."""
    sums = await store.write(filled)
    scopes = [MoneyScope(*place, 100.0) for place in sums if place[1] in (*THREADS, "ben", "")]
    scopes += [MoneyScope("session", f"{n:012x}", "", 1.0) for n in range(300)]  # of which there is nothing

    def change(connection: Connection) -> None:
        add_to_limit(connection, "user", "ben", DAY, 7.0)
        add_to_limit(connection, "user", "ben", ANOTHER, 9.0)
        hold(
            connection,
            [MoneyScope("user", "ben", DAY, 0), MoneyScope("session", ROOTS[0], "", 0)],
            "t_0_0",
            3.0,
            1,
        )

    await store.write(change)
    found = await store.read(lambda c: standings(c, scopes))
    assert [row.scope for row in found] == scopes
    for row in found:
        place = (row.scope.scope, row.scope.key, row.scope.window)
        assert row.spent == sums.get(place, 0.0), place
        assert row.limit_usd == row.scope.limit_usd + (7.0 if place == ("user", "ben", DAY) else
                                                       9.0 if place == ("user", "ben", ANOTHER) else 0.0)  # fmt: skip
        assert row.held == (3.0 if place in (("user", "ben", DAY), ("session", ROOTS[0], "")) else 0.0)
        assert (await store.read(lambda c, s=row.scope: standings(c, [s]))) == [row]
