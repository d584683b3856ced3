"""An authority for tests: it signs certificates for brokers and clients, and keeps them as PEM files in a folder."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec import Struct


class Identity(Struct, frozen=True, kw_only=True):
    """A certificate and its key, and `both` in one file, as brokers want them."""

    certificate: Path
    key: Path
    both: Path


class Authority:
    """Signs; `certificate` is the file that those get who believe it."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        built = _begun(self._name, self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self._signed = built.sign(self._key, hashes.SHA256())
        self.certificate = folder / f"{name}.pem"
        self.certificate.write_bytes(self._signed.public_bytes(serialization.Encoding.PEM))

    def identity(self, name: str, address: str | None = None, *, until_days: int = 2) -> Identity:
        """Who is called so, and is found at that address only, for so many days from today; or was until then."""
        key = ec.generate_private_key(ec.SECP256R1())
        built = _begun(_named(name), self._name, key, until_days)
        if address is not None:
            names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
            built = built.add_extension(names, critical=False)
        certificate = built.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        stem = self._folder / name
        files = Identity(
            certificate=stem.with_suffix(".pem"), key=stem.with_suffix(".key"), both=stem.with_suffix(".both")
        )
        files.certificate.write_bytes(certificate)
        files.key.write_bytes(private)
        files.both.write_bytes(private + certificate + self._signed.public_bytes(serialization.Encoding.PEM))
        return files


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, until_days: int = 2
) -> x509.CertificateBuilder:
    """A certificate but for its signature: valid from the week before until so many days from today."""
    today = dt.datetime.now(tz=dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - dt.timedelta(days=7))
        .not_valid_after(today + dt.timedelta(days=until_days))
    )
