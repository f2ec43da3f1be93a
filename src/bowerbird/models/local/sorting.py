"""Whether a request asks for files to be changed or for an answer, by its words.

Here: what words decide, purely, and how the model is asked where they do not. Not here: asking it
(`exchange.py`), what follows (`choices.py`, `changing.py`).
"""

import re

CHANGE_WORDS = frozenset(
    "add allow change correct create decrease delete drop edit fix increase insert let lower make move put "
    "raise remove rename replace rewrite set turn update use write".split()
)
_PLAIN_CHANGES = frozenset("add change correct delete fix remove rename replace set update".split())
_POLITE = frozenset("please now then also".split())
_STATED = re.compile(r"\b(?:should|must|shall|now)\b")
_NOT_STATED = re.compile(
    r"^(?:how|what|when|where|which|who|why|is|are|does|do|can|count|describe|explain|find|list|look|name|run|"
    r"say|search|show|summarise|summarize|tell)\b|\b(?:i|me|you|we|us|question|answer)\b"
)
_ANSWERED = frozenset(
    "are calculate can check compare compute could count describe did do does explain find give guess has "
    "have hello help hey hi how is list look name print read repeat say search show sum summarise summarize "
    "tell test thank thanks translate try verify was were what when where which who whose why will "
    "would".split()
)
_CLAUSE_END = re.compile(r"[,;:.!](?=\s|$)|\band\b")
_FEWEST_WORDS = 3

KINDS = ("change", "answer")


def sorted_by_words(task: str) -> bool | None:
    """Tell by the first word of its clauses whether a task asks for a change of files; None where it is open.

    What should, must or now holds is a change, too, said of a thing and not of a person.

    Example:
        >>> sorted_by_words("Please rename the function"), sorted_by_words("Count the rows.")
        (True, False)
        >>> sorted_by_words("Tickets now cost 6 euros."), sorted_by_words("Retry five times.")
        (True, None)
    """
    plain = task.lower().strip()
    if plain.endswith("?"):
        return False
    if _STATED.search(plain) and not _NOT_STATED.search(plain):
        return True
    clauses = [re.findall(r"[a-z]+", clause) for clause in _CLAUSE_END.split(plain)]
    begins = [next((word for word in words if word not in _POLITE), "") for words in clauses]
    if begins[0] in CHANGE_WORDS or any(word in _PLAIN_CHANGES for word in begins):
        return True
    asked = (
        any(word in _ANSWERED for word in begins)
        or "`" in task
        or _NOT_STATED.search(plain.removeprefix("run"))
    )
    return False if asked or len(plain.split()) < _FEWEST_WORDS else None


def sorting_question(task: str) -> str:
    """Return what the model is asked of a task that words leave open; it says one of `KINDS`."""
    return (
        "Somebody wrote about the files of a project. Must a file be changed for it (change), or is it "
        "enough to say or compute something (answer)?\n"
        "Sum the prices: answer\nShow bigger pictures: change\nWait 5 seconds between tries: change\n"
        f"{task}:"
    )
