"""An assistant's whole day against a fake Telegram, as a transcript that people can read (issue 15, must show 1).

    python benchmarks/assistant_day.py [--to FILE]

Real `bowerbird serve` processes, a real host gateway, a transcription service: a stranger, pairing, a list that is
reviewed, landed and taken back, a photo, a voice message, a question, a task whose time comes while the server is
down, memory and skills, a reset, and kill -9 in the middle of an answer. Exit code 0 only when each step went so.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.chat_story import Line, play_day, readable


async def _quiet(name: str, lines: list[Line]) -> None:
    del name, lines


def main() -> int:
    """Play it and print the chat."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--to", type=Path, help="a file that takes the transcript, too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        lines = asyncio.run(play_day(Path(directory), _quiet))
    transcript = readable(lines)
    print(transcript)
    if given.to is not None:
        given.to.write_text(f"{transcript}\n", encoding="utf-8")
    print(f"\nthe day went as it should: {len(lines)} messages and events in {lines[-1].at:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
