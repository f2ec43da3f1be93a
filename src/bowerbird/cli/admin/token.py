"""`bowerbird token create|list|revoke`: credentials of the server's users (SV-55).

Here: the commands over the server's own database. Not here: options (`options/token_options.py`), the rows
(`store/rows/tokens.py`), checking them (`server/access`).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from bowerbird.cli.admin.in_store import in_server_store
from bowerbird.cli.terminal.databases import shown
from bowerbird.cli.terminal.exits import DONE, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.text import harmless, table
from bowerbird.core.timestamps import now_iso, to_minute
from bowerbird.store.rows.tokens import ROLES, TokenRow, all_tokens, expiry, make_token, revoke

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from bowerbird.config import Loaded

T = TypeVar("T")


def create(shell: Shell, *, name: str, role: str, user: str, expires: str | None, json: bool) -> int:
    """Make a token; its secret is written to standard output and nowhere else.

    Raises:
        CliExit: an unknown role. InvalidArgument: the name is taken, or the lifetime is none.
    """
    if role not in ROLES:
        raise CliExit(USAGE, f"--role is {role!r}; use {', '.join(ROLES)}")
    until = expiry(expires) if expires is not None else None
    loaded = shell.load_server(begin=True)
    row, secret = _in_store(shell, lambda c: make_token(c, name, role, user=user, expires_at=until), loaded)
    if json:
        shell.json({**_data(row), "token": secret})
        return DONE
    shell.terminal.write(secret + "\n")
    ends = f", until {to_minute(row.expires_at)}" if row.expires_at else ""
    shell.terminal.note(
        f"{harmless(row.name)}: role {row.role}, user {harmless(row.user)}{ends}; shown only now; "
        f"for servers on {shown(loaded)}"
    )
    return DONE


def list_tokens(shell: Shell, *, json: bool) -> int:
    """List all tokens, the oldest first."""
    loaded = shell.load_server(begin=True)
    rows = _in_store(shell, all_tokens, loaded)
    if json:
        shell.json([_data(row) for row in rows])
        return DONE
    cells = [[row.name, row.role, row.user, row.created_at[:10], _state(row)] for row in rows]
    for line in table([[harmless(cell) for cell in row] for row in cells], width=shell.terminal.width):
        shell.terminal.line(line)
    if not rows:
        shell.terminal.note(
            f"no token in {shown(loaded)}; make one with: bowerbird token create NAME --role user"
        )
    return DONE


def revoke_token(shell: Shell, *, name: str) -> int:
    """Revoke every usable token of a name, or the one of an id; exit code 1 when there is none."""
    loaded = shell.load_server(begin=True)
    rows = _in_store(shell, lambda c: revoke(c, name), loaded)
    if not rows:
        raise CliExit(
            USAGE,
            f"there is no token {harmless(name)} that could be revoked in {shown(loaded)}; "
            "`bowerbird token list` has them",
        )
    for row in rows:
        shell.terminal.note(f"{harmless(row.name)} ({row.token_id}) is revoked")
    return DONE


def _in_store(shell: Shell, work: "Callable[[Connection], T]", loaded: "Loaded") -> T:
    """Run `work` in a transaction of the database that `serve` uses here."""
    return in_server_store(shell, lambda connection, _: work(connection), loaded)[1]


def _data(row: TokenRow) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.structs.asdict(row)
    return {"id": values.pop("token_id"), **values, "usable": row.is_usable(now_iso())}


def _state(row: TokenRow) -> str:
    if row.revoked_at is not None:
        return "revoked"
    if not row.is_usable(now_iso()):
        return "expired"
    return f"until {row.expires_at[:10]}" if row.expires_at else "usable"
