"""Models: what answers a request, whoever provides it.

Lives here: the `Model` protocol; the adapters for Anthropic, OpenAI and its compatible servers, and
the embedded model; the wrappers for retries, fallback, tiers and traces; repair of call arguments;
prices and the arithmetic of budgets; redaction.
Must not be here: tools, the agent loop, databases, reading of settings files or the environment.

Each wire is pure (`build_request` in `providers/anthropic_model` and `providers/openai_model`, and their
`…_fold`), so that a provider can be read and tested without a network. Importing this package imports no
HTTP library.
"""

from typing import TYPE_CHECKING

from bowerbird.core.lazy import lazy

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


__all__ = (
    "Budget", "BudgetRefusal", "FallbackModel", "Fitted", "LocalSettings", "MemoryBudget", "Model",
    "ModelName", "ModelOverride", "ModelPool", "ModelSettings", "Price", "ProviderSettings", "Redactor",
    "Repaired", "Reservation", "RetryPolicy", "RetryingModel", "RouterSettings", "RoutingChatModel",
    "TelemetrySettings", "TierSettings", "Timeouts", "TracingModel", "UnknownTier", "complete",
    "estimate_request", "fit_to_schema", "is_priced", "open_model", "open_router", "parse_effort",
    "parse_model_name", "price", "pricer", "redactor_of", "repair_arguments", "resolve_name",
)  # fmt: skip

__getattr__, __dir__ = lazy(
    __name__,
    {
        "answers.repair": "fit_to_schema Fitted repair_arguments Repaired",
        "budget": "Budget BudgetRefusal MemoryBudget Reservation",
        "names": "ModelName parse_model_name",
        "prices": "is_priced price pricer",
        "protocol": "complete Model",
        "providers.thinking": "parse_effort",
        "redact": "Redactor redactor_of",
        "registry": "ModelPool open_model open_router resolve_name",
        "settings": "LocalSettings ModelOverride ModelSettings Price ProviderSettings RetryPolicy "
        "RouterSettings TelemetrySettings TierSettings Timeouts",
        "tokens": "estimate_request",
        "wrappers.fallback": "FallbackModel",
        "wrappers.retry": "RetryingModel",
        "wrappers.router": "RoutingChatModel UnknownTier",
        "wrappers.tracing": "TracingModel",
    },
)
