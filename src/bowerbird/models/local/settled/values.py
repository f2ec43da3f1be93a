"""A value that a task sets: put in place by code, where task and file leave no doubt which one it is.

Here: what is set to what, which line sets it, the line with the new value; pure. Not here: what a model has
to rewrite (`rewrite.py`), which file is read (`changing.py`). A small model that rewrites a file to set a
number sets others, too, or another one.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bowerbird.models.local.task_words import forms_of, parts_of

_OTHER_WORK = re.compile(
    r"\b(?:add|append|insert|remove|delete|drop|create|rename|fix|repair|correct|wrong|fails?|bug|function|"
    r"method|test|write|move|replace|column|row|line|entry|another|more|both|all|every one|each one|except|"
    r"unless|if|otherwise|twice|double|heading|title)\b",
    re.IGNORECASE,
)
_NUMBER = r"(?:\d{1,3}(?:_\d{3})+(?!\d)|\d+(?:[.:]\d+)*)"
_UNIT_NUMBER = re.compile(
    rf"(?<![\w.:/#-])(\d{{1,3}}(?:,\d{{3}})+|{_NUMBER})"
    r"(?:px|em|rem|ms|s|min|h|%|kb|mb|gb|kg|g|km|cm|mm|m|l)?(?![\w:/]|\.\d|-\w)",
    re.IGNORECASE,
)
_COUNTS: Sequence[str] = "two three four five six seven eight nine ten eleven twelve".split()
_COUNT_WORD = re.compile(rf"(?<![\w-])(?:{'|'.join(_COUNTS)})(?![\w-])", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!;])\s+")
_OLD = re.compile(
    r"\b(?:instead of|rather than|not(?: just| only)?|from|no longer|was|were)(?: every| the)? *$", re.I
)
_ON = re.compile(r"(?: \w+)? (?:on|up|upwards)\b", re.IGNORECASE)
_WORD_SET = re.compile(
    r"\b(?:set|change|switch|turn|update|bump)\b.*\bto [`\"']?([A-Za-z#][\w#+-]*)[`\"']?[.!]?$"
    r"|\bmake\b.*\s[`\"']?([A-Za-z#][\w#+-]*)[`\"']?[.!]?$",
    re.IGNORECASE | re.DOTALL,
)
_SWITCHED = re.compile(
    r"\b(?:(?P<on>enable|(?:turn|switch) (?:[\w. -]+ )?on)"
    r"|(?P<off>disable|(?:turn|switch) (?:[\w. -]+ )?off))\b",
    re.IGNORECASE,
)
_SWITCHES = (("false", "true"), ("off", "on"), ("no", "yes"), ("False", "True"), ("disabled", "enabled"))
_COMMENT = r"\s*(?:(?:#|//|--).*|/\*.*\*/\s*)?"
_SIGN = r"(?::=|\+?\??=(?![=>])|:(?!:))"
_UNTIL = re.compile(r"\b(?:until|till)\b", re.IGNORECASE)
_BEGINS = re.compile(r"open|begin|start|from", re.IGNORECASE)
_MADE = r"(?:(?:new )?(?:Decimal|Fraction|BigDecimal|int|float)\()?"
_NUMBER_LINE = re.compile(
    rf"^(?P<key>[^=:\"'()]*[\"']?[\w.\-]+[\"']?\s*(?::\s*[\w\[\]<>]+\s*(?==))?)(?P<sign>{_SIGN}\s*{_MADE}[\"'`]?:?)"
    rf"(?P<value>{_NUMBER})(?P<rest>\s*(?:[a-zA-Z%]{{1,4}})?[\"'`]?\)?\s*[,;]?{_COMMENT})$"
    rf"|^(?P<key2>\s*(?:#\s*define\s+)?[A-Za-z_][\w.-]*)(?P<sign2>[ \t]+)"
    rf"(?P<value2>{_NUMBER})(?P<rest2>\s*;?{_COMMENT})$"
)
_WORD_LINE = re.compile(
    rf"^(?P<key>[^=:\"'()]*[\"']?[\w.\-]+[\"']?\s*(?::\s*[\w\[\]<>]+\s*(?==))?)(?P<sign>{_SIGN}\s*(?P<quote>[\"'`]?))"
    rf"(?P<value>[A-Za-z#][\w#+-]*)(?P<rest>(?P=quote)\s*[,;]?{_COMMENT})$"
)
_STATEMENT = re.compile(r"^\s*(?:if|elif|else|for|while|return|case|assert|def|import|from|print)\b")
_UNIT_FORMS = {
    "second": r"seconds?|secs?", "minute": r"minutes?|mins?", "hour": r"hours?|hrs?", "day": r"days?",
    "week": r"weeks?", "month": r"months?", "year": r"years?", "cent": r"cents?", "euro": r"euros?|eur",
    "dollar": r"dollars?|usd", "percent": r"percent|%", "byte": r"bytes?", "metre": r"met(?:re|er)s?",
    "kilometre": r"kilomet(?:re|er)s?|km", "kilo": r"kilos?|kilograms?|kg", "gram": r"grams?",
    "millisecond": r"milliseconds?|millis|ms", "pixel": r"pixels?|px", "litre": r"lit(?:re|er)s?",
    "degree": r"degrees?|celsius",
}  # fmt: skip
_UNIT_WORDS = {
    unit: re.compile(rf"(?<![a-z])(?:{forms})(?![a-z])", re.IGNORECASE) for unit, forms in _UNIT_FORMS.items()
}
_COMMON = frozenset(
    "a already also an and are as at be become been by can change could days for from get give go has "
    "have in instead is it its just let make may more must need not now of only or our per please raise "
    "set should so take than that the their them then they this to up use want was we will with would "
    "you".split()
)
# Parts of a name that say nothing of what it is the value of.
_SILENT = frozenset(
    "at by cm count default from hours in is kmh length level m mm most ms num number of per to value".split()
)
_AT_MOST = re.compile(
    r"\b(?:at most|most|maxim\w+|up to|max|no more than|limit\w*|allow\w*|retry|tries)\b", re.IGNORECASE
)
_MOSTS = frozenset({"max", "maximum", "limit", "most"})
_KEY, _UNIT, _PLACE, _SPELT, _UNHELD, _WAS, _MOST = 2.0, 1.0, 1.0, 4.0, 0.5, 1.5, 1.0
_ENOUGH, _CLEARLY = 2.0, 0.5
_LEAST_SAID = 0.25
_FARTHEST = 20.0
_MOST_TASK = 400


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a task sets: the new value, and the old one where it is named; `switched` = on or off."""

    new: str
    old: str = ""
    switched: bool = False

    def instead_of(self, value: str) -> str:
        """Return what stands instead of a value: a switch in the words that it has, 6000 as 6_000."""
        if not self.switched:
            return f"{int(self.new):_}" if "_" in value and self.new.isdigit() else self.new
        return next((pair[self.new == "on"] for pair in _SWITCHES if value in pair), "")

    @property
    def is_number(self) -> bool:
        """Whether it is a number, a version or a time."""
        return self.new[0].isdigit()


