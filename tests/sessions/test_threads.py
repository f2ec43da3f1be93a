"""Thread ids (SE-1, SE-2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.core.errors import InvalidThreadId
from bowerbird.sessions.thread_ids import (
    chat_of_thread,
    thread_of_chat,
    thread_of_teammate,
)

chats = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20)
channels = st.sampled_from(["telegram", "a", "x-1", "slack"])


@pytest.mark.parametrize(
    ("channel", "chat", "counter", "thread"),
    [
        ("telegram", "12345", 0, "telegram_12345"),
        ("telegram", "-100", 1, "telegram_-100_s1"),
        ("telegram", "a b/c", 0, "telegram_a%20b%2Fc"),
        ("telegram", "5_s2", 0, "telegram_5%5Fs2"),
        ("telegram", "5_s2", 2, "telegram_5%5Fs2_s2"),
        ("telegram", "5_sx", 0, "telegram_5_sx"),
        ("mail", ".hidden", 0, "mail_%2Ehidden"),
        ("mail", "a.b@c-d", 12, "mail_a.b@c-d_s12"),
        ("mail", "ü", 0, "mail_%C3%BC"),
    ],
)
def test_a_chats_thread_id_is_spelled_as_the_chapter_says(
    channel: str, chat: str, counter: int, thread: str
) -> None:
    """SE-1, SE-2, acceptance 6."""
    assert thread_of_chat(channel, chat, counter) == thread


@given(a=st.tuples(channels, chats, st.integers(0, 3)), b=st.tuples(channels, chats, st.integers(0, 3)))
def test_two_chats_never_share_an_id(a: tuple[str, str, int], b: tuple[str, str, int]) -> None:
    """SE-2."""
    assert (thread_of_chat(*a) == thread_of_chat(*b)) == (a == b)


@given(channel=channels, chat=chats, counter=st.integers(0, 30))
def test_an_id_can_be_read_back_and_is_a_safe_file_name(channel: str, chat: str, counter: int) -> None:
    """SE-2."""
    thread = thread_of_chat(channel, chat, counter)
    found = chat_of_thread(thread)
    assert found is not None
    assert (found.channel, found.chat_id, found.counter) == (channel, chat, counter)
    assert found.base_key == thread_of_chat(channel, chat)
    assert "/" not in thread
    assert not thread.startswith(".")
    assert thread.isascii()
    assert thread.isprintable()


@pytest.mark.parametrize(
    ("channel", "chat"),
    [("", "1"), ("Telegram", "1"), ("9x", "1"), ("a" * 33, "1"), ("scheduler", "1"), ("telegram", "")],
)
def test_malformed_or_reserved_channels_are_refused(channel: str, chat: str) -> None:
    """SE-2."""
    with pytest.raises(InvalidThreadId):
        thread_of_chat(channel, chat)


def test_an_id_over_200_bytes_is_refused() -> None:
    """SE-2."""
    assert len(thread_of_chat("telegram", "x" * 191)) == 200
    with pytest.raises(InvalidThreadId, match="200"):
        thread_of_chat("telegram", "x" * 192)
    with pytest.raises(InvalidThreadId):
        thread_of_chat("telegram", "ü" * 32)


def test_ids_of_tasks_and_teammates_are_no_chats() -> None:
    """SE-1."""
    assert thread_of_teammate("0123456789ab", "alice") == "0123456789ab.team.alice"
    assert chat_of_thread("scheduler_a1b2c3d4") is None
    assert chat_of_thread("0123456789ab") is None
