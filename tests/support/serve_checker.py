"""An independent look at what a drilled server left: plain SQL, plain files, nothing of the product's.

Here: the checker and its two ways to a database. Not here: the drill.
"""

import asyncio
import json
import sqlite3
from collections import Counter
from typing import TYPE_CHECKING, Any

from support.crashes import effective_content

if TYPE_CHECKING:
    from support.serve_drill import ServeDrill, Talk

Row = tuple[Any, ...]


def rows(drill: "ServeDrill", query: str) -> list[Row]:
    """Return what a query finds, with nothing but the database's own library."""
    if drill.url:
        return asyncio.run(_asked(drill.url, query)) if not _in_loop() else _in_thread(drill.url, query)
    database = sqlite3.connect(f"file:{drill.data}/agent.db?mode=ro", uri=True, timeout=30)
    try:
        return database.execute(query).fetchall()
    finally:
        database.close()


def execute(drill: "ServeDrill", statement: str) -> None:
    """Change the database while no server runs."""
    if drill.url:
        asyncio.run(_asked(drill.url, statement))
        return
    database = sqlite3.connect(drill.data / "agent.db", timeout=30)
    with database:
        database.execute(statement)
    database.close()


async def _asked(url: str, query: str) -> list[Row]:
    import asyncpg

    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(query)]
    finally:
        await connection.close()


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_thread(url: str, query: str) -> list[Row]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(_asked(url, query))).result()


def check(drill: "ServeDrill") -> list[str]:
    """Return what is wrong after a drill has been finished."""
    wrong = _check_database(drill)
    for talk in drill.talks:
        wrong += _check_turns(drill, talk) + _check_files(drill, talk)
    wrong += _check_calls(drill) + _check_deliveries(drill) + _check_landings(drill)
    return wrong


def _check_database(drill: "ServeDrill") -> list[str]:
    wrong: list[str] = []
    if not drill.url:
        if rows(drill, "PRAGMA integrity_check") != [("ok",)]:
            wrong.append("the database is damaged")
        wrong += [f"orphans: {row}" for row in rows(drill, "PRAGMA foreign_key_check")]
    found: dict[str, list[int]] = {}
    for thread, seq in rows(drill, "SELECT thread_id, seq FROM journal ORDER BY thread_id, seq"):
        found.setdefault(thread, []).append(seq)
    for thread, last in rows(drill, "SELECT thread_id, last_seq FROM sessions"):
        if found.get(thread, []) != list(range(1, last + 1)):
            wrong.append(f"the journal of {thread} has gaps: {found.get(thread)}, last {last}")
    doubled = Counter(rows(drill, "SELECT door, dedupe_key FROM inbox"))
    wrong += [f"accepted twice: {key}" for key, count in doubled.items() if count > 1]
    left = rows(drill, "SELECT id, thread_id, state FROM inbox WHERE state <> 'done'")
    return wrong + ([f"inputs that nobody answered: {left}"] if left else [])


def _check_turns(drill: "ServeDrill", talk: "Talk") -> list[str]:
    """Every message that was acknowledged has one finished turn, in order."""
    turns = rows(
        drill,
        f"SELECT turn_id, n, state, snapshot_id FROM turns WHERE thread_id = '{talk.thread}' ORDER BY n",
    )
    if [(n, state) for _, n, state, _ in turns] != [(n, "done") for n in range(1, talk.accepted + 1)]:
        return [f"{talk.name}: {talk.accepted} messages were acknowledged, its turns are {turns}"]
    wrong: list[str] = []
    for turn, n, _, snapshot in turns:
        records = [
            (kind, json.loads(body))
            for kind, body in rows(
                drill, f"SELECT type, body FROM journal WHERE turn_id = '{turn}' ORDER BY seq"
            )
        ]
        kinds = Counter(kind for kind, _ in records)
        once = ("turn_started", "user", "turn_ended")
        wrong += [f"{talk.name} {n}: {kinds[k]} × {k}" for k in once if kinds[k] != 1]
        said = [body for kind, body in records if kind == "user"]
        if said and f"Message {talk.name} {n} " not in json.dumps(said[0]):
            wrong.append(f"{talk.name} {n} belongs to another message: {said}")
        bodies = [body for kind, body in records if kind == "assistant"]
        ends = [b["content"] for b in bodies if b["stop_reason"] == "end_turn"]
        if [f"Done {talk.name} {n}." in json.dumps(end) for end in ends] != [True]:
            wrong.append(f"{talk.name} {n} was answered with {ends}")
        if [b["stop_reason"] for b in bodies].count("partial"):
            wrong.append(f"{talk.name} {n}: a partial answer is on record")
        kept = rows(drill, f"SELECT snapshot_id FROM snapshots WHERE turn_id = '{turn}'")
        if kept != [(snapshot,)]:
            wrong.append(f"{talk.name} {n}: snapshots {kept}, the turn has {snapshot}")
    return wrong