@dataclass(frozen=True, slots=True)
class _Place:
    line: int
    key: str
    value: str
    begin: int
    around: str
    port: bool


def wanted_value(task: str) -> Wanted | None:
    """Return the one value that a task sets; None where it names several, or asks for something else.

    Example:
        >>> wanted_value("Retry 5 times instead of 3."), wanted_value("Add 5 to the list.")
        (Wanted(new='5', old='3'), None)
        >>> wanted_value("Set the log level to debug.")
        Wanted(new='debug', old='')
    """
    if len(task) > _MOST_TASK or _OTHER_WORK.search(task):
        return None
    if not re.search(r"\d", task):
        task = _COUNT_WORD.sub(lambda word: str(_COUNTS.index(word[0].lower()) + 2), task)
    found = list(_UNIT_NUMBER.finditer(task))
    old = [_plain(m[1]) for m in found if _OLD.search(task[: m.start()]) and not _ON.match(task, m.end())]
    new = [_plain(m[1]) for m in found if _plain(m[1]) not in old]
    if (
        not old
        and len(found) == len(set(new)) == 2
        and _SENTENCE_END.search(task, found[0].end(), found[1].start())
    ):
        old, new = new[:1], new[1:]  # "It gives up after 3 tries. Let it try 5 times."
    if len(set(new)) == 1 and len(set(old)) <= 1:
        return Wanted(new[0], old[0] if old else "")
    if found or re.search(r"\d", task):
        return None
    if (switched := _SWITCHED.search(task)) is not None:
        return Wanted("on" if switched["on"] else "off", switched=True)
    word = _WORD_SET.search(task.strip())
    return Wanted(word[1] or word[2]) if word else None


