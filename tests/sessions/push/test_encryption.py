"""Messages that one browser can read (UI-95): RFC 8291 with its own example, RFC 8292."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st
from support.push_service import decrypted, sender_of, unpadded

from bowerbird.core.errors import InvalidArgument
from bowerbird.sessions.push.encryption import (
    LONGEST,
    authorization,
    check_keys,
    decoded,
    encrypted,
    new_key,
    public_key,
)

# RFC 8291, appendix A.
TEXT = b"When I grow up, I want to be a watermelon"
SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
BROWSER = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
P256DH = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH, SALT = "BTBZMqHH6r4Tts7J_aSIgg", "DGv6ra1nlYgDCS1FRnbzlw"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT"
    "pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)  # fmt: skip


def private(text: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(decoded(text), "big"), ec.SECP256R1())


def test_the_example_of_the_standard_comes_out_bit_by_bit() -> None:
    """UI-95."""
    assert unpadded(encrypted(TEXT, P256DH, AUTH, ours=SENDER, salt=decoded(SALT))) == BODY


@given(text=st.binary(max_size=LONGEST))
def test_any_message_is_read_by_its_browser_and_fits_one_record(text: bytes) -> None:
    """UI-95."""
    body = encrypted(text, P256DH, AUTH)
    assert decrypted(body, private(BROWSER), decoded(AUTH)) == text and len(body) <= 4096


def test_two_messages_of_one_text_differ_and_too_long_ones_are_refused() -> None:
    """UI-95."""
    assert encrypted(TEXT, P256DH, AUTH) != encrypted(TEXT, P256DH, AUTH)
    with pytest.raises(InvalidArgument, match="at most"):
        encrypted(b"x" * (LONGEST + 1), P256DH, AUTH)


@pytest.mark.parametrize(
    ("p256dh", "auth"),
    [(P256DH, "AAAA"), (P256DH[:-4], AUTH), ("ü", AUTH), (unpadded(b"\x04" + bytes(64)), AUTH), ("", "")],
)  # fmt: skip
def test_keys_that_are_none_are_refused(p256dh: str, auth: str) -> None:
    """UI-95."""
    with pytest.raises(InvalidArgument):
        check_keys(p256dh, auth)


def test_a_service_can_check_who_sends() -> None:
    """UI-95: RFC 8292; the audience is the service's origin, and the token ends within a day."""
    key = new_key()
    header = authorization("https://push.example:8443/send/x?y", key, "mailto:me@example.org", now_s=4e9)
    sender, claims = sender_of({"authorization": header}, "https://push.example:8443")
    assert sender == public_key(key) and claims["sub"] == "mailto:me@example.org"
    assert 0 < claims["exp"] - 4e9 <= 24 * 3600
