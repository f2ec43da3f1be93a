"""Whether the patterns of a server's schemas can be read, found out where it can be stopped (PT-19, TO-52).

Here: the process that reads them, which is this file run as a program. Not here: all else that makes a
schema unfit (`schemas.py`), patterns applied to arguments (`models/answers/bounded_fitting.py`).

A pattern of twenty characters, `(?:a{1,1000}){1,60}`, takes a tenth of a second, and a server has thousands.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

DEADLINE_S = 3.0  # for all schemas of a server together
MEMORY_BYTES = 1 << 30
TOO_LONG = "its patterns take too long to read"
_KEYS = ('"pattern":', '"patternProperties":')


async def pattern_problems(schemas: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """Return for each schema why its patterns cannot be used, None where they can."""
    from bowerbird.core.processes.bounded_child import answer_of_child

    texts = [json.dumps(schema) for schema in schemas]
    asked = [at for at, text in enumerate(texts) if any(key in text for key in _KEYS)]
    problems: list[str | None] = [None] * len(texts)
    if not asked:
        return problems
    job = f"[{','.join(texts[at] for at in asked)}]".encode()
    try:
        said = await answer_of_child([__file__], job, deadline_s=DEADLINE_S, memory_bytes=MEMORY_BYTES)
    except TimeoutError:
        said = None
    found: list[str | None] = [TOO_LONG] * len(asked) if said is None else json.loads(said)
    for at, problem in zip(asked, found, strict=True):
        problems[at] = problem
    return problems


def main() -> None:
    """Read schemas from standard input, and say of each what is wrong with it."""
    import jsonschema_rs

    said: list[str | None] = []
    for schema in json.load(sys.stdin):
        try:
            jsonschema_rs.validator_for(schema, offline=True)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            lines = str(error).strip().splitlines()
            said.append(f"it is not a JSON Schema: {lines[0][:200] if lines else type(error).__name__}")
        else:
            said.append(None)
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main()
