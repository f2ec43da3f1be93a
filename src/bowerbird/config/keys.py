"""The settings tree described as data: which keys exist, and what is known of each.

Here: the description (`KeyInfo`), how it is derived from the `Section` classes, look-ups
by path and by environment name, nearest names. Not here: values of keys, their sources.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import msgspec
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from bowerbird.config.fields import Secret, Section, Url, is_secret_name
from bowerbird.core.model_presets import PRESETS

Path = tuple[str, ...]
Kind = Literal["int", "float", "bool", "text", "choice", "list", "secret", "url", "any"]
STRICT_SECTIONS = frozenset(
    {
        "server",
        "channels",
        "sandbox",
        "approval",
        "budgets",
        "providers",
        "mcp_servers",
        "gateway",
    }
)
ANY_NAME = "*"
PREFIX = "BOWERBIRD_"
OTHER_NAMES = frozenset({"BOWERBIRD_CONFIG", "BOWERBIRD_URL", "BOWERBIRD_TOKEN", "BOWERBIRD_DEBUG"})
# Variables of model providers and agents; entries are open, so these are no rows of the tree.
PROVIDER_VARIABLES: Mapping[str, Path] = {
    **{p.key_variable: ("providers", p.name, "api_key") for p in PRESETS.values() if p.key_variable},
    "ANTHROPIC_BASE_URL": ("providers", "anthropic", "base_url"),
    "OPENAI_BASE_URL": ("providers", "openai", "base_url"),
    "DEEPSEEK_BASE_URL": ("providers", "deepseek", "base_url"),
    "DASHSCOPE_API_KEY": ("providers", "qwen", "api_key"),
    "QWEN_API_KEY": ("providers", "qwen", "api_key"),
    "QWEN_BASE_URL": ("providers", "qwen", "base_url"),
    "GEMINI_API_KEY": ("providers", "gemini", "api_key"),
    "GOOGLE_GEMINI_BASE_URL": ("providers", "gemini", "base_url"),
    "OLLAMA_BASE_URL": ("providers", "ollama", "base_url"),
    "OLLAMA_DEFAULT_MODEL": ("providers", "ollama", "model"),
    "PERPLEXITY_API_KEY": ("providers", "perplexity", "api_key"),
    "JULES_COMMAND": ("providers", "jules", "command"),
    "OPENCODE_COMMAND": ("providers", "opencode", "command"),
    "GEMINI_COMMAND": ("providers", "gemini", "command"),
    "MISTRAL_VIBE_COMMAND": ("providers", "mistral_vibe", "command"),
    "EVERY_CODE_COMMAND": ("providers", "every_code", "command"),
    "EVERY_CODE_ALT_COMMAND": ("providers", "every_code", "alt_command"),
    "CODE_HOME": ("providers", "every_code", "env", "CODE_HOME"),
    "OPENCLAW_COMMAND": ("providers", "openclaw", "command"),
    "CLAUDE_CODE_COMMAND": ("providers", "claude_code", "command"),
    "CODEX_CLI_COMMAND": ("providers", "codex_cli", "command"),
    "QWEN_CLI_COMMAND": ("providers", "qwen_cli", "command"),
    "COPILOT_COMMAND": ("providers", "copilot", "command"),
    "HERMES_COMMAND": ("providers", "hermes", "command"),
    "CLINE_COMMAND": ("providers", "cline", "command"),
    "AIDER_COMMAND": ("providers", "aider", "command"),
    "PI_COMMAND": ("providers", "pi", "command"),
    "CN_COMMAND": ("providers", "cn", "command"),
}

AGENT_NAMES = tuple(
    """
    claude codex o1 deepseek qwen jules opencode gemini mistral_vibe every_code openclaw ollama
    claude_code codex_cli qwen_cli copilot hermes cline aider pi cn perplexity
    """.split()
)
"""Other vendors' agents; what each is, is in the catalogue of `providers`."""


