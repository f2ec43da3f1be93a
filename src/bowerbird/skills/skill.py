"""A skill as a value: its front matter checked, its place in the prompt (AS-44 … 46).

Here: pure reading of text. Not here: files.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

MAX_FRONT_BYTES = 16 * 1024
MAX_BODY_BYTES = 256 * 1024
MAX_PROMPT_BYTES = 16 * 1024
FOR_PEOPLE = "only people call it (disable-model-invocation)"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_FRONT = re.compile(
    rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)


class SkillProblem(ValueError):
    """Why a skill is hidden; the text is for people."""


class Skill(msgspec.Struct, frozen=True):
    """One skill.

    Attributes:
        name, description: as its front matter says.
        directory: where it lies.
        requires_env, requires_bridge: what must be set or configured for it to be shown.
        extra: `homepage`, `license`, `metadata`, `allowed-tools` and whatever else was written.
        bundled: it comes with Bowerbird.
        hidden: why it is not offered, or None.
    """

    name: str
    description: str
    directory: Path
    requires_env: tuple[str, ...] = ()
    requires_bridge: tuple[str, ...] = ()
    extra: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    bundled: bool = False
    hidden: str | None = None


def split_front_matter(data: bytes) -> tuple[bytes, bytes]:
    """Return front matter and body of a SKILL.md.

    Raises:
        SkillProblem: there is none, or a part is too large.
    """
    match = _FRONT.match(data[: MAX_FRONT_BYTES + 64])
    if match is None:
        raise SkillProblem("SKILL.md does not begin with front matter between '---' lines of at most 16 KiB")
    if len(match[1]) > MAX_FRONT_BYTES:
        raise SkillProblem(f"front matter is {len(match[1]):,} bytes; at most {MAX_FRONT_BYTES:,}")
    body = data[match.end() :]
    if len(body) > MAX_BODY_BYTES:
        raise SkillProblem(f"SKILL.md has more than {MAX_BODY_BYTES:,} bytes of text")
    return match[1], body


def parse_skill(data: bytes, directory: Path | None, *, bundled: bool = False) -> Skill:
    """Return the skill that a SKILL.md in `directory` describes; None = it lies in none yet.

    Raises:
        SkillProblem: the front matter does not parse or breaks a rule; nothing is repaired.
    """
    front, _ = split_front_matter(data)
    fields = front_fields(front)
    name, description = fields.pop("name", directory and directory.name), fields.pop("description", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SkillProblem(f"name is {name!r}; use lower-case letters, digits and '-', at most 64")
    directory = directory or Path(name)
    if name != directory.name:
        raise SkillProblem(f"name is {name!r} but the directory is {directory.name!r}")
    if not isinstance(description, str) or not 1 <= len(description.strip()) <= 1024:
        raise SkillProblem("description must be text of 1 to 1,024 characters")
    return Skill(
        name,
        " ".join(description.split()),
        directory,
        _names(fields.pop("requires_env", None), "requires_env"),
        _names(fields.pop("requires_bridge", None), "requires_bridge"),
        fields,
        bundled,
        FOR_PEOPLE if fields.get("disable-model-invocation") is True else None,
    )


def missing_requirement(skill: Skill, env: Mapping[str, str], bridges: Iterable[str]) -> str | None:
    """Return why `skill` cannot be used here, None when everything it needs is there."""
    for variable in skill.requires_env:
        if not env.get(variable):
            return f"the environment variable {variable} is not set"
    known = set(bridges)
    for bridge in skill.requires_bridge:
        if bridge not in known:
            return f"the gateway bridge {bridge!r} is not configured"
    return None


def prompt_lines(skills: Iterable[Skill]) -> str:
    """Return `name: description` lines, sorted, in at most 16 KiB; the rest is counted.

    Example:
        >>> prompt_lines([Skill("b", "Second.", Path("b")), Skill("a", "First.", Path("a"))])
        'a: First.\\nb: Second.'
    """
    lines: list[str] = []
    size = 0
    offered = sorted((s for s in skills if s.hidden is None), key=lambda s: s.name)
    for index, skill in enumerate(offered):
        line = f"{skill.name}: {skill.description}"
        size += len(line.encode()) + 1
        if size > MAX_PROMPT_BYTES - 80:
            lines.append(f"({len(offered) - index} more; list_skills shows all)")
            break
        lines.append(line)
    return "\n".join(lines)


def front_fields(front: bytes) -> dict[str, Any]:
    """Return what front matter says.

    Raises:
        SkillProblem: it does not parse.
    """
    plain = _plain_fields(front)
    if plain is not None:
        return plain
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    reader: Any = YAML(typ="safe", pure=True)
    try:
        found = reader.load(front.decode("utf-8"))
    except (YAMLError, UnicodeDecodeError, ValueError, RecursionError, TypeError) as error:  # `[0, []]: x`
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise SkillProblem(f"front matter does not parse: {first}") from error
    if not isinstance(found, dict):
        raise SkillProblem("front matter must be 'key: value' lines")
    return {str(k): v for k, v in cast("dict[Any, Any]", found).items()}


_PLAIN_LINE = re.compile(r"([A-Za-z][A-Za-z0-9_-]*): +([A-Za-z][ -~]*?) *")
_NO_TEXT = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def _plain_fields(front: bytes) -> dict[str, Any] | None:
    """Return front matter that is nothing but `key: plain words`, None when it is anything else.

    Most is; the YAML library, whose import costs more than all the rest of finding skills, reads the others.
    """
    fields: dict[str, Any] = {}
    for line in front.decode("latin-1").removesuffix("\n").split("\n"):
        found = _PLAIN_LINE.fullmatch(line)
        if found is None or found[1] in fields:
            return None
        key, text = found[1], found[2]
        if ": " in text or " #" in text or text.endswith(":") or {key.lower(), text.lower()} & _NO_TEXT:
            return None
        fields[key] = text
    return fields


def _names(value: object, key: str) -> tuple[str, ...]:
    if value is None:
        return ()
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list):
        raise SkillProblem(f"{key} must be a name or a list of names")
    names = cast("list[object]", items)
    if not all(isinstance(n, str) and n for n in names):
        raise SkillProblem(f"{key} must be a name or a list of names")
    return tuple(cast("list[str]", names))
