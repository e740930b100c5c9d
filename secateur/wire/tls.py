"""TLS of connections: the files that a user names, and what the standard library makes of them."""

from __future__ import annotations

import logging
import os
import ssl
import sys
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

from secateur.errors import AuthenticationError, Error, ProgrammingError, ProtocolError, UnreachableError

_CONTEXTS_MAX: Final = 64
_log = logging.getLogger(__name__)

FileStamp: TypeAlias = tuple[int, int, int] | None
"""Inode, bytes, and the time of the last change in nanoseconds; None for a file that cannot be looked at."""


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


def file_stamp(path: str | Path | None) -> FileStamp:
    """The stamp of a file, which changes when the file is written or replaced; links are followed."""
    if path is None:
        return None
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class _RenewedCertificate:
    """The certificate of a server. Handshakes may come from several threads; at worst two of them read the files.

    Looking costs one ``stat`` a file and handshake. A live context is never loaded again: a key that does not belong to
    the certificate yet would leave it with neither. Each change of the files makes a context of its own, and the
    handshake is moved to it in the callback that OpenSSL calls when the client has said hello.

    ``context`` is that with which the server listens.

    Raises:
        OSError: A file cannot be read, or the key does not belong to the certificate.
    """

    def __init__(self, certificate: str | Path, key: str | Path | None) -> None:
        self._certificate = certificate
        self._key = key
        self._stamps = self._seen()
        self._newest = self.context = self._loaded()
        self.context.sni_callback = self._show_newest

    def _seen(self) -> tuple[FileStamp, FileStamp]:
        return file_stamp(self._certificate), file_stamp(self._key)

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._certificate, self._key)
        return context

    def _show_newest(self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _: ssl.SSLContext) -> None:
        """Runs in each handshake, whether its client names a server or not."""
        stamps = self._seen()
        if stamps != self._stamps:
            self._stamps = stamps
            try:
                self._newest = self._loaded()
            except OSError as error:  # perhaps the key is written next: its change is looked at again
                _log.warning(
                    "the certificate %s was changed and cannot be used (%s): connections get the one before it",
                    self._certificate,
                    error,
                )
            else:
                _log.info("the certificate %s was renewed", self._certificate)
        if self._newest is not self.context:
            connection.context = self._newest


def server_context(tls: Tls) -> ssl.SSLContext:
    """The context in which a server accepts connections. Each handshake shows the certificate in the files by then.

    Raises:
        ProgrammingError: There is no certificate, or a file cannot be read or used.
    """
    if tls.certificate is None:
        raise ProgrammingError("tls= of a server needs a certificate and its key: Tls(certificate=..., key=...)")
    try:
        return _RenewedCertificate(tls.certificate, tls.key).context
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
