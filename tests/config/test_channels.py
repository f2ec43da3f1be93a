"""Keys of chat channels: who is listed, what is refused (AS-5, AS-13, CF-5, CF-10)."""

import pytest


def telegram(place, text):
    return place.load(f"channels: {{telegram: {{{text}}}}}").settings.channels.telegram


def test_ids_may_be_numbers_texts_or_items_with_a_role(place):
    """AS-5: numbers become strings; owner is the default."""
    found = telegram(place, 'allowed_users: [1, "2", {id: 3, role: guest}, {id: "-4"}]')
    assert [(user.id, user.role) for user in found.allowed_users] == [
        ("1", "owner"), ("2", "owner"), ("3", "guest"), ("-4", "owner"),
    ]  # fmt: skip
    assert (found.enabled, found.trigger, found.stream_interval) == (False, "@Bowerbird", 1.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("trigger: '  '", "blank"),
        ("allowed_users: [{id: '1', role: god}]", "role"),
        ("allowed_users: ['']", "id of a user"),
        ("allowed_users: [true]", "allowed_users"),
        ("alowed_users: ['1']", "allowed_users"),
        ("enabled: true", "@BotFather"),
        ("stream_interval: 0", "stream_interval"),
    ],
)
def test_what_is_wrong_is_named(errors, text, said):
    """CF-10: an unknown key of `channels` is an error, since a typo there opens a door."""
    assert said in errors(f"channels: {{telegram: {{{text}}}}}")[0]


def test_an_undefined_token_is_an_error_only_where_telegram_is_on(place, errors):
    """CF-5, AS-67, acceptance 3 of settings."""
    assert telegram(place, "token: '${NOPE}'").token is None
    [said, *_] = errors("channels: {telegram: {enabled: true, token: '${NOPE}'}}")
    assert "channels.telegram.token" in said and "NOPE" in said and ":1" in said
