"""Skills: directories with a SKILL.md that an agent may read when a task calls for it (AS-44 … 46).

Lives here: loading, checking and listing them, reading their files. Must not be here:
running their scripts, the tools that show them, settings.
"""

from bowerbird.skills.library import SkillLibrary
from bowerbird.skills.skill import Skill, SkillProblem, prompt_lines

__all__ = ["Skill", "SkillLibrary", "SkillProblem", "prompt_lines"]
