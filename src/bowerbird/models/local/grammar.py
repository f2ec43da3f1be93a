"""What a step of a small model may be: a grammar for the engine, and the reading of its text.

Here: pure values. A step is one JSON object, `{"tool": "<name>", "<field>": …}`, with a note before
the tool once there are results: `{"seen": "…", "tool": …}`. A `StepGrammar` lists every object that is
allowed now, writes itself as the engine's grammar, and reads a text back. Not here: which steps are
allowed when (`choices.py`), the engine.

The engine silently ignores a grammar it cannot compile, so every text is read strictly here:
what the grammar would not have let through is no step.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

HEADER = "%llguidance {}\n"
SOME_TEXT = HEADER + r"start: /[^\s](.|\n)*/" + "\n"
"""Any text but none: where a model of this size is to answer without tools, it may end before it begins."""

_BAD = r'"\\\x00-\x1f\x7f-\x9f'
_SAFE_TEXT = re.compile(r"[^\x00-\x1f\x7f-\x9f]*")


@dataclass(frozen=True, slots=True)
class OneOf:
    """A string that is one of `values`."""

    values: tuple[str, ...]

    def accepts(self, value: object) -> bool:
        """Whether `value` is allowed."""
        return isinstance(value, str) and value in self.values


@dataclass(frozen=True, slots=True)
class Free:
    """A short string of the model's own.

    Attributes:
        max_chars: most characters.
        excluded: strings it may not be.
        signs: the inside of a character class it is made of; empty = anything but control characters.
    """

    max_chars: int
    excluded: tuple[str, ...] = ()
    signs: str = ""

    def accepts(self, value: object) -> bool:
        """Whether `value` is allowed."""
        return (
            isinstance(value, str)
            and 0 < len(value) <= self.max_chars
            and not value[0].isspace()
            and value not in self.excluded
            and (not self.signs or re.fullmatch(f"[{self.signs}]+", value) is not None)
        )


@dataclass(frozen=True, slots=True)
class Input:
    """An object that fits the JSON Schema of a tool of someone's own."""

    schema: Mapping[str, Any] = field(hash=False)

    def accepts(self, value: object) -> bool:
        """Whether `value` is an object; its schema is checked where the tool runs."""
        return isinstance(value, dict)


Field = OneOf | Free | Input
SEEN = "seen"
_NOTE = Free(100)


@dataclass(frozen=True, slots=True)
class Option:
    """One form a step may have: the tool and its fields in order."""

    tool: str
    fields: tuple[tuple[str, Field], ...] = ()

    def accepts(self, step: Mapping[str, Any]) -> bool:
        """Whether `step` has exactly this form."""
        names = ("tool", *(name for name, _ in self.fields))
        return (
            tuple(step) == names
            and step["tool"] == self.tool
            and all(kind.accepts(step[name]) for name, kind in self.fields)
        )


@dataclass(frozen=True, slots=True)
class StepGrammar:
    """Every form the next step may have; at least one.

    Attributes:
        options: the forms.
        noted: each begins with what the results show; deciding after saying that, a small model
            takes the right step far more often.

    Example:
        >>> grammar = StepGrammar((Option("read_file", (("path", OneOf(("a.py",))),)),))
        >>> grammar.read('{"tool": "read_file", "path": "a.py"}')
        {'tool': 'read_file', 'path': 'a.py'}
        >>> grammar.read('{"tool": "read_file", "path": "b.py"}') is None
        True
    """

    options: tuple[Option, ...]
    noted: bool = False

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that may be called, each once."""
        return tuple(dict.fromkeys(option.tool for option in self.options))

    def without(self, tool: str) -> "StepGrammar":
        """Return the grammar without the forms of `tool`, or itself if nothing else would be left."""
        rest = tuple(option for option in self.options if option.tool != tool)
        return replace(self, options=rest) if rest else self

    def read(self, text: str) -> dict[str, Any] | None:
        """Return the step that `text` is, or None when it is none of the allowed ones."""
        try:
            step: Any = json.loads(text)
        except ValueError:
            return None
        if not isinstance(step, dict):
            return None
        found = cast("dict[str, Any]", step)
        rest = {key: value for key, value in found.items() if key != SEEN}
        if self.noted != (next(iter(found), "") == SEEN) or (self.noted and not _NOTE.accepts(found[SEEN])):
            return None
        return found if any(option.accepts(rest) for option in self.options) else None

    def lark(self) -> str:
        """Return the grammar in the engine's notation."""
        rules = [f"start: {' | '.join(f'o{n}' for n in range(len(self.options)))}"]
        for n, option in enumerate(self.options):
            begin = f'"tool": {json.dumps(option.tool)}'
            parts = [_literal(f'{{"{SEEN}": '), "NOTE", _literal(f", {begin}")] if self.noted else []
            parts = parts or [_literal(f"{{{begin}")]
            for m, (name, kind) in enumerate(option.fields):
                symbol = f"{'j' if isinstance(kind, Input) else 'F'}{n}_{m}"
                parts += [_literal(f", {json.dumps(name)}: "), symbol]
                rules += _field_rules(symbol, kind)
            rules.append(f"o{n}: {' '.join([*parts, _literal('}')])}")
        if self.noted:
            rules += _field_rules("NOTE", _NOTE)
        return HEADER + "\n".join(rules) + "\n"


