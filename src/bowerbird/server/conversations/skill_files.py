"""Writing and deleting skills on disk (SV-12): one directory with a SKILL.md, never a path outside.

Here: those two file operations. Not here: reading skills (`skills/`), who may write (`routes/`).
"""

import contextlib
import os
import re
import secrets
import shutil
from pathlib import Path

from bowerbird.server.common.context import Named
from bowerbird.server.common.errors import problem

NAME = r"[a-z0-9][a-z0-9-]{0,63}"
_NAME = re.compile(NAME)
FILE = "SKILL.md"


def skill_text(skill: Named, body: str) -> str:
    """Return the SKILL.md of a skill.

    Example:
        >>> skill_text(Named("greet", "Say hello."), "Be kind.")
        '---\\nname: greet\\ndescription: "Say hello."\\n---\\nBe kind.'
    """
    return f"---\nname: {skill.name}\ndescription: {_quoted(skill.description)}\n---\n{body}"


def _quoted(text: str) -> str:
    """Return `text` as a YAML string in double quotes, whatever is in it."""
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\U{code:08X}" if code > 0xFFFF else f"\\u{code:04X}"


def write_skill(root: Path, skill: Named, body: str, *, overwrite: bool) -> None:
    """Write a skill, whole or not at all; other files of an existing one stay. Blocks.

    Raises:
        Problem: 409 when it exists and `overwrite` is not given, or a link stands in its place.
    """
    directory = root / skill.name
    root.mkdir(parents=True, exist_ok=True)
    if directory.is_symlink():
        raise problem("conflict", f"{skill.name} is a link; it is not written through")
    content = skill_text(skill, body).encode("utf-8", "surrogateescape")
    fresh = root / f".{skill.name}.{secrets.token_hex(4)}"
    fresh.mkdir()
    try:
        with (fresh / FILE).open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if directory.is_dir():
            if not overwrite:
                raise problem("conflict", f"there is a skill {skill.name} already; use ?overwrite=true")
            (fresh / FILE).replace(directory / FILE)
            return
        try:
            fresh.rename(directory)  # a directory that appeared meanwhile is not replaced: it holds files
        except OSError:
            raise problem("conflict", f"there is a skill {skill.name} already") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(fresh)


def delete_skill(root: Path, name: str) -> None:
    """Delete a skill's directory; raises Problem 404 when there is none of the user's. Blocks."""
    directory = root / name
    if _NAME.fullmatch(name) is None or directory.is_symlink() or not (directory / FILE).is_file():
        raise problem("not_found", "there is no such skill of your own")
    grave = root / f".{name}.{secrets.token_hex(4)}"
    directory.rename(grave)
    shutil.rmtree(grave)
