"""What stands at the prompt in each of its modes. Pure words.

Not here: drawing them (`prompt_screen.py`).
"""

from typing import Literal

Mode = Literal["idle", "running", "feedback", "asking"]

PROMPTS: dict[Mode, str] = {"idle": "> ", "running": "> ", "feedback": "feedback> ", "asking": "answer> "}
HINTS: dict[Mode, str] = {"feedback": "what it should do instead; Enter alone: nothing"}
"""Shown while nothing is typed, where the prompt alone does not say what is wanted."""
