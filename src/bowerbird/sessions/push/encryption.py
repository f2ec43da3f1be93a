"""What a push service is sent: a message that only one browser can read, and who sends it. Pure.

Here: RFC 8291 (encryption) over RFC 8188 (its form), RFC 8292 (VAPID). Not here: subscriptions, HTTP.
"""

import base64
import binascii
import os
import struct
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bowerbird.core.errors import InvalidArgument

if TYPE_CHECKING:  # at run time where it is used: it takes 40 ms
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey

RECORD = 4096  # the only record; push services take no more
LONGEST = RECORD - 16 - 1 - 86  # tag, end mark, head
TOKEN_S = 12 * 3600  # services take at most 24 h
_POINT = 65


def unpadded(data: bytes) -> str:
    """Return base64url without padding, as browsers write keys."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """Return what base64url stands for, with or without padding; raises InvalidArgument."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidArgument("a key of a subscription is no base64url") from error


def new_key() -> str:
    """Return a new private key of a sender."""
    from cryptography.hazmat.primitives.asymmetric import ec

    private = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
    return unpadded(private.to_bytes(32, "big"))


def public_key(private: str) -> str:
    """Return the key that browsers subscribe with (`applicationServerKey`)."""
    return unpadded(_point(_private(private)))


def check_keys(p256dh: str, auth: str) -> None:
    """Raises InvalidArgument when a browser's keys are none."""
    _public(decoded(p256dh))
    if len(decoded(auth)) != 16:
        raise InvalidArgument("`auth` of a subscription is 16 bytes")


def encrypted(
    text: bytes, p256dh: str, auth: str, *, ours: str | None = None, salt: bytes | None = None
) -> bytes:
    """Return a message for one browser, as the body of a request (`Content-Encoding: aes128gcm`).

    Args:
        p256dh, auth: the browser's keys. ours, salt: of this message; new ones when None, as they must be.

    Raises:
        InvalidArgument: the keys are none, or the text is longer than one record.
    """
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if len(text) > LONGEST:
        raise InvalidArgument(f"a push message has at most {LONGEST} bytes")
    salt = os.urandom(16) if salt is None else salt
    private, theirs = _private(ours or new_key()), decoded(p256dh)
    point = _point(private)
    shared = private.exchange(ec.ECDH(), _public(theirs))
    secret = _derived(decoded(auth), shared, b"WebPush: info\0" + theirs + point, 32)
    key = _derived(salt, secret, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(salt, secret, b"Content-Encoding: nonce\0", 12)
    head = salt + struct.pack("!IB", RECORD, len(point)) + point
    return head + AESGCM(key).encrypt(nonce, text + b"\x02", None)  # 2 = the last record


def authorization(endpoint: str, private: str, contact: str, now_s: float | None = None) -> str:
    """Return the header that says who sends (VAPID).

    Args:
        contact: `mailto:` or `https:` address that the service may write to.
    """
    import jwt

    parts = urlsplit(endpoint)
    until = int(time.time() if now_s is None else now_s) + TOKEN_S
    claims = {"aud": f"{parts.scheme}://{parts.netloc}", "exp": until, "sub": contact}
    token = jwt.encode(claims, _private(private), algorithm="ES256")
    return f"vapid t={token}, k={public_key(private)}"


def _private(text: str) -> "EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.derive_private_key(int.from_bytes(decoded(text), "big"), ec.SECP256R1())


def _public(point: bytes) -> "EllipticCurvePublicKey":
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        if len(point) != _POINT:
            raise ValueError
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    except ValueError as error:
        raise InvalidArgument("`p256dh` of a subscription is no point of the curve P-256") from error


def _point(private: "EllipticCurvePrivateKey") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _derived(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), length, salt, info).derive(secret)
