"""The tools `list_skills` and `read_skill` (TO-32, TO-33).

Here: what a model sees of skills. Not here: loading them (`skills/`).
"""

import difflib

from bowerbird.core.errors import ToolError
from bowerbird.core.threads import to_thread
from bowerbird.skills import SkillLibrary, SkillProblem
from bowerbird.skills.skill import Skill
from bowerbird.tools.result import ToolResult
from bowerbird.tools.tool import Tool


def skill_tools(library: SkillLibrary | None = None) -> list[Tool]:
    """Return `list_skills` and `read_skill`.

    Args:
        library: The skills of the run's workspace; None = those bundled with Bowerbird.
    """
    skills = library or SkillLibrary()

    async def list_skills() -> ToolResult:
        """List the skills: instructions for certain kinds of task, to be read with read_skill."""
        offered = await to_thread(skills.offered)
        lines = [f"{skill.name}: {skill.description}" for skill in offered]
        data = {"skills": [{"name": s.name, "description": s.description} for s in offered]}
        return ToolResult("\n".join(lines) or "There are no skills.", data=data)

    async def read_skill(skill: str, path: str = "SKILL.md") -> ToolResult:
        """Read a skill before you do what it is about.

        Args:
            skill: Name of the skill.
            path: A file of the skill, as its text or file list names it.
        """
        return await to_thread(_read, skills, skill, path)

    return [
        Tool(list_skills, effect="read"),
        Tool(read_skill, effect="read", parameters={"name": "skill"}),
    ]


def _read(library: SkillLibrary, name: str, path: str) -> ToolResult:
    offered = {skill.name: skill for skill in library.offered()}
    skill = offered.get(name)
    if skill is None:
        near = difflib.get_close_matches(name, list(offered), n=3, cutoff=0.3)
        known = f"; the nearest are {', '.join(near)}" if near else ""
        raise ToolError(f"there is no skill {name!r}{known}")
    try:
        if path in ("SKILL.md", "./SKILL.md", "/SKILL.md", ""):
            return _body(library, skill)
        data = library.read(skill, path)
    except SkillProblem as problem:
        raise ToolError(f"skill {name}: {problem}") from problem
    if b"\0" in data[:8192]:
        return ToolResult(f"{path}: a binary file of {len(data):,} bytes", data={"skill": name, "path": path})
    text = data.decode("utf-8", "replace")
    return ToolResult(_tagged(name, path, text), data={"skill": name, "path": path, "content": text})


def _body(library: SkillLibrary, skill: Skill) -> ToolResult:
    text, files = library.body(skill), library.files(skill)
    content = _tagged(skill.name, "SKILL.md", text)
    if files:
        content += "\nFiles of this skill (read with read_skill, path=…):\n" + "\n".join(files)
    data = {"skill": skill.name, "path": "SKILL.md", "content": text, "files": files}
    return ToolResult(content, data=data)


def _tagged(name: str, path: str, text: str) -> str:
    return f'<skill name="{name}" path="{path}">\n{text.strip()}\n</skill>'
