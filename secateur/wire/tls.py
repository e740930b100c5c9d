"""TLS of connections: the files that a user names, and what the standard library makes of them."""

from __future__ import annotations

import os
import ssl
import sys
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Final

from secateur.errors import AuthenticationError, Error, ProgrammingError, ProtocolError, UnreachableError
from secateur.wire.certificate_renewal import FileStamp, RenewedCertificate, file_stamp

_CONTEXTS_MAX: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Encrypts connections, and lets the side that connects check whom it reached.

    A cluster needs ``certificate`` and ``key``, and ``ca`` for the connections between its own processes. A client
    needs ``ca`` alone, or nothing if an authority that the machine trusts has signed the certificate. All are files in
    PEM; a path that is not absolute begins at the current directory. New connections use what the files have by then.

    Attributes:
        certificate: The certificate that a server shows, followed by those between it and the authority.
        key: The private key of the certificate; by default it is in the same file. Without a password.
        ca: The certificates of the authorities that are trusted; by default those of the machine.
        server_name: The name that the certificate of the other side has to bear; by default the host that is connected
            to. For one certificate for several machines.
        verify: Whether the certificate of the other side is checked. False encrypts, and anybody in between may be the
            other side.

    Raises:
        ProgrammingError: A key without a certificate.
    """

    certificate: str | Path | None = None
    key: str | Path | None = None
    ca: str | Path | None = None
    server_name: str | None = None
    verify: bool = True

    def __post_init__(self) -> None:
        if self.key is not None and self.certificate is None:
            raise ProgrammingError("Tls(key=...) without certificate=...: name the certificate of the key")
        for field in fields(self):
            if field.name in ("certificate", "key", "ca") and (given := getattr(self, field.name)) is not None:
                object.__setattr__(self, field.name, str(Path(given).absolute()))


def server_context(tls: Tls) -> ssl.SSLContext:
    """The context in which a server accepts connections. Each handshake shows the certificate in the files by then.

    Raises:
        ProgrammingError: There is no certificate, or a file cannot be read or used.
    """
    if tls.certificate is None:
        raise ProgrammingError("tls= of a server needs a certificate and its key: Tls(certificate=..., key=...)")
    try:
        return RenewedCertificate(tls.certificate, tls.key).context
    except OSError as error:
        raise ProgrammingError(
            f"the certificate {str(tls.certificate)!r} and the key {str(tls.key or tls.certificate)!r} cannot be used"
            f" ({error}): both are files in PEM that this process may read, and the key belongs to the certificate"
        ) from error


def client_context(tls: Tls) -> ssl.SSLContext:
    """The context of the side that connects. The file of the authorities is read again when it has changed.

    Raises:
        ProgrammingError: The file with the authorities cannot be read or used.
    """
    return _trusting(tls, file_stamp(tls.ca))


@lru_cache(maxsize=_CONTEXTS_MAX)
def _trusting(tls: Tls, _: FileStamp) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.ca)
    except OSError as error:
        raise ProgrammingError(
            f"the authorities in {str(tls.ca)!r} cannot be used ({error}): ca= is a file in PEM that this process may"
            " read"
        ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


if sys.platform != "win32":  # in a fork, OpenSSL's lock of a context may stay held by another thread's handshake
    os.register_at_fork(after_in_child=_trusting.cache_clear)


def handshake_error(address: str, error: OSError) -> Error:
    """Say why the TLS handshake with ``host:port`` failed."""
    match error:
        case ssl.SSLCertVerificationError():
            return AuthenticationError(
                f"the certificate of {address} is not accepted ({error.verify_message}): name the authority that has"
                " signed it in Tls(ca=...), and connect by a name that it bears, or give that in Tls(server_name=...)"
            )
        case ssl.SSLError() if not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return ProtocolError(
                f"{address} does not speak TLS as this side does ({error.reason or error}): if its cluster was started"
                " without tls=, leave tls= out here",
                address=address,
            )
        case _:
            return UnreachableError(
                f"{address} accepted the connection but did not finish the TLS handshake ({error}): the process there"
                " is stopped, overloaded or about to end",
                address=address,
                silent=isinstance(error, TimeoutError),
            )