class KeyInfo(msgspec.Struct, frozen=True):
    """What is known of one key. `path` has `*` where any name may stand."""

    path: Path
    kind: Kind
    default: Any
    meaning: str
    nullable: bool = False
    choices: tuple[str, ...] = ()
    item_kind: Literal["text", "any"] = "text"
    env: tuple[str, ...] = ()
    unit: str = ""
    applies: str = "N"
    base: str = ""
    allowed_text: str = ""
    other_names: tuple[str, ...] = ()
    ge: float | None = None
    le: float | None = None

    @property
    def name(self) -> str:
        """The dotted name, say `agent.max_turns`."""
        return ".".join(self.path)

    @property
    def secret(self) -> bool:
        """Whether its value must never be shown."""
        return self.kind == "secret" or is_secret_name(self.path[-1])

    @property
    def variable(self) -> str:
        """Its long environment name."""
        return PREFIX + "__".join(part.upper().replace("-", "_") for part in self.path)

    @property
    def allowed(self) -> str:
        """The permitted values in words."""
        if self.allowed_text:
            return self.allowed_text
        if self.kind == "choice":
            return ", ".join(self.choices)
        if self.kind in ("int", "float"):
            return _range_text(self)
        return {"bool": "true, false", "list": "list of text", "any": "", "url": "URL"}.get(self.kind, "text")


class Node(msgspec.Struct, frozen=True):
    """A section or mapping: its keys, and what stands under any other name."""

    children: Mapping[str, "Node | KeyInfo"]
    other: "Node | KeyInfo | None" = None
    meaning: str = ""
    aliases: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])

    def child(self, name: str) -> "Node | KeyInfo | None":
        """Return what stands under `name`, or None when nothing may."""
        return self.children.get(self.aliases.get(name, name), self.other)


def _number(value: float) -> str:
    return f"{value:,.10g}" if value != int(value) else f"{int(value):,}"


def _range_text(info: KeyInfo) -> str:
    what = "integer" if info.kind == "int" else "number"
    unit = f" {info.unit}" if info.unit else ""
    if info.ge is not None and info.le is not None:
        return f"{what} {_number(info.ge)}–{_number(info.le)}{unit}"
    if info.ge is not None:
        return f"{what} ≥ {_number(info.ge)}{unit}"
    return f"{what}{unit}"


@cache
def tree() -> Node:
    """Return the description of the whole tree."""
    from bowerbird.config.tree import Settings

    return _node(Settings, ())


def _node(kind: type[BaseModel], path: Path) -> Node:
    children: dict[str, Node | KeyInfo] = {}
    aliases: dict[str, str] = {}
    for attribute, declared in kind.model_fields.items():
        name = declared.alias if isinstance(declared.alias, str) else attribute
        children[name] = _child(declared, (*path, name))
        for other in _about(declared).get("x-other-names", []):
            aliases[other] = name
    entry = cast("type[Section] | None", getattr(kind, "entry_type", None))
    other = _node(entry, (*path, ANY_NAME)) if entry else None
    return Node(children, other, (kind.__doc__ or "").strip().splitlines()[0], aliases)


def _about(declared: FieldInfo) -> dict[str, Any]:
    extra = declared.json_schema_extra
    return cast("dict[str, Any]", extra) if isinstance(extra, dict) else {}


def _child(declared: FieldInfo, path: Path) -> Node | KeyInfo:
    annotation: Any = _bare(declared.annotation)
    if _is_section(annotation) and not declared.is_required():
        if declared.default is None:
            return Node(_node(annotation, path).children, None, declared.description or "")
        return _node(annotation, path)
    if get_origin(annotation) is dict:
        value = _bare(get_args(annotation)[1])
        meaning = declared.description or ""
        if _is_section(value):
            return Node({}, _node(value, (*path, ANY_NAME)), meaning)
        entry = KeyInfo(
            (*path, ANY_NAME), _kind(value)[0], None, meaning, applies=_about(declared).get("x-applies", "N"),
            base=_about(declared).get("x-base", ""),
        )  # fmt: skip
        return Node({}, entry, meaning)
    return _leaf(declared, annotation, path)


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Section)


