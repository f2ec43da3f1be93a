"""An answer tidied for people: no polite opening, no gaps (PR-37).

Here: `clean_response`. Not here: what an answer means.
"""

import re

_MOST_OPENINGS = 3
_AGREEING = (
    "sure|sure thing|certainly|of course|absolutely|definitely|gladly|okay|ok|alright|great|perfect"
    "|no problem|great question|good question|happy to help|glad to help"
    "|i(?:'|’)?d be happy to (?:help|assist)|i would be happy to (?:help|assist)"
    "|i(?:'|’)?m happy to help|i am happy to help|i can help|i(?:'|’)?ll help|let me help"
    "|thank you for (?:your question|asking|sharing)|thanks for (?:your question|asking|sharing)"
)
_TAIL = "(?: you)?(?: out)?(?: with (?:that|this))?"
_OPENING = re.compile(
    rf"(?:{_AGREEING}){_TAIL}(?:, (?:{_AGREEING}){_TAIL})?[.!](?=\s|$)\s*"
    r"|here(?:'|’)?s?(?: is| are)? (?:the|your|an?|some|what)\b[^.!?:\n]{0,120}:[ \t]*\n\s*",
    re.IGNORECASE,
)
_GAP = re.compile(r"\n(?:[ \t]*\n){2,}")
_FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)


def clean_response(text: str) -> str:
    """Return `text` trimmed, without a polite opening, with one empty line at most outside of code.

    An opening goes only as a whole sentence, or as a line "Here is …:"; an answer of nothing else stays.

    Example:
        >>> clean_response("Sure! Here is the answer:\\n\\n42\\n\\n\\n\\nDone.")
        '42\\n\\nDone.'
    """
    clean = _without_gaps(text.strip()).strip()
    for _ in range(_MOST_OPENINGS):
        match = _OPENING.match(clean)
        if match is None or match.end() >= len(clean):
            break
        clean = clean[match.end() :]
    return clean


def _without_gaps(text: str) -> str:
    """Return `text` with gaps closed outside of fences; inside, every line stays."""
    parts: list[str] = []
    at = 0
    while (opening := _FENCED.search(text, at)) is not None:
        parts.append(_GAP.sub("\n\n", text[at : opening.start()]))
        mark = opening[1]
        closing = re.compile(rf"^ {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$", re.MULTILINE)
        line_end = text.find("\n", opening.end())
        closed = closing.search(text, line_end) if line_end != -1 else None
        at_end = closed.end() if closed is not None else len(text)
        parts.append(text[opening.start() : at_end])
        at = at_end
    parts.append(_GAP.sub("\n\n", text[at:]))
    return "".join(parts)