def _check_calls(drill: "ServeDrill") -> list[str]:
    """Each call has one outcome; what acts on the world was done at most once, and once if it says so."""
    wrong: list[str] = []
    asked: dict[str, dict[str, Any]] = {}
    outcomes: Counter[str] = Counter()
    sent: set[str] = set()
    for kind, raw in rows(drill, "SELECT type, body FROM journal ORDER BY thread_id, seq"):
        body = json.loads(raw)
        if kind == "assistant":
            asked |= {block["id"]: block for block in body["content"] if block["type"] == "tool_use"}
        elif kind == "tool_outcome":
            outcomes[body["call"]] += 1
            text = asked[body["call"]]["input"].get("text")
            if body["status"] == "ok" and text is not None:
                sent.add(text)
            elif body["status"] != "ok" and not (body["status"] == "abandoned" and text is not None):
                wrong.append(f"outcome {body['status']}: {body['content']}")
    if outcomes != Counter(dict.fromkeys(asked, 1)):
        wrong.append(f"calls {list(asked)} have outcomes {outcomes}")
    left = rows(drill, "SELECT call_id FROM effects WHERE state = 'intent'")
    wrong += [f"effects without an end: {left}"] if left else []
    outside = drill.peers.outside
    mine = {text: count for text, count in outside.items() if text in sent or count > 1}
    wrong += [f"{text!r} was sent {count} times" for text, count in mine.items() if count > 1]
    return wrong + [f"{text!r} is recorded as sent and was not" for text in sent if outside[text] == 0]


def _check_deliveries(drill: "ServeDrill") -> list[str]:
    """Every answer of a chat was delivered, in order; a part at most once too often per death.

    The first one came before the conversation was a chat's.
    """
    left = rows(drill, "SELECT dedupe_key, state FROM outbox WHERE state <> 'sent'")
    wrong = [f"not delivered: {row}" for row in left]
    lines = drill.delivered.read_text().splitlines() if drill.delivered.exists() else []
    got = [json.loads(line) for line in lines]
    texts = [text for at, (key, text) in enumerate(got) if at == 0 or got[at - 1][0] != key]
    chats = [talk for talk in drill.talks if talk.is_chat]
    wanted = [
        part
        for talk in chats
        for n in range(2, talk.accepted + 1)
        for part in (f"Done {talk.name} {n}.", "(end)")
    ]
    if texts != wanted:
        wrong.append(f"delivered in this order: {texts}")
    repeated = len(got) - len(texts)
    return wrong + ([f"{repeated} parts repeated, {drill.kills} deaths"] if repeated > drill.kills else [])


def _check_files(drill: "ServeDrill", talk: "Talk") -> list[str]:
    """No file of the branch is lost or done twice; the workspace has all of it, or nothing before a landing."""
    [(branch,)] = rows(drill, f"SELECT branch_id FROM sessions WHERE thread_id = '{talk.thread}'")
    directory = drill.data / "branches" / str(branch)
    changed = _files_after(talk, talk.accepted)
    wrong = [
        f"{name} is {found!r} in the branch"
        for name, content in changed.items()
        if (found := effective_content(directory, drill.project, name)) != content
    ]
    present = {
        str(path.relative_to(drill.project)): path.read_bytes()
        for path in (drill.project / talk.name).rglob("*")
        if path.is_file()
    }
    on_disk = changed if drill.policy == "turn" else _files_after(talk, 0)
    return wrong + ([f"the workspace holds {present}"] if present != on_disk else [])


def _files_after(talk: "Talk", messages: int) -> dict[str, bytes]:
    files = {f"{talk.name}/log.txt": ("start\n" + "+" * messages + "end\n").encode()}
    return files | {f"{talk.name}/new/{n}.txt": f"{n}\n".encode() for n in range(1, messages + 1)}


def _check_landings(drill: "ServeDrill") -> list[str]:
    """No landing stands between its beginning and its end, and none left anything in the workspace."""
    wrong: list[str] = []
    for record in drill.data.glob("branches/*/landings/*/record.json"):
        state = json.loads(record.read_bytes())["state"]
        if state not in ("done", "undone"):
            wrong.append(f"landing {record.parent.name} is {state}")
    left = [str(path) for path in drill.project.rglob("*") if path.name.startswith(".bower")]
    return wrong + ([f"left behind: {left}"] if left else [])
