"""A push service on loopback, and a browser's side of it: keys, and reading what was encrypted for them.

Here: real HTTP, RFC 8291 as the receiver does it, the sender's signature checked. Not here: our sender.
"""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from support.patience import HANG_S


def unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def padded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class PushService:
    """Receives messages for one browser; use as a context manager.

    Attributes:
        status: what it answers. messages: what the browser was told. headers: of each request.
    """

    def __init__(self) -> None:
        self.private = ec.generate_private_key(ec.SECP256R1())
        self.auth = b"0123456789abcdef"
        self.status = 201
        self.messages: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def subscription(self, name: str = "one") -> dict[str, Any]:
        """What `PushSubscription.toJSON()` gives."""
        point = self.private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        keys = {"p256dh": unpadded(point), "auth": unpadded(self.auth)}
        return {"endpoint": f"http://{self.host}/{name}", "keys": keys}

    def wait(self, requests: int) -> None:
        """Block until so many requests came."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.headers) >= requests, HANG_S), self.headers

    def take(self, headers: dict[str, str], body: bytes) -> None:
        with self._changed:
            self.headers.append(headers)
            self.messages.append(json.loads(decrypted(body, self.private, self.auth)))
            self._changed.notify_all()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                self.send_response(service.status)
                self.send_header("content-length", "0")
                self.end_headers()
                service.take({name.lower(): value for name, value in self.headers.items()}, body)

            def log_message(self, *_: object, **__: object) -> None:
                """Say nothing."""

        return Handler


def decrypted(body: bytes, private: ec.EllipticCurvePrivateKey, auth: bytes) -> bytes:
    """Read a message as the browser does (RFC 8291, RFC 8188)."""
    salt, length = body[:16], body[20]
    sender = body[21 : 21 + length]
    ours = private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
    shared = private.exchange(ec.ECDH(), theirs)
    secret = HKDF(SHA256(), 32, auth, b"WebPush: info\0" + ours + sender).derive(shared)
    key = HKDF(SHA256(), 16, salt, b"Content-Encoding: aes128gcm\0").derive(secret)
    nonce = HKDF(SHA256(), 12, salt, b"Content-Encoding: nonce\0").derive(secret)
    text = AESGCM(key).decrypt(nonce, body[21 + length :], None)
    assert text[-1:] == b"\x02", "the last record ends with 2"
    return text[:-1]


def sender_of(headers: dict[str, str], audience: str) -> tuple[str, dict[str, Any]]:
    """The sender's public key and claims; fails when the signature is not theirs (RFC 8292)."""
    scheme, _, rest = headers["authorization"].partition(" ")
    assert scheme == "vapid"
    parts = dict(part.strip().split("=", 1) for part in rest.split(","))
    public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), padded(parts["k"]))
    return parts["k"], jwt.decode(parts["t"], public, algorithms=["ES256"], audience=audience)
