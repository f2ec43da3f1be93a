"""`bowerbird export` and `/export`: a whole conversation as one file (UI-80).

Here: the three forms, and writing the file. Not here: reading the conversation (`client/`).

What a model, a tool or a person wrote is text in each form: HTML shows it between tags of ours alone and
loads nothing, Markdown keeps it in fences that it cannot close.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Literal

from bowerbird.cli.client.opening import with_client
from bowerbird.cli.client.protocol import Client, Row
from bowerbird.cli.terminal.drawing import key_parameter
from bowerbird.cli.terminal.exits import DONE, USAGE, CliExit
from bowerbird.cli.terminal.shell import Shell
from bowerbird.cli.terminal.text import harmless, json_text, one_line
from bowerbird.core.atomic import make_file
from bowerbird.core.timestamps import to_minute

Form = Literal["md", "html", "json"]
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
body { max-width: 52rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif;
  color-scheme: light dark; }
article { margin: 1rem 0; padding: .5rem 1rem; border-left: 3px solid #8886; }
article.user { border-color: #2a7; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; margin: 0; }
details pre { font: 13px/1.4 ui-monospace, monospace; }
"""


def export(
    shell: Shell,
    *,
    session: str | None,
    md: bool,
    html: bool,
    json: bool,
    out: str | None,
    workspace: str | None,
) -> int:
    """Write a whole conversation to standard output, or to a file."""
    forms: list[Form] = [form for form, wanted in _chosen(md, html, json) if wanted]
    if len(forms) > 1:
        raise CliExit(USAGE, "choose one of --md, --html and --json")
    form = forms[0] if forms else form_of(out or "")

    async def work(client: Client) -> int:
        text = await exported(client, await client.find(session), form)
        if out is None:
            shell.terminal.write(harmless(text) if form == "md" else text)
        else:
            write_new(out, text)
            shell.terminal.note(f"written: {harmless(out)}")
        return DONE

    return with_client(shell, workspace, work)


def _chosen(md: bool, html: bool, json: bool) -> tuple[tuple[Form, bool], ...]:
    return ("md", md), ("html", html), ("json", json)


def form_of(name: str) -> Form:
    """Return the form that a file's name asks for.

    Example:
        >>> form_of("talk.HTML"), form_of("talk"), form_of("a.json")
        ('html', 'md', 'json')
    """
    endings: dict[str, Form] = {".html": "html", ".htm": "html", ".json": "json"}
    return endings.get(Path(name).suffix.lower(), "md")


def write_new(name: str, text: str) -> None:
    """Write a file that is not there yet; raises CliExit where something is."""
    path = Path(name).expanduser()
    try:
        make_file(path, text.encode(errors="replace"))
    except FileExistsError:
        raise CliExit(USAGE, f"{path} is there already; choose another name") from None
    except OSError as error:
        raise CliExit(USAGE, f"{path} cannot be written: {error.strerror}") from None


async def exported(client: Client, thread_id: str, form: Form) -> str:
    """Return a conversation in a form."""
    session = await client.show(thread_id, messages=False)
    messages = await client.messages(thread_id)
    if form == "json":
        return json_text({"conversation": session, "messages": messages}, indent=2) + "\n"
    return as_html(session, messages) if form == "html" else as_markdown(session, messages)


def as_markdown(session: Row, messages: Sequence[Row]) -> str:
    """Return a conversation as Markdown: words as they were written, results of tools in fences. Pure."""
    parts = [f"# {one_line(_title(session))}", _facts(session)]
    for message in messages:
        parts.append(f"## {_who(message)}")
        if str(message["content"]).strip():
            parts.append(_quoted(message) if message["role"] == "user" else str(message["content"]))
        for call, result in _calls(message):
            mark = "`" * (1 + max(map(len, re.findall("`+", result)), default=2))
            parts.append(f"- {call}\n\n{mark}text\n{result}\n{mark}")
    return "\n\n".join(parts) + "\n"


def as_html(session: Row, messages: Sequence[Row]) -> str:
    """Return a conversation as one page that needs nothing else and runs nothing. Pure."""
    title = escape(one_line(_title(session)))
    parts = [
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width"><title>{title}</title>\n'
        f"<style>{_STYLE}</style></head><body>\n<h1>{title}</h1>\n<p>{escape(_facts(session))}</p>\n"
    ]
    for message in messages:
        role = "user" if message["role"] == "user" else "assistant"
        parts.append(f'<article class="{role}"><h2>{escape(_who(message))}</h2>\n')
        if str(message["content"]).strip():
            parts.append(f"<pre>{escape(_shown(message['content']))}</pre>\n")
        for call, result in _calls(message):
            parts.append(f"<details><summary>{escape(call)}</summary><pre>{escape(result)}</pre></details>\n")
        parts.append("</article>\n")
    return "".join(parts) + "</body></html>\n"


def _calls(message: Row) -> Iterator[tuple[str, str]]:
    for call in message.get("tool_calls") or ():
        named = f"{one_line(str(call['tool']))} {one_line(key_parameter(call['input']))}".strip()
        yield f"{named} ({call.get('status') or 'not finished'})", _shown(call.get("result") or "")


def _title(session: Row) -> str:
    return str(session["title"] or "Conversation")


def _facts(session: Row) -> str:
    return " · ".join(
        one_line(str(fact))
        for fact in (session["id"], to_minute(str(session["created_at"])), session["model"])
        if fact
    )


def _who(message: Row) -> str:
    return "You" if message["role"] == "user" else "Assistant"


def _quoted(message: Row) -> str:
    return "\n".join(f"> {line}" for line in str(message["content"]).splitlines())


def _shown(text: object) -> str:
    """Return text whose escapes and bidirectional marks can be seen."""
    return harmless(str(text))
