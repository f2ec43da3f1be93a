"""What each model can do, as far as a request must know it (MO-9, MO-17, MO-21).

Here: families of models by name, and the traits that follow; a person's override wins. Not here:
prices (`prices`), providers' addresses (`names`). A model that is in no row works with defaults: a
field it refuses is left out after the first answer that says so (MO-19).
"""

import re
from typing import NamedTuple

import msgspec

from bowerbird.core.model_presets import Preset, ThinkingForm
from bowerbird.core.requests import ModelInfo
from bowerbird.models.settings import ModelOverride

_DEFAULT_WINDOW = 200_000
_DEFAULT_OUTPUT = 16_384
_OLLAMA_WINDOW = 32_768
"""What an agent needs and most machines can hold; Ollama makes the context as large as it is asked to."""
_ALL = ("low", "medium", "high", "max")
_THREE = ("low", "medium", "high")


class _Family(NamedTuple):
    """Models whose names match `pattern`; limits in tokens, None = unknown; a window `prices` may know."""

    pattern: str
    window: int | None
    output: int | None
    thinking: ThinkingForm | None = None
    efforts: tuple[str, ...] = _ALL
    temperature: bool = True
    images: bool = True
    constrained: bool = False
    max_name: str = "max"
    checks_history: bool = False
    off: str | None = "none"  # the effort that stands for no thinking; None = it always thinks


_CLAUDE = (
    _Family(r"claude-(2|instant)", 100_000, 4_096, "none", images=False),
    _Family(r"claude-3-(opus|sonnet|haiku)", 200_000, 4_096, "none"),
    _Family(r"claude-3-5", 200_000, 8_192, "none"),
    _Family(r"claude-3-7", 200_000, 64_000, "budget"),
    _Family(r"claude-opus-4(-[01])?(-20\d+)?$", 200_000, 32_000, "budget"),
    _Family(r"claude-sonnet-4(-0)?(-20\d+)?$", 200_000, 64_000, "budget"),
    _Family(r"claude-(opus|sonnet|haiku)-4-5", 200_000, 64_000, "budget", constrained=True),
    _Family(
        r"claude-(opus-5-5|(fable|mythos)-5-[12])",
        None,
        64_000,
        "adaptive",
        constrained=True,
        checks_history=True,
        off=None,
    ),
    _Family(r"claude-(sonnet|haiku)-5-5", None, 64_000, "adaptive", constrained=True, checks_history=True),
    _Family(r"claude-", None, 64_000, "adaptive", constrained=True),
)
_OPENAI = (
    _Family(r"gpt-3\.5", 16_385, 4_096, "none", images=False),
    _Family(r"gpt-4o|chatgpt-4o", 128_000, 16_384, "none", constrained=True),
    _Family(r"gpt-4\.1", 1_047_576, 32_768, "none", constrained=True),
    _Family(r"gpt-4", 128_000, 4_096, "none"),
    _Family(r"o1-mini|o1-preview", 128_000, 65_536, "none", temperature=False, images=False),
    _Family(r"o\d", 200_000, 100_000, None, _THREE, False, constrained=True, off="low"),
    _Family(r"gpt-5(-|$)", 400_000, 128_000, None, _THREE, False, constrained=True, off="minimal"),
    _Family(r"gpt-5\.1", 400_000, 128_000, None, _THREE, False, constrained=True),
    _Family(r"gpt-[5-9]", None, 128_000, None, _ALL, False, constrained=True, max_name="xhigh"),
)
_OTHERS = (
    _Family(r"deepseek-v4", 1_000_000, 384_000, images=False),
    _Family(r"deepseek-reasoner", 128_000, 64_000, images=False),
    _Family(r"deepseek", 128_000, 8_192, images=False),
    _Family(r"gemini-2\.5-flash", 1_048_576, 65_536, None, _THREE, constrained=True),
    _Family(r"gemini", 1_048_576, 65_536, None, _THREE, constrained=True, off="low"),
    _Family(r"gpt-oss", None, None, None, _THREE, images=False, off="low"),
    _Family(r".*(-vl|vision|llava|pixtral|gemma-?3|llama-?4|minicpm-v|moondream)", None, None),
)
# With tools, Chat Completions takes these without reasoning only, or not at all.
_RESPONSES = re.compile(
    r"gpt-(5\.[4-9]|[6-9])|gpt-daybreak|(gpt-5|o\d|computer-use|codex).*(codex|-pro|preview|deep)"
)
_MISTRAL = re.compile(r"(open-|labs-)?(mi[sx]tral|ministral|magistral|devstral|codestral|pixtral)")
_FAMILIES = tuple((re.compile(f.pattern), f) for f in (*_CLAUDE, *_OPENAI, *_OTHERS))
_UNKNOWN = _Family("", None, None)

