"""Certificates that are renewed while a server runs: each handshake shows what the files have by then.

Looking costs one ``stat`` a file and handshake. A live context is never loaded again: a key that does not belong to the
certificate yet would leave it with neither. Each change of the files makes a context of its own, and the handshake is
moved to it in the callback that OpenSSL calls when the client has said hello.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import TypeAlias

_log = logging.getLogger(__name__)

FileStamp: TypeAlias = tuple[int, int, int] | None
"""Inode, bytes, and the time of the last change in nanoseconds; None for a file that cannot be looked at."""


def file_stamp(path: str | Path | None) -> FileStamp:
    """The stamp of a file, which changes when the file is written or replaced; links are followed."""
    if path is None:
        return None
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class RenewedCertificate:
    """The certificate of a server. Handshakes may come from several threads; at worst two of them read the files.

    Args:
        certificate: File in PEM.
        key: File in PEM of its key; None: it is in the same file.

    Attributes:
        context: The context with which the server listens.

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
