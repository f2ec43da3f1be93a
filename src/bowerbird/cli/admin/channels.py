"""`bowerbird channels pair|allow|deny|list`: who may write in chats (AS-7, UI-47).

Here: the commands over the server's own database; a server that runs follows at once. Not here: options
(`options/channel_options.py`), rules (`channels/admission.py`).
"""

from typing import TYPE_CHECKING, Any

import msgspec

from bowerbird.channels.admission import DENIED, admitted
from bowerbird.channels.make import CHANNELS, listed_users
from bowerbird.channels.people import deny_user
from bowerbird.channels.receiving import state_of
from bowerbird.cli.admin.in_store import in_server_store
from bowerbird.cli.terminal.exits import DONE, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.text import harmless, table
from bowerbird.store.channels.people import CODE_MINUTES, ChannelUser, list_users_of, make_code, put_user

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from bowerbird.config import Settings

ROLES = ("owner", "guest")
MOST_ID = 64

Row = dict[str, Any]


def pair(shell: Shell, *, channel: str, role: str, json: bool) -> int:
    """Make a one-time code; it is written to standard output and nowhere else."""
    _require(channel, role)
    settings, (code, until) = in_server_store(shell, lambda c, _: make_code(c, channel, role))
    if json:
        shell.json({"channel": channel, "role": role, "code": code, "expires_at": until})
        return DONE
    shell.terminal.write(code + "\n")
    off = "" if settings.channels.telegram.enabled else "; it must be on: channels.telegram.enabled"
    shell.terminal.note(
        f"within {CODE_MINUTES} minutes, write to the bot in a private chat: /start {code}{off}"
    )
    return DONE


def allow(shell: Shell, *, channel: str, user: str, role: str, json: bool) -> int:
    """Admit a user, also one who was denied before."""
    _require(channel, role)
    who = _user(user)
    in_server_store(shell, lambda c, _: put_user(c, ChannelUser(channel=channel, user_id=who, role=role)))
    if json:
        return shell.json({"channel": channel, "user": who, "role": role})
    shell.terminal.note(f"{harmless(who)} may write in {channel} now, as {role}")
    return DONE


def deny(shell: Shell, *, channel: str, user: str, json: bool) -> int:
    """Keep a user out at once; their messages that wait are dropped."""
    _require(channel, "owner")
    who = _user(user)
    _, gone = in_server_store(shell, lambda c, _: deny_user(c, channel, who))
    if json:
        return shell.json({"channel": channel, "user": who, "role": DENIED, "dropped": gone})
    waiting = f"; {gone} of their messages that waited will not run" if gone else ""
    shell.terminal.note(f"{harmless(who)} gets no answer in {channel} any more{waiting}")
    return DONE


def list_users(shell: Shell, *, json: bool) -> int:
    """List the users of the settings and of the stored list, as they hold together."""
    _, (rows, channels) = in_server_store(shell, _listed)
    if json:
        shell.json({"users": rows, "channels": channels})
        return DONE
    cells = [[row["channel"], row["user"], row["role"], row["from"], row["name"]] for row in rows]
    for line in table([[harmless(cell) for cell in row] for row in cells], width=shell.terminal.width):
        shell.terminal.line(line)
    if not rows:
        shell.terminal.note("nobody may write; admit somebody with: bowerbird channels pair telegram")
    for found in channels:
        why = f": {harmless(found['why'])}" if found["why"] else ""
        shell.terminal.note(f"{found['channel']}: {found['state']}{why}")
    return DONE


def _listed(connection: "Connection", settings: "Settings") -> tuple[list[Row], list[Row]]:
    rows: list[Row] = []
    channels: list[Row] = []
    for name in CHANNELS:
        given = listed_users(settings, name)
        stored = {user.user_id: user for user in list_users_of(connection, name)}
        for who in dict.fromkeys([*given, *stored]):
            entry = stored.get(who)
            role = admitted(who, given, None if entry is None else entry.role) or DENIED
            place = "settings" if entry is None else "stored list"
            told = "" if entry is None else entry.name
            rows.append({"channel": name, "user": who, "role": role, "from": place, "name": told})
        channels.append({"channel": name, **_state(connection, settings, name)})
    return rows, channels


def _state(connection: "Connection", settings: "Settings", name: str) -> Row:
    found = state_of(connection, name)
    if not settings.channels.telegram.enabled:
        return {"state": "off (channels.telegram.enabled)", "why": "", "at": ""}
    if found is None:
        return {"state": "was never started", "why": "", "at": ""}
    return msgspec.structs.asdict(found)


def _require(channel: str, role: str) -> None:
    if channel not in CHANNELS:
        raise CliExit(USAGE, f"there is no channel {harmless(channel)!r}; there is {', '.join(CHANNELS)}")
    if role not in ROLES:
        raise CliExit(USAGE, f"--role is {harmless(role)!r}; use {', '.join(ROLES)}")


def _user(text: str) -> str:
    who = text.strip()
    if not who or len(who) > MOST_ID or not who.isprintable():
        raise CliExit(USAGE, "USER is the id that the channel gave the user, such as 123456")
    return who
