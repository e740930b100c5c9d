"""The address of a cluster, as text and as host and port."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from secateur.errors import InterfaceError

_SCHEME: Final = "secateur"


def parse_address(address: str) -> tuple[str, int]:
    """Read ``secateur://host:port``; an IPv6 host stands in brackets.

    Raises:
        InterfaceError: The text has another form; the message explains the problem.
    """
    if not isinstance(address, str):
        raise _wrong(address, f"is a {type(address).__name__}")
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _wrong(address, f"does not parse ({error})") from error
    if parts.scheme != _SCHEME or not address.lower().startswith(f"{_SCHEME}://"):
        raise _wrong(address, f"does not start with {_SCHEME}://")
    if parts.username is not None or parts.password is not None:
        raise _wrong(f"{_SCHEME}://...@{host}:{port}", "names a user; pass the secret as token=")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise _wrong(address, "has text after the port")
    if not host:
        raise _wrong(address, "has no host")
    if not port:
        raise _wrong(address, "has no port")
    return host, port


def _wrong(address: object, reason: str) -> InterfaceError:
    return InterfaceError(
        f"address {address!r} {reason}: use the form {_SCHEME}://host:port, such as cluster.address gives"
    )