_TEXT_ONLY = frozenset({"ollama", "vllm", "lmstudio", "groq", "deepseek", "mistral", "openai-compatible"})
_CONSTRAINED = frozenset({"openai", "vllm", "lmstudio", "ollama"})


class Traits(msgspec.Struct, frozen=True):
    """What a request to one model at one address must respect.

    Attributes:
        info: what others may know of the model.
        output_limit: highest `max_tokens` the vendor takes, None when unknown.
        thinking_form, efforts, max_name, off: see `thinking.thinking_fields`.
        temperature: whether one may be sent.
        own_host: the address is the vendor's own.
    """

    info: ModelInfo
    output_limit: int | None
    thinking_form: ThinkingForm
    efforts: tuple[str, ...]
    max_name: str
    off: str | None
    temperature: bool
    own_host: bool


def _family(model: str) -> _Family:
    name = _bare(model)
    return next((family for pattern, family in _FAMILIES if pattern.match(name)), _UNKNOWN)


def _bare(model: str) -> str:
    return model.rsplit("/", 1)[-1].lower()  # `anthropic/claude-…` at a gateway


def answers_results(model: str) -> bool:
    """Whether `model` must have said something between results of tools and what a person says.

    Example:
        >>> answers_results("mistralai/devstral-2512"), answers_results("gpt-5.2")
        (True, False)
    """
    return _MISTRAL.match(_bare(model)) is not None


def needs_responses(model: str) -> bool:
    """Whether OpenAI serves `model` to an agent by its Responses wire only.

    Example:
        >>> needs_responses("gpt-5.5"), needs_responses("gpt-5.1-codex-max"), needs_responses("gpt-5.2")
        (True, True, False)
    """
    return _RESPONSES.match(model) is not None


def checks_history(model: str) -> bool:
    """Whether the reasoning of `model` counts only while all before it stays as it was."""
    return _family(model).checks_history


def traits_of(
    preset: Preset,
    model: str,
    *,
    own_host: bool,
    override: ModelOverride | None = None,
    context_window: int | None = None,
    known_window: int | None = None,
    priced: bool = False,
) -> Traits:
    """Return the traits of `model` as `preset` serves it.

    Args:
        preset: the provider.
        model: its name there.
        own_host: whether it is asked at the vendor's own address.
        override: what a person set for it.
        context_window: tokens to use at most; those of models that nobody knows.
        known_window: what others know it to have, for models whose row does not say.
        priced: whether a price is known.
    """
    family, known = _family(model), override or ModelOverride()
    images = family.images if family is not _UNKNOWN else preset.name not in _TEXT_ONLY
    constrained = family.constrained if preset.wire == "anthropic" else preset.name in _CONSTRAINED
    constrained = (
        (constrained and own_host) if preset.wire == "anthropic" else constrained or family.constrained
    )
    form = _thinking_form(preset, family, own_host)
    if known.thinking_form is not None:
        form = known.thinking_form
    info = ModelInfo(
        provider=preset.name,
        model=model,
        context_window=known.context_window
        or _window(
            _OLLAMA_WINDOW if preset.wire == "ollama" else family.window or known_window, context_window
        ),
        max_output_tokens=known.max_output_tokens or family.output or _DEFAULT_OUTPUT,
        images=images if known.images is None else known.images,
        constrained_output=constrained if known.constrained_output is None else known.constrained_output,
        thinking=form != "none",
        cache=preset.wire == "anthropic" or preset.name in ("openai", "deepseek", "google-genai"),
        priced=priced,
        price=known.price,
        checks_history=family.checks_history,
    )
    return Traits(
        info=info,
        output_limit=known.max_output_tokens or (family.output if own_host else None),
        thinking_form=form,
        efforts=known.efforts or (family.efforts if own_host else _ALL),
        max_name=family.max_name if own_host else "max",
        off=family.off if own_host else "none",
        temperature=family.temperature if known.temperature is None else known.temperature,
        own_host=own_host,
    )


def _window(known: int | None, wanted: int | None) -> int:
    """Return the window to plan with: what is wanted, never more than the model is known to have."""
    if known is not None and wanted is not None:
        return min(known, wanted)
    return known or wanted or _DEFAULT_WINDOW


def _thinking_form(preset: Preset, family: _Family, own_host: bool) -> ThinkingForm:
    """MO-20: `effort` for every address but the vendor's own; MO-21: the vendor's form there."""
    if not own_host:
        return "effort"
    if preset.name in ("anthropic", "openai") and family.thinking is not None:
        return family.thinking
    return preset.own_thinking
