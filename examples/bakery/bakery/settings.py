"""Settings from `settings.toml` at the root of the project."""

import tomllib
from dataclasses import dataclass
from datetime import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Settings:
    """What the owner can change without touching the program."""

    name: str
    currency: str
    open_days: tuple[str, ...]
    opens: time
    closes: time
    data: dict[str, Path]


def load_settings(path: Path = ROOT / "settings.toml") -> Settings:
    """Read settings; paths of data files are relative to the settings file."""
    with path.open("rb") as file:
        raw = tomllib.load(file)
    opening = raw["opening"]
    return Settings(
        name=raw["bakery"]["name"],
        currency=raw["bakery"]["currency"],
        open_days=tuple(opening["days"]),
        opens=time.fromisoformat(opening["from"]),
        closes=time.fromisoformat(opening["until"]),
        data={name: path.parent / file for name, file in raw["data"].items()},
    )