def _leaf(declared: FieldInfo, annotation: object, path: Path) -> KeyInfo:
    about = _about(declared)
    kind, choices = _kind(annotation)
    default = None if declared.is_required() else declared.get_default(call_default_factory=False)
    limits: dict[str, float] = {}
    for rule in declared.metadata:
        for name in ("ge", "le"):
            if getattr(rule, name, None) is not None:
                limits[name] = float(getattr(rule, name))
    items = get_args(annotation) if kind == "list" else ()
    short = tuple(name for name, target in PROVIDER_VARIABLES.items() if target == path)
    return KeyInfo(
        path=path,
        kind=kind,
        default=None if default is PydanticUndefined else default,
        meaning=declared.description or "",
        nullable=_nullable(declared.annotation),
        choices=choices or tuple(about.get("x-choices", ())),
        item_kind="text" if not items or _bare(items[0]) is str else "any",
        env=tuple(about.get("x-env", ())) or short,
        unit=about.get("x-unit", ""),
        applies=about.get("x-applies", "N"),
        base=about.get("x-base", ""),
        allowed_text=about.get("x-allowed", ""),
        other_names=tuple(about.get("x-other-names", ())),
        ge=limits.get("ge"),
        le=limits.get("le"),
    )


def _bare(annotation: object) -> Any:
    """Strip `Annotated[…]` and `… | None`."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _bare(get_args(annotation)[0])
    if origin in (Union, UnionType):
        members = [a for a in get_args(annotation) if a is not NoneType]
        return _bare(members[0]) if len(members) == 1 else annotation
    return annotation


def _nullable(annotation: object) -> bool:
    return get_origin(annotation) in (Union, UnionType) and NoneType in get_args(annotation)


def _kind(annotation: object) -> tuple[Kind, tuple[str, ...]]:
    if get_origin(annotation) is Literal:
        return "choice", tuple(str(a) for a in get_args(annotation))
    if get_origin(annotation) is tuple:
        return "list", ()
    kinds: dict[object, Kind] = {
        int: "int", float: "float", bool: "bool", str: "text", Secret: "secret", Url: "url"
    }  # fmt: skip
    return kinds.get(annotation, "any"), ()


def walk(node: Node | None = None) -> Iterator[KeyInfo]:
    """Yield every key, in the order of the tree; names of open mappings stand as `*`."""
    start = node or tree()
    for item in (*start.children.values(), *((start.other,) if start.other else ())):
        if isinstance(item, Node):
            yield from walk(item)
        else:
            yield item


def find(path: Path) -> Node | KeyInfo | None:
    """Return what stands at `path`, real names in place of `*`; None when nothing may.

    Example:
        >>> find(("agent", "max_turns")).default
        50
    """
    here: Node | KeyInfo | None = tree()
    for name in path:
        if not isinstance(here, Node):
            return None
        here = here.child(name)
    return here


def canonical(path: Path) -> Path:
    """Return `path` with other names of keys replaced (`max_tool_iterations` → `max_turns`)."""
    here: Node | KeyInfo | None = tree()
    result: list[str] = []
    for name in path:
        result.append(here.aliases.get(name, name) if isinstance(here, Node) else name)
        here = here.child(name) if isinstance(here, Node) else None
    return tuple(result)


@cache
def short_names() -> Mapping[str, Path]:
    """Return the short environment names and what they set."""
    names = {name: info.path for info in walk() for name in info.env}
    return {**names, **PROVIDER_VARIABLES}


def distance(a: str, b: str, limit: int = 2) -> int:
    """Return the edit distance of `a` and `b` (a swap of neighbours counts 1), at most `limit + 1`."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        older, before = before, row
        row = [i]
        for j, y in enumerate(b, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                best = min(best, older[j - 2] + 1)
            row.append(best)
    return min(row[-1], limit + 1)


def nearest(name: str, known: Iterator[str] | list[str]) -> str | None:
    """Return the known name closest to `name`: the same word, or edit distance ≤ 2.

    Example:
        >>> nearest("alowed_users", ["token", "allowed_users"])
        'allowed_users'
    """
    word = re.sub(r"[^a-z0-9]", "", name.lower())
    ranked = [
        (0 if re.sub(r"[^a-z0-9]", "", candidate.lower()) == word else distance(name, candidate), candidate)
        for candidate in known
    ]
    best = min(ranked, default=None)
    return best[1] if best is not None and best[0] <= 2 else None
