"""Certificates for servers on loopback."""

import ssl
import subprocess
from pathlib import Path


def make_certificate(folder: Path, name: str = "IP:127.0.0.1") -> Path:
    """Write a self-signed certificate and its key into one file; `FILE.crt` is the certificate alone."""
    path = folder / "both.pem"
    subject = ["-subj", "/CN=test", "-addext", f"subjectAltName={name}"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", path, "-out", f"{path}.crt"], check=True, capture_output=True)
    with path.open("a") as both:
        both.write(Path(f"{path}.crt").read_text())
    return path


def server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
