"""Whether a request asks for files to be changed or for an answer, by its words.

Here: what words decide, purely, and how the model is asked where they do not. Not here: asking it
(`exchange.py`), what follows (`choices.py`, `changing.py`).
"""

import re

CHANGE_WORDS = frozenset(
    "add adjust allow append bump change correct create decrease delete disable drop edit enable enter "
    "extend fix implement increase insert keep let lower make mend move put raise remove rename repair "
    "replace rewrite set shorten swap turn update use write".split()
)
_PLAIN_CHANGES = frozenset(
    "add append bump change correct delete disable enable fix mend remove rename repair replace set "
    "update".split()
)
_POLITE = frozenset("please now then also just kindly only".split())
_STATED = re.compile(
    r"\b(?:should|must|shall|now|from now on|ought to|(?:is|are|has|have|needs?|wants?) to be)\b|"
    r"\b(?:moves?|rises?|falls?|drops?|goes (?:up|down)) to \S*\d"
)
# "When it is full it should stop" tells a case; "when is it full" asks.
_A_CASE = re.compile(
    r"^(?:when|whenever|where|if)\b(?! (?:is|are|was|were|does|do|did|can|will|would|has|have|should|must)\b)"
)
_SURE = re.compile(
    r"\bfrom now on\b|\b(?:take|leave|throw|cut)\b[^.?!;:]{1,60}\bout\b|\bget rid of\b|"
    r"\b(?:don['’]t|do not|no longer) (?:want|need) (?:it|that|this|them|those|to see)\b"
)
# What follows on a sentence that told what is wrong: "It gives up after three. Let it try five times."
_THEN = re.compile(
    r"^(?:please )?(?:(?:let|make) (?:it|them|that|this)|don['’]t let|never let|stop (?:it|that))\b"
)
# "Could you …?" asks for what follows it; "I would like …" may ask for either.
_ASKED_OF = re.compile(
    r"^(?:please )?(?:(?:can|could|will|would) (?:you|(?P<we>we))|(?:i|we)(?: would|'d) like you to|"
    r"(?:i|we) (?:need|want) you to|would you mind)\b,? (?:please )?(?P<what>.+)"
)
_WISHED = re.compile(
    r"^(?:i|we)(?:'d like| would like| need| want)\b(?! (?:you|to (?:know|see|learn|understand)))"
)
_GIVEN = re.compile(r"^(?:please )?give (?:it|them|each|every|all)\b")
_GIVE_BACK = re.compile(r"\bgive (?:me|us|back)\b|\bwrite (?:me|us|out|down)\b")
# "Add up the prices" sums; "add up to three tries" and "add up and down buttons" add something.
_ADD_UP = re.compile(
    r"\badd (?:up (?=(?:all|the|every|each|these|those|what|how)\b|[\w-]+['’]s\b)|"
    r"(?=(?:it|them|these|those)(?: all)? up\b))"
)
# "At most 12, not 20", "every 5 minutes instead of 15".
_ANOTHER_VALUE = re.compile(
    r"\d.*\b(?:instead of|rather than|not(?: just| only)?)(?: \w+)? \d|\bfrom now on\b"
)
_PART_END = re.compile(r"(?<=[.!?,;:])\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_PERSON = re.compile(r"\b(?:i|me|you|we|us)\b")
_NOT_STATED = re.compile(
    r"^(?:how|what|when|where|which|who|why|is|are|does|do|can|count|describe|explain|find|list|look|name|run|"
    r"say|search|show|summarise|summarize|tell)\b|\b(?:i|me|you|we|us|question|answer)\b"
)
_ANSWERED = frozenset(
    "are calculate can check compare compute could count describe did do does explain find guess has "
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
        >>> sorted_by_words("Could you add a test?"), sorted_by_words("Could you say why?")
        (True, False)
        >>> sorted_by_words("Add up the prices."), sorted_by_words("Add up to three tries.")
        (False, True)
    """
    plain = _ADD_UP.sub("sum ", task.lower().strip())
    parts = _PART_END.split(plain)
    for part in parts:
        if (asked := _ASKED_OF.match(part)) is not None:
            return _of_somebody(asked["what"], _PLAIN_CHANGES if asked["we"] else CHANGE_WORDS)
    if any(_GIVEN.match(part) for part in parts):
        return True
    if plain.endswith("?") or _GIVE_BACK.search(plain):
        return False
    if _ANOTHER_VALUE.search(plain) and not _NOT_STATED.search(plain):
        return True
    told = _told(plain)
    if told:
        return None if _PERSON.search(told) and not _SURE.search(told) else True
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


def _told(plain: str) -> str:
    """Return what a task tells of how things are to be: all of it, the first sentence that does, or ""."""
    if _WISHED.match(plain) or (_STATED.search(plain) and not _NOT_STATED.search(_PERSON.sub("", plain))):
        return plain
    sentences = _SENTENCE_END.split(plain)
    if any(sentence.endswith("?") or _asks(sentence) for sentence in sentences):
        return ""
    for sentence in sentences[1:]:
        if _THEN.search(sentence) or _STATED.search(sentence):
            return sentence
    return next((sentence for sentence in sentences if _SURE.search(sentence)), "")


def _asks(sentence: str) -> bool:
    """Whether a sentence begins as a question or as an order to say something does."""
    if _A_CASE.match(sentence):
        return False
    return next((word for word in re.findall(r"[a-z]+", sentence) if word not in _POLITE), "") in _ANSWERED


def _of_somebody(what: str, changes: frozenset[str]) -> bool | None:
    """Tell of what somebody is asked for, by its first word; "mind adding" asks for "add"."""
    first = next((word for word in re.findall(r"[a-z]+", what) if word not in {*_POLITE, "mind"}), "")
    stem = first.removesuffix("ing")
    if {first, stem, stem + "e", stem[:-1]} & changes:
        return True
    return False if first in _ANSWERED else None


def sorting_question(task: str) -> str:
    """Return what the model is asked of a task that words leave open; it says one of `KINDS`."""
    return (
        "Somebody wrote about the files of a project. Must a file be changed for it (change), or is it "
        "enough to say or compute something (answer)?\n"
        "Sum the prices: answer\nShow bigger pictures: change\nWait 5 seconds between tries: change\n"
        f"{task}:"
    )
