"""Models: what answers a request, whoever provides it.

Lives here: the `Model` protocol; the adapters for Anthropic, OpenAI and its compatible servers, and
the embedded model; the wrappers for retries, fallback, tiers and traces; repair of call arguments;
prices and the arithmetic of budgets; redaction.
Must not be here: tools, the agent loop, databases, reading of settings files or the environment.

Each wire is a pure module (`providers/anthropic_wire`, `providers/openai_wire`, and their `…_fold`), so that
a provider can be read and tested without a network. Importing this package imports no HTTP library.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bowerbird.models.answers.repair import Fitted, Repaired, fit_to_schema, repair_arguments
    from bowerbird.models.budget import Budget, BudgetRefusal, MemoryBudget, Reservation
    from bowerbird.models.names import ModelName, parse_model_name
    from bowerbird.models.prices import is_priced, price, pricer
    from bowerbird.models.protocol import Model, complete
    from bowerbird.models.providers.thinking import parse_effort
    from bowerbird.models.redact import Redactor, redactor_of
    from bowerbird.models.registry import ModelPool, open_model, open_router, resolve_name
    from bowerbird.models.settings import (
        LocalSettings,
        ModelOverride,
        ModelSettings,
        Price,
        ProviderSettings,
        RetryPolicy,
        RouterSettings,
        TelemetrySettings,
        TierSettings,
        Timeouts,
    )
    from bowerbird.models.tokens import estimate_request
    from bowerbird.models.wrappers.fallback import FallbackModel
    from bowerbird.models.wrappers.retry import RetryingModel
    from bowerbird.models.wrappers.router import RoutingChatModel, UnknownTier
    from bowerbird.models.wrappers.tracing import TracingModel

_HOME = {
    "budget": ("Budget", "BudgetRefusal", "MemoryBudget", "Reservation"),
    "wrappers.fallback": ("FallbackModel",),
    "names": ("ModelName", "parse_model_name"),
    "prices": ("is_priced", "price", "pricer"),
    "protocol": ("Model", "complete"),
    "redact": ("Redactor", "redactor_of"),
    "registry": ("ModelPool", "open_model", "open_router", "resolve_name"),
    "answers.repair": ("Fitted", "Repaired", "fit_to_schema", "repair_arguments"),
    "wrappers.retry": ("RetryingModel",),
    "wrappers.router": ("RoutingChatModel", "UnknownTier"),
    "settings": (
        "LocalSettings",
        "ModelOverride",
        "ModelSettings",
        "Price",
        "ProviderSettings",
        "RetryPolicy",
        "RouterSettings",
        "TelemetrySettings",
        "TierSettings",
        "Timeouts",
    ),
    "providers.thinking": ("parse_effort",),
    "tokens": ("estimate_request",),
    "wrappers.tracing": ("TracingModel",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = (
    "Budget",
    "BudgetRefusal",
    "FallbackModel",
    "Fitted",
    "LocalSettings",
    "MemoryBudget",
    "Model",
    "ModelName",
    "ModelOverride",
    "ModelPool",
    "ModelSettings",
    "Price",
    "ProviderSettings",
    "Redactor",
    "Repaired",
    "Reservation",
    "RetryPolicy",
    "RetryingModel",
    "RouterSettings",
    "RoutingChatModel",
    "TelemetrySettings",
    "TierSettings",
    "Timeouts",
    "TracingModel",
    "UnknownTier",
    "complete",
    "estimate_request",
    "fit_to_schema",
    "is_priced",
    "open_model",
    "open_router",
    "parse_effort",
    "parse_model_name",
    "price",
    "pricer",
    "redactor_of",
    "repair_arguments",
    "resolve_name",
)


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
