"""The search that stands in for ripgrep, as a program that can be killed (WS-33).

Here: reads one JSON job from stdin, prints counts or line numbers in ripgrep's form.
Not here: any import of ours; it is run by path, in isolated mode.

Python's `re` may need exponential time; that is why it runs in a process of its own.
"""

import base64
import codecs
import json
import os
import re
import sys


def main() -> None:
    """Search the files of the job in order."""
    job = json.load(sys.stdin)
    flags = 0 if job["case_sensitive"] else re.IGNORECASE
    text = re.escape(job["pattern"]) if job["fixed"] else job["pattern"]
    try:
        pattern = re.compile(text, flags)
    except (re.error, RecursionError, OverflowError) as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    out = sys.stdout.buffer
    for encoded in job["files"]:
        name = base64.b64decode(encoded)
        numbers = [n for n, line in enumerate(lines(name), 1) if pattern.search(line)]
        if job["numbers"]:
            shown = numbers[: job["most"] or None]
            out.writelines(b"%s\0%d:\n" % (name, number) for number in shown)
        elif numbers:
            out.write(b"%s\0%d\n" % (name, len(numbers)))
        out.flush()


def lines(name: bytes) -> list[str]:
    """Return the lines of a file as `read_file` shows them; none when it cannot be read."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    with open(fd, "rb") as file:  # noqa: PTH123  # a descriptor, not a path
        data = file.read()
    codec = "utf-8"
    for bom, wide in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(bom):
            data, codec = data[len(bom) :], wide
    text = data.removeprefix(codecs.BOM_UTF8).decode(codec, "replace")
    found = [line.removesuffix("\r") for line in text.split("\n")]
    return found[:-1] if found[-1] == "" else found


if __name__ == "__main__":
    main()
