"""A certificate for servers of tests, made on the spot."""

import ssl
import subprocess
from pathlib import Path


def certificate(folder: Path) -> ssl.SSLContext:
    """Return the TLS side of a server called good.test; its files lie in `folder`."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=good.test",
         "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context