def _plain(number: str) -> str:
    return number.replace(",", "").replace("_", "")


def with_value(task: str, lines: Sequence[str]) -> list[str] | None:
    """Return a file's lines with the value that a task sets; None where it is open which line is meant.

    Example:
        >>> with_value("Set the port to 90.", ["HOST = 'a'", "PORT = 80  # of the server"])
        ["HOST = 'a'", 'PORT = 90  # of the server']
    """
    found = value_set(task, lines)
    return found[1] if found else None


def value_set(task: str, lines: Sequence[str]) -> tuple[float, list[str]] | None:
    """Return what `with_value` does, and how much of the task the line holds: files are compared by it."""
    wanted = wanted_value(task)
    if wanted is None:
        return None
    words = telling(task, wanted)
    places = [place for place in _places(lines, wanted) if _fits(place, wanted, task)]
    scored = sorted(
        ((_score(place, words, task, wanted), place) for place in places), key=lambda p: p[0], reverse=True
    )
    if not scored or scored[0][0] < _ENOUGH:
        return None
    if len(scored) > 1 and scored[0][0] < scored[1][0] + _CLEARLY:
        return None
    best = scored[0][1]
    value = wanted.instead_of(best.value)
    if best.value == value or _said_elsewhere(lines, places, best, words, wanted.old):
        return None
    old = lines[best.line]
    new = old[: best.begin] + value + old[best.begin + len(best.value) :]
    return scored[0][0], [*lines[: best.line], new, *lines[best.line + 1 :]]


def telling(task: str, wanted: Wanted) -> list[str]:
    """Return the words of a task that may tell where its value belongs, units by their own name."""
    found = re.findall(r"[a-z]{2,}", parts_of(task.replace("_", " ")))
    own = wanted.new.lower()
    kept = [_unit_of(word) or word for word in found if word not in _COMMON and word != own]
    return list(dict.fromkeys(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in kept))


def is_unit(word: str) -> bool:
    """Whether a word is a unit: "5 minutes" counts no things."""
    return bool(_unit_of(word))


def _unit_of(word: str) -> str:
    return next((unit for unit, form in _UNIT_WORDS.items() if form.fullmatch(word)), "")


def _units_in(text: str) -> set[str]:
    return {unit for unit, form in _UNIT_WORDS.items() if form.search(text)}


def _places(lines: Sequence[str], wanted: Wanted) -> Iterator[_Place]:
    """Give the lines that set one simple value of the wanted kind."""
    form = _NUMBER_LINE if wanted.is_number else _WORD_LINE
    for n, line in enumerate(lines):
        found = form.match(line)
        if found is None or _STATEMENT.match(line):
            continue
        second = "2" if wanted.is_number and found["value2"] is not None else ""
        key, value = found["key" + second], found["value" + second]
        begin = found.start("value" + second)
        port = line[:begin].endswith(('":', "':", "`:"))
        yield _Place(n, key, value, begin, _around(lines, n), port)


def _around(lines: Sequence[str], at: int) -> str:
    """Return what a line stands in: the lines above that it is indented below, its section, its comment."""
    depth, found = _depth(lines[at]), list[str]()
    for line in reversed(lines[:at]):
        if line.strip() and _depth(line) < depth:
            depth = _depth(line)
            found.append(line)
        elif re.match(r"\s*\[.*\]\s*$", line) and not lines[at].lstrip().startswith("["):
            found.append(line)
            break
    above = lines[at - 1].strip() if at else ""
    if above.startswith(("#", "//", "/*", "--", ";")) and not above.startswith("#define"):
        found.append(above)
    found.extend(re.findall(r"(?:#|//|/\*).*", lines[at])[:1])
    return " ".join(found)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _fits(place: _Place, wanted: Wanted, task: str) -> bool:
    """Whether the new value may stand in a place: of its form, in its unit, not far from what it was."""
    if wanted.old and _plain(place.value) != wanted.old:
        return False
    if not wanted.is_number:
        return bool(wanted.instead_of(place.value))
    new, old = wanted.new, _plain(place.value)
    if new.count(":") != old.count(":") or (
        max(new.count("."), old.count(".")) > 1 and new.count(".") != old.count(".")
    ):
        return False
    named = _units_in(task)
    if not units_fit(_key_words(place), task):
        return False
    far = (float(new) or 1) / (float(old) or 1) / _FARTHEST > 1 if _is_amount(new, old) else False
    near = (float(new) or 1) / (float(old) or 1) * _FARTHEST < 1 if _is_amount(new, old) else False
    return not (named and (far or near))