def schema_grammar(schema: Mapping[str, Any]) -> str:
    """Return the engine's grammar for any JSON Schema, for a structured answer."""
    return f"{HEADER}start: %json {json.dumps(_compact(schema))}\n"


def fence_grammar(opening: str) -> str:
    """Return a grammar for one fenced block and nothing after it.

    Args:
        opening: the first line, say three backticks and `python`; its backticks close the block too.

    Example:
        >>> fence_grammar("```").splitlines()[1]
        'start: "```\\\\n" FIRST ("\\\\n" LINE)* "\\\\n```"'
    """
    begin, end = _literal(f"{opening}\n"), _literal("\n" + "`" * _backticks(opening))
    # The body does not begin empty, and no line of it closes the block.
    rules = (r"LINE: /([^`\n][^\n]*)?/", r"FIRST: /[^`\n][^\n]*/")
    return HEADER + "\n".join((rf'start: {begin} FIRST ("\n" LINE)* {end}', *rules)) + "\n"


def read_fence(text: str, opening: str) -> str | None:
    """Return what stands in the fenced block, or None when it was not closed."""
    begin, end = opening + "\n", "\n" + "`" * _backticks(opening)
    if not text.startswith(begin) or not text.endswith(end) or len(text) < len(begin) + len(end):
        return None
    return text[len(begin) : -len(end)]


def as_step(tool: str, **fields: object) -> str:
    """Return the text of a step without note, byte for byte as the grammar would have it written."""
    return json.dumps({"tool": tool, **fields}, ensure_ascii=False)


def noted_step(seen: str, tool: str, **fields: object) -> str:
    """Return the text of a step that begins with what was seen."""
    return json.dumps({SEEN: seen, "tool": tool, **fields}, ensure_ascii=False)


def _backticks(opening: str) -> int:
    return len(opening) - len(opening.lstrip("`"))


def _field_rules(symbol: str, kind: Field) -> list[str]:
    if isinstance(kind, OneOf):
        values = " | ".join(_literal(json.dumps(value, ensure_ascii=False)) for value in kind.values)
        return [f"{symbol}: {values}"]
    if isinstance(kind, Input):
        return [f"{symbol}: %json {json.dumps(_compact(kind.schema))}"]
    some = rf'/"[^{_BAD}\s]([^{_BAD}]|\\["\\nt]){{0,{kind.max_chars - 1}}}"/'
    if kind.signs:
        some = f'/"[{kind.signs.replace("/", chr(92) + "/")}]{{1,{kind.max_chars}}}"/'
    banned = [v for v in kind.excluded if _SAFE_TEXT.fullmatch(v)]
    if not banned:
        return [f"{symbol}: {some}"]
    none_of = " | ".join(_literal(json.dumps(value, ensure_ascii=False)) for value in banned)
    return [f"{symbol}: S{symbol} & ~X{symbol}", f"S{symbol}: {some}", f"X{symbol}: {none_of}"]


def _compact(schema: Mapping[str, Any]) -> dict[str, Any]:
    form = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
    return {"x-guidance": form, **schema}


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
