"""What a terminal would show of a program's output, as plain text (SB-17). Pure.

Here: taking control sequences away and keeping the last state of lines that were drawn over. Not here:
limits, where output comes from.
"""

import re

_SEQUENCES = re.compile(
    r"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def plain(text: str) -> str:
    r"""Return `text` without ANSI and OSC sequences; of a progress line only its last state.

    >>> plain("\x1b[31mred\x1b[0m 10%\r20%\rdone\n")
    'done\n'
    """
    if "\x1b" in text:
        text = _SEQUENCES.sub("", text)
    if "\b" in text:
        text = _rubbed_out(text)
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.replace("\r\n", "\n").split("\n"))
    return _CONTROLS.sub("", text)


def _rubbed_out(text: str) -> str:
    """Return `text` with each backspace and the character before it, on the same line, taken away."""
    kept: list[str] = []
    for part in re.split("(\\x08+|\\n)", text):
        if not part.startswith("\b"):
            kept += [part] if part else []
            continue
        left = len(part)
        while left and kept and kept[-1] != "\n":
            last = kept.pop()
            if len(last) > left:
                kept.append(last[:-left])
            left -= min(left, len(last))
    return "".join(kept)


def _last_state(line: str) -> str:
    states = [state for state in line.split("\r") if state.strip()]
    return states[-1] if states else ""
