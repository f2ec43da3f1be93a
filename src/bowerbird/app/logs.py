"""The log of a server: one line per event on standard error, secrets masked (CF-62, CF-79).

Here: that one handler. Not here: what is logged.
"""

import json
import logging
import sys
from collections.abc import Collection

from bowerbird.core.timestamps import now_iso
from bowerbird.models.redact import Redactor


class _Masked(logging.Formatter):
    """Formats records; configured secrets never leave."""

    def __init__(self, secrets: Collection[str], *, as_json: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._redactor = Redactor(tuple(secrets))
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        if not self._as_json:
            return self._redactor.text(super().format(record))
        line = {
            "at": now_iso(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return self._redactor.text(json.dumps(line, ensure_ascii=False))


def log_to_stderr(level: str, form: str, secrets: Collection[str]) -> None:
    """Send the log of this process to standard error.

    Args:
        level: least level written. form: `text` or `json`. secrets: masked wherever they appear.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Masked(secrets, as_json=form == "json"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # Access lines hold queries; warnings of the HTTP machinery are enough.
    for name in (
        "uvicorn",
        "uvicorn.error",
        "uvicorn.access",
        "httpx",
        "httpcore",
        "httpx2",
        "httpcore2",
        "alembic",
    ):
        logging.getLogger(name).setLevel(logging.WARNING)
