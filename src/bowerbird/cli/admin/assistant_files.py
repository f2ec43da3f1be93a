"""The files of a directory that `bowerbird init` makes for a server or an assistant (AS-64). Pure.

Here: what is in them. Not here: asking, writing (`init.py`), what the settings mean.
"""

import msgspec

from bowerbird.core.model_presets import PRESETS

PRIVATE, READABLE = 0o600, 0o644


class Answers(msgspec.Struct, frozen=True):
    """What was asked.

    Attributes:
        provider: of models. key: its key, "" = to be filled in.
        bot_token: of a Telegram bot; None = no chat channel, "" = to be filled in.
        timezone: of schedules. host_token: of the example bridge.
    """

    provider: str
    key: str = ""
    bot_token: str | None = None
    timezone: str = "UTC"
    host_token: str = ""


class NewFile(msgspec.Struct, frozen=True):
    """One file; `path` relative to the directory, a directory where `text` is None."""

    path: str
    text: str | None
    mode: int = READABLE


def files_of(answers: Answers) -> tuple[NewFile, ...]:
    """Return the files, in the order in which they are written."""
    return (
        NewFile("config.yaml", _config(answers), PRIVATE),
        NewFile(".env", _variables(answers), PRIVATE),
        NewFile(".gitignore", "/.env\n/data/\n/config.local.yaml\n"),
        NewFile("workspace/IDENTITY.md", _IDENTITY),
        NewFile("workspace/AGENT.md", _AGENT),
        NewFile("workspace/MEMORY.md", _MEMORY),
        NewFile("workspace/skills", None),
    )


def _config(answers: Answers) -> str:
    channels = ""
    if answers.bot_token is not None:
        channels = _TELEGRAM
    return _CONFIG.format(
        provider=answers.provider, timezone=answers.timezone, channels=channels,
        model="" if answers.provider == "anthropic" else _MODEL,
    )  # fmt: skip


def _variables(answers: Answers) -> str:
    preset = PRESETS.get(answers.provider)
    lines = ["# Secrets of this directory; only you can read this file. config.yaml names them as ${NAME}."]
    if preset is not None and preset.key_variable is not None:
        lines.append(f"{preset.key_variable}={answers.key}")
    if answers.bot_token is not None:
        lines.append(f"TELEGRAM_BOT_TOKEN={answers.bot_token}")
    lines += ["# Made for the bridge in config.yaml; the gateway on the host needs the same.",
              f"HOST_TOKEN={answers.host_token}"]  # fmt: skip
    return "\n".join(lines) + "\n"


_CONFIG = """\
# Settings of `bowerbird serve` in this directory. All keys: `bowerbird config show`, `config explain KEY`.
agent:
  workspace: workspace
  data_dir: ./data

provider:
  name: {provider}
{model}{channels}
scheduler:
  enabled: true
  timezone: {timezone}

# Commands of the host for the agent; see `bowerbird gateway --help`.
gateway:
  enabled: false
  bridges:
    host:
      token: ${{HOST_TOKEN}}
      allowed_commands: [date]
"""

_MODEL = "  # model: …        # which model; the default is one of Anthropic's\n"

_TELEGRAM = """\

channels:
  telegram:
    enabled: true
    token: ${TELEGRAM_BOT_TOKEN}
    allowed_users: []          # nobody yet: `bowerbird channels pair telegram`
"""

_IDENTITY = """\
# Who you are

Your name is Bowerbird. You are a friendly, brief and honest assistant.
"""

_AGENT = """\
# What you do

- You work on a branch of this directory. Nothing changes in it before your user lands it.
- Say what you changed.
- Keep what your user wants remembered in MEMORY.md, one fact a line.
- Ask when a request can mean two things that differ.
"""

_MEMORY = """\
# What you know of your user
"""
