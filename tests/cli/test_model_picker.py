"""Choosing a model in the terminal: the list, Tab, names that are nearly one (UI-75)."""

import pytest
from support.desk import Desk
from support.patience import patience

pytestmark = pytest.mark.timeout(patience(120))


@pytest.fixture
def desk(tmp_path, models, servers, client):
    models.reset()
    with Desk(tmp_path, models, servers if client == "server" else None) as made:
        yield made


def test_the_list_marks_the_current_model_and_tab_completes_a_name(desk, client):
    """UI-75: with price and window; on this machine's records and on a server."""
    with desk.terminal(columns=100) as terminal:
        terminal.wait_for("lists commands.")
        terminal.wait_for(">")
        terminal.send("/model\r")
        terminal.wait_for("* anthropic:claude-sonnet-5" if client == "local" else "anthropic:claude-sonnet-5")
        terminal.wait_for("$2 in, $10 out per 1M · 200k window")
        terminal.wait_for("change with /model NAME; Tab completes")
        terminal.send("/model sonnet\t")
        terminal.wait_for("$2 in")  # the menu
        terminal.send("\t")
        terminal.wait_for("anthropic:claude-sonnet-5")  # in the line
        terminal.send("\r\r")  # takes it, sends it
        terminal.wait_for("this session now runs on anthropic:claude-sonnet-5")


def test_a_bare_name_of_another_provider_is_asked_about(desk, models):
    """UI-75: `-m gpt-4o` became `anthropic:gpt-4o`, and the provider said no at the first call."""
    own = {name: text for name, text in desk.environment.items() if name != "ANTHROPIC_BASE_URL"}
    desk.environment = own
    code, _, err = desk.run("-m", "gpt-4o", "hi")
    assert code != 0 and "did you mean openai:gpt-4o?" in err
    assert models.request_count == 0
