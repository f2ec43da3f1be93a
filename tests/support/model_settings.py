"""What the models' tests share: requests, names, settings that lead to the scripted server."""

from support.fake_models import FakeModels

from bowerbird.core.messages import user_text
from bowerbird.core.requests import ModelRequest
from bowerbird.models import ModelSettings, ProviderSettings, RetryPolicy

KEY = "sk-test-0123456789abcdef0123"
HELLO = ModelRequest((user_text("hello"),), max_tokens=500)
QUICK = RetryPolicy(base_delay_s=0.0, max_delay_s=0.0)
NAMES = {"anthropic": "anthropic:claude-test", "openai": "openai:gpt-test"}


def settings_for(fake: FakeModels, retry: RetryPolicy = QUICK, **changes: object) -> ModelSettings:
    """Settings whose vendors are the scripted server."""
    providers = {
        "anthropic": ProviderSettings(api_key=KEY, base_url=fake.anthropic_url),
        "openai": ProviderSettings(api_key=KEY, base_url=fake.openai_url),
    }
    return ModelSettings(**{"providers": providers, "retry": retry, **changes})
