"""The hello: the first request on every connection, which proves the token before anything else is read."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import Any, Final

from secateur.errors import AuthenticationError, ProtocolError
from secateur.wire.frames import PROTOCOL_VERSION
from secateur.wire.limits import Limits

__all__ = ["HELLO", "Hello", "peer_limits"]

HELLO: Final = "hello"


@dataclass(frozen=True, slots=True)
class Hello:
    """What a connecting side says about itself.

    Attributes:
        token: The secret of the cluster; None when it has none.
        client: A name for logs and lists.
    """

    token: str | None = field(repr=False)
    client: str

    def args(self) -> dict[str, Any]:
        return {"token": self.token, "protocol": PROTOCOL_VERSION, "client": self.client}

    @classmethod
    def check(cls, op: str, args: dict[str, Any], token: str | None) -> Hello:
        """Judge the first request of a connection.

        Raises:
            AuthenticationError: It is no hello, or its token is not ``token``.
            ProtocolError: Its protocol version is not ours.
        """
        if op != HELLO:
            raise AuthenticationError(f"the first request of a connection has to be {HELLO!r}, got {op!r}")
        if args.get("protocol") != PROTOCOL_VERSION:
            raise ProtocolError(f"the hello asks for protocol version {args.get('protocol')!r}, this side speaks {PROTOCOL_VERSION}")
        given = args.get("token")
        if token is not None:
            if given is None:
                raise AuthenticationError("this cluster asks for a token and none was given: pass token=... to connect")
            if not hmac.compare_digest(str(given).encode(errors="surrogatepass"), token.encode()):
                raise AuthenticationError("the token is wrong: use the one that the cluster was started with")
        return cls(None, str(args.get("client", ""))[:200])


def peer_limits(hello_reply: dict[str, Any], own: Limits) -> Limits:
    """The bounds to hold when sending: ours, tightened by what the server said in its answer to hello."""
    theirs = hello_reply.get("limits") or {}
    return Limits(
        frame_bytes_max=min(own.frame_bytes_max, theirs.get("frame_bytes_max", own.frame_bytes_max)),
        header_bytes_max=min(own.header_bytes_max, theirs.get("header_bytes_max", own.header_bytes_max)),
    )