def units_fit(key: str, task: str) -> bool:
    """Whether what a name says of its value agrees with the task; what is in cents per kilo is in cents."""
    named, own = _units_in(task), _units_in(key.partition(" per ")[0])
    if _UNTIL.search(task) and _BEGINS.search(key):
        return False  # "open until 17:00" says when it closes
    return not named or not own or bool(named & own)


def _is_amount(*values: str) -> bool:
    return all(value.count(".") <= 1 and ":" not in value for value in values)


def _score(place: _Place, words: Sequence[str], task: str, wanted: Wanted) -> float:
    key = _key_words(place)
    held = [word for word in words if holds_in(word, key)]
    if not held:
        return 0.0
    most = any(part in _MOSTS for part in key.split()) and _AT_MOST.search(task) is not None
    unheld = [
        part
        for part in key.split()
        if not any(holds_in(word, part) for word in words)
        and part not in _SILENT
        and not _unit_of(part)
        and not (most and part in _MOSTS)
    ]
    around = f"{parts_of(place.around.replace('_', ' '))} {place.around.lower()}"
    near = [word for word in words if word not in held and _holds(word, around)]
    if not wanted.old and len(held) + len(near) < _LEAST_SAID * len(words):
        return 0.0  # one word of many: the task is about something else
    name = re.sub(r"[\"'\s]", "", _name(place.key))
    telling = re.search(r"[a-z][A-Z]|[\w][_.-]\w", name) is not None
    spelt = telling and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", task) is not None
    return (
        sum(_UNIT if word in _UNIT_FORMS else _KEY for word in held)
        + _MOST * most
        + _PLACE * len(near)
        - _UNHELD * len(unheld)
        + _SPELT * spelt
        + _WAS * bool(wanted.old)
    )


def _key_words(place: _Place) -> str:
    """Return the words of the name that a place sets, in lower case; ":8080" sets a port."""
    return "port" if place.port else parts_of(re.sub(r"[_.\-\"']", " ", _name(place.key)))


def holds_in(word: str, key: str) -> bool:
    """Whether a name holds a word, or the unit that it stands for in any of its forms."""
    return bool(_UNIT_WORDS[word].search(key)) if word in _UNIT_WORDS else _holds(word, key)


def _holds(word: str, text: str) -> bool:
    """Whether a text in lower case holds a word; a short one only whole."""
    form = rf"(?<![a-z0-9]){re.escape(word)}s?(?![a-z0-9])" if len(word) < 4 else forms_of(word)
    return re.search(form, text) is not None


def _name(key: str) -> str:
    """Return the name that a line sets, without words of the language before it and its type behind it."""
    name = re.split(r":\s", key.strip() + " ")[0].strip()
    return re.sub(r"^\s*#\s*define\s+", "", name).split()[-1] if name.split() else ""


def _said_elsewhere(
    lines: Sequence[str], places: Sequence[_Place], best: _Place, words: Sequence[str], old: str
) -> bool:
    """Whether a line that is no such place holds as much of the task: it may be the one that is meant."""
    own = f"{parts_of(lines[best.line].replace('_', ' '))} {parts_of(best.around)} {best.around.lower()}"
    most = sum(_holds(word, own) for word in words)
    taken, name = {place.line for place in places}, _name(best.key).strip("\"'")
    form = re.compile(rf"(?<![\w.]){re.escape(old)}(?![\w.])" if old else r"(?<![\w.])\d")
    for n, line in enumerate(lines):
        if n in taken or not form.search(line) or name in line or line.lstrip().startswith(("#", "//", "*")):
            continue
        text = parts_of(line.replace("_", " "))
        if sum(_holds(word, text) for word in words) >= most:
            return True
    return False
