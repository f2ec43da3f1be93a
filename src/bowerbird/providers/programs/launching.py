"""A vendor's data and one request made into what is started: words, standard input, variables, files. Pure.

Here: putting values in, the rules that keep a prompt from becoming an option (PR-16), the allow-list of
variables (PR-15). Not here: the data (`vendors`), starting anything (`program`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bowerbird.core.errors import InvalidArgument
from bowerbird.providers.programs.vendors import MODE, Vendor, Word

LONGEST_ARGUMENT = 131_000
_NAME = re.compile(r"\{([a-z_]+)\}")
_ALLOWED = ("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "PWD")
_ALLOWED_FAMILIES = ("LC_", "GIT_CONFIG_", "GIT_DISCOVERY_")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")

# Writes the files that a vendor wants into the private home, where nobody else reads them, then becomes
# the program. It runs inside: a link that an earlier run left in the home leads nowhere outside.
SCRIPT = (
    'umask 077; while [ "$1" != -- ]; do mkdir -p "${1%/*}" && printf %s "$2" > "$1" || exit 125; '
    "shift 2; done; "
    'shift; umask 022; exec "$@"'
)


@dataclass(frozen=True, slots=True)
class Launch:
    """What is started.

    Attributes:
        argv: the program and its words. stdin: what it reads there; None = nothing.
        env: all of its variables. files: absolute path inside → text.
    """

    argv: tuple[str, ...]
    stdin: bytes | None
    env: Mapping[str, str] = field(repr=False)
    files: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def words(self) -> list[str]:
        """The whole command line, with what writes the files before it."""
        given = [word for path, text in self.files.items() for word in (path, text)]
        return ["/bin/sh", "-c", SCRIPT, "agent", *given, "--", *self.argv]


def launch(
    vendor: Vendor,
    program: tuple[str, ...],
    prompt: str,
    values: Mapping[str, str | None],
    env: Mapping[str, str],
) -> Launch:
    """Return what runs a prompt headless.

    Args:
        program: found program with its arguments.
        values: of the names in braces; `session` when an earlier session goes on.
        env: the sandbox's own variables, and below them those that settings name.

    Raises:
        InvalidArgument: the prompt is longer than an argument can be and the program takes it there only.
    """
    template = vendor.resume if values.get("session") and vendor.resume else vendor.fresh
    given: dict[str, str | None] = dict(values)
    if vendor.prompt == "argument":
        size = len(prompt.encode("utf-8", "surrogatepass"))
        if size > LONGEST_ARGUMENT:
            raise InvalidArgument(
                f"the prompt has {size:,} bytes; this program takes it as an argument, which may have "
                f"{LONGEST_ARGUMENT:,}: put long material in a file of the workspace"
            )
        # Where nothing marks the end of options, a line break does: no option begins with one.
        given["prompt"] = "\n" + prompt if prompt.startswith("-") else prompt
    stdin = prompt.encode("utf-8", "replace") if vendor.prompt == "stdin" else None
    argv = (*program, *filled(_with_mode(vendor, template, values), given))
    return Launch(argv, stdin, {**env, **_values(vendor.env, given)}, _files(vendor, given))


def acp_launch(
    vendor: Vendor, program: tuple[str, ...], values: Mapping[str, str | None], env: Mapping[str, str]
) -> Launch:
    """Return what starts a program for ACP; the prompt goes over the protocol."""
    own = {**vendor.env, **vendor.acp_env}
    return Launch(program, b"", {**env, **_values(own, values)}, _files(vendor, values))


def _with_mode(vendor: Vendor, template: Iterable[Word], values: Mapping[str, str | None]) -> Iterator[Word]:
    """Yield a template's words with what the program may do unasked in their place (PR-21)."""
    chosen = vendor.free if values.get("free") else vendor.bound
    if vendor.mode and values.get("permission_mode"):
        chosen = vendor.mode
    for word in template:
        yield from chosen if word == MODE else (word,)


def filled(words: Iterable[Word], values: Mapping[str, str | None]) -> list[str]:
    """Return words with values put in; a group in which a name has none is left out.

    Example:
        >>> filled(("run", ("-m", "{model}"), "-"), {"model": None})
        ['run', '-']
    """
    found: list[str] = []
    for word in words:
        group = [fill(each, values) for each in ((word,) if isinstance(word, str) else word)]
        if all(each is not None for each in group):
            found += [each for each in group if each is not None]
    return found


def fill(text: str, values: Mapping[str, str | None]) -> str | None:
    """Return a text with values in place of names; None where one of them has no value."""
    names = _NAME.findall(text)
    if any(values.get(name) is None for name in names):
        return None
    return _NAME.sub(lambda match: values.get(match[1]) or "", text)


def _values(env: Mapping[str, str], values: Mapping[str, str | None]) -> dict[str, str]:
    made = {name: fill(text, values) for name, text in env.items()}
    return {name: text for name, text in made.items() if text is not None}


def _files(vendor: Vendor, values: Mapping[str, str | None]) -> dict[str, str]:
    made = {f"{values['home']}/{path}": fill(text, values) for path, text in vendor.files.items()}
    return {path: text for path, text in made.items() if text is not None}


def base_environment(sandbox: Mapping[str, str], home: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the allow-listed variables of a run (PR-15), with those that settings name.

    Args:
        sandbox: those of any command on the branch.
    """
    kept = {
        name: value
        for name, value in sandbox.items()
        if name in _ALLOWED or name.upper() in _PROXIES or name.startswith(_ALLOWED_FAMILIES)
    }
    return {**kept, "HOME": home, "TERM": "dumb", "NO_COLOR": "1", **settings}
