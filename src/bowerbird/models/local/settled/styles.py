"""How something looks: the colour, weight or alignment of what a task names, set in a style sheet.

Here: which rule of the sheet and which of its properties are meant, the lines with the new value; pure. Not
here: sizes and other numbers that stand beside their name (`values.py`), pages (`rewrite.py`).

The names of colours are those of CSS Color Module Level 4, section 6.1.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bowerbird.models.local.task_words import forms_of

SHEETS = (".css", ".scss", ".less")
_COLOURS = frozenset(
    """
    aliceblue antiquewhite aqua aquamarine azure beige bisque black blanchedalmond blue blueviolet
    brown burlywood cadetblue chartreuse chocolate coral cornflowerblue cornsilk crimson cyan
    darkblue darkcyan darkgoldenrod darkgray darkgreen darkkhaki darkmagenta darkolivegreen
    darkorange darkorchid darkred darksalmon darkseagreen darkslateblue darkslategray darkturquoise
    darkviolet deeppink deepskyblue dimgray dodgerblue firebrick floralwhite forestgreen fuchsia
    gainsboro ghostwhite gold goldenrod gray green greenyellow honeydew hotpink indianred indigo
    ivory khaki lavender lavenderblush lawngreen lemonchiffon lightblue lightcoral lightcyan
    lightgoldenrodyellow lightgray lightgreen lightpink lightsalmon lightseagreen lightskyblue
    lightslategray lightsteelblue lightyellow lime limegreen linen magenta maroon mediumaquamarine
    mediumblue mediumorchid mediumpurple mediumseagreen mediumslateblue mediumspringgreen
    mediumturquoise mediumvioletred midnightblue mintcream mistyrose moccasin navajowhite navy
    oldlace olive olivedrab orange orangered orchid palegoldenrod palegreen paleturquoise
    palevioletred papayawhip peachpuff peru pink plum powderblue purple rebeccapurple red rosybrown
    royalblue saddlebrown salmon sandybrown seagreen seashell sienna silver skyblue slateblue
    slategray snow springgreen steelblue tan teal thistle tomato turquoise violet wheat white
    whitesmoke yellow yellowgreen darkgrey darkslategrey dimgrey grey lightgrey lightslategrey
    slategrey
    """.split()
)
_SHADES = ("dark", "light", "medium", "deep", "pale")
_HEX = re.compile(r"(?<![\w#])#(?:[0-9a-f]{3}|[0-9a-f]{6})\b", re.IGNORECASE)
_SETS = re.compile(
    r"^(?:please |now |could you |can you |would you )*(?:make|set|change|turn|colou?r|paint|let|give|use|"
    r"underline|cent(?:re|er)|show|put|write|print)\b|\b(?:should|must|shall)\b",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:add|remove|delete|hover|visited|every|all|both|except|darker|lighter|bigger|smaller|gradient|"
    r"dark mode|theme|variable|class|borders?|outline|shadows?|fill|stroke|icons?)\b|\d(?:px|em|rem|%)",
    re.IGNORECASE,
)
_WEIGHTS = {
    r"bold": ("font-weight", "bold"), r"italics?": ("font-style", "italic"),
    r"underlined?": ("text-decoration", "underline"), r"(?:cent(?:re|er)(?:e?d)?)": ("text-align", "center"),
}  # fmt: skip
_ELEMENTS = {
    "heading": ("h1",), "headline": ("h1",), "title": ("h1",), "subheading": ("h2",), "link": ("a",),
    "paragraph": ("p",), "page": ("body",), "picture": ("img",), "image": ("img",), "button": ("button",),
    "menu": ("nav",), "navigation": ("nav",), "foot": ("footer",), "quote": ("blockquote",),
    "table": ("table",), "list": ("ul",), "text": ("body",), "letter": ("body",),
}  # fmt: skip
_RULE = re.compile(r"^(?P<selector>[^@{}/]+?)\s*\{\s*$")
_OLD = re.compile(r"\b(?:not|instead of|rather than|from)\s+(?:in )?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Rule:
    selector: str
    begin: int
    end: int


def with_style(task: str, path: str, lines: Sequence[str]) -> list[str] | None:
    """Return a style sheet's lines with the look that a task asks for; None where it is open whose rule.

    Example:
        >>> with_style("Make the links red.", "a.css", ["a {", "  color: blue;", "}"])
        ['a {', '  color: red;', '}']
    """
    wanted = wanted_style(task) if path.lower().endswith(SHEETS) else None
    if wanted is None:
        return None
    name, value, words = wanted
    ranked = sorted(
        (rank, rule.begin, rule) for rule in _rules(lines) if (rank := _rank(rule.selector, words))
    )
    if not ranked or (len(ranked) > 1 and ranked[0][0] == ranked[1][0]):
        return None
    rule = ranked[0][2]
    if (name, rule.selector) == ("color", "body") and not {"text", "letters", "font"} & set(words):
        return None  # a grey page has a grey background
    for at in range(rule.begin + 1, rule.end):
        held = re.match(rf"^(\s*{name}(?:-color)?\s*:\s*)([^;]+?)(\s*;?\s*)$", lines[at])
        if held is not None:
            if len(held[2].split()) > 1 or held[2] == value:
                return None
            return [*lines[:at], f"{held[1]}{value}{held[3]}", *lines[at + 1 :]]
    depth = re.match(r"\s*", lines[rule.begin + 1] if rule.begin + 1 < rule.end else "  ")
    new = f"{(depth[0] if depth else '') or '  '}{name}: {value};"
    return [*lines[: rule.end], new, *lines[rule.end :]]


def wanted_style(task: str) -> tuple[str, str, list[str]] | None:
    """Return the property that a task sets, its value, and the task's other words; None where it sets none.

    Example:
        >>> wanted_style("Make the heading dark red.")[:2]
        ('color', 'darkred')
    """
    if len(task) > 200 or not _SETS.search(task) or _NOT.search(task):
        return None
    said = re.sub(rf"\b({'|'.join(_SHADES)})[ -](?=[a-z])", r"\1", task.lower())
    named = [(m[0], m.start()) for m in re.finditer(r"[a-z]+", said) if m[0] in _COLOURS]
    named += [(m[0], m.start()) for m in _HEX.finditer(said)]
    new = [colour for colour, at in named if not _OLD.search(said[:at])]
    looks = [pair for form, pair in _WEIGHTS.items() if re.search(rf"\b{form}\b", said)]
    words = [word for word in re.findall(r"[a-z][a-z-]+", said) if word not in _COLOURS]
    if len(new) == 1 and not looks:
        back = "background" in words
        return (
            "background" if back else "color",
            new[0],
            [word for word in words if not back or word != "background"],
        )
    return (*looks[0], words) if len(looks) == 1 and not named else None


def _rules(lines: Sequence[str]) -> Iterator[_Rule]:
    """Give the rules that have a line for each of their parts."""
    for n, line in enumerate(lines):
        found = _RULE.match(line)
        end = next((m for m in range(n + 1, len(lines)) if "}" in lines[m] or "{" in lines[m]), None)
        if found is not None and end is not None and lines[end].strip() == "}":
            yield _Rule(found["selector"].strip(), n, end)


def _rank(selector: str, words: Sequence[str]) -> tuple[int, int] | None:
    """Return how well a task names what a rule is about, the less the better; None where it does not.

    "The links of the menu" are `#menu a` before `#menu`, "the heading of the page" is `h1` before `body`.
    """
    if "," in selector or ":" in selector:
        return None
    named = [_named_at(part, words) for part in re.findall(r"[.#]?[\w-]+", selector.lower())]
    if not named or None in named:
        return None
    return -len(named), named[-1] or 0


def _named_at(part: str, words: Sequence[str]) -> int | None:
    """Return which word names an element, or the first part of a class or an id whose parts are all named."""
    if part[:1] in ".#":
        own = [rf"{forms_of(piece)}\w{{0,3}}" for piece in re.split(r"[-_]+", part[1:])]
        found = [next((n for n, word in enumerate(words) if re.fullmatch(form, word)), None) for form in own]
        return None if None in found else found[0]
    for n, word in enumerate(words):
        if part in (word, *_ELEMENTS.get(word, ()), *_ELEMENTS.get(word.removesuffix("s"), ())):
            return n
    return None
