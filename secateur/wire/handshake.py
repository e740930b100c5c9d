"""The hello: the first request on every connection, which proves the token before any other request is read.

The token is the users' secret. Each cluster also has a secret of its own, made at its start and never given to a
client: members and the controller recognise each other by it, and refuse requests of clients that are reserved to the
cluster.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import Any, Final

from secateur.errors import AuthenticationError, ProtocolError
from secateur.wire.frames import PROTOCOL_VERSION
from secateur.wire.limits import Limits
from secateur.wire.messages import Role

__all__ = ["HELLO", "ClusterIdentity", "Hello", "peer_limits"]

HELLO: Final = "hello"


@dataclass(frozen=True, slots=True)
class ClusterIdentity:
    """The identity that a process of the cluster claims and proves in its hello.

    Attributes:
        role: Its role.
        secret: The secret of the cluster, which no client knows.
    """

    role: Role
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message of a connecting side.

    Attributes:
        token: The secret of the cluster; None when it has none.
        client: A name for logs and lists.
        identity: The identity that a process of the cluster proves; None for a client.
    """

    token: str | None = field(repr=False)
    client: str
    identity: ClusterIdentity | None = field(default=None, repr=False)

    @property
    def role(self) -> Role:
        return Role.CLIENT if self.identity is None else self.identity.role

    def args(self) -> dict[str, Any]:
        args: dict[str, Any] = {"token": self.token, "protocol": PROTOCOL_VERSION, "client": self.client}
        return (
            args
            if self.identity is None
            else {**args, "role": self.identity.role.value, "secret": self.identity.secret}
        )

    @classmethod
    def check(cls, op: str, args: dict[str, Any], token: str | None, secret: str | None = None) -> Hello:
        """Validate the first request of a connection.

        Args:
            op: Its operation.
            args: Its arguments.
            token: The token that a client must have; None for none.
            secret: The secret that a process of the cluster must have; None where there are no such processes.

        Raises:
            AuthenticationError: It is not a hello, its token is not ``token``, or it claims to be part of the cluster
                without the ``secret``.
            ProtocolError: Its protocol version is not ours.
        """
        if op != HELLO:
            raise AuthenticationError(f"the first request of a connection has to be {HELLO!r}, got {op!r}")
        if args.get("protocol") != PROTOCOL_VERSION:
            raise ProtocolError(
                f"the hello asks for protocol version {args.get('protocol')!r}, this side speaks {PROTOCOL_VERSION}"
            )
        given = args.get("token")
        if token is not None:
            if given is None:
                raise AuthenticationError(
                    "this cluster asks for a token and none was given: pass token=... to connect, or set"
                    " SECATEUR_TOKEN; it is cluster.token in the process that started it"
                )
            if not hmac.compare_digest(str(given).encode(errors="surrogatepass"), token.encode()):
                raise AuthenticationError("the token is wrong: use the one that the cluster was started with")
        return cls(None, str(args.get("client", ""))[:200], _identity(args, secret))


def _identity(args: dict[str, Any], secret: str | None) -> ClusterIdentity | None:
    role, given = args.get("role"), args.get("secret")
    if role is None and given is None:
        return None
    is_known = secret is not None and hmac.compare_digest(str(given).encode(errors="surrogatepass"), secret.encode())
    if not is_known or role not in (Role.MEMBER, Role.CONTROLLER):
        raise AuthenticationError(
            f"the hello claims to come from a {str(role)[:40]!r} of this cluster and does not prove it: connect as a"
            " client"
        )
    return ClusterIdentity(Role(role), "")


def peer_limits(hello_reply: dict[str, Any], own: Limits) -> Limits:
    """Return the bounds for sending: our own, tightened by those in the server's answer to hello."""
    theirs = hello_reply.get("limits") or {}
    return Limits(
        frame_bytes_max=min(own.frame_bytes_max, theirs.get("frame_bytes_max", own.frame_bytes_max)),
        header_bytes_max=min(own.header_bytes_max, theirs.get("header_bytes_max", own.header_bytes_max)),
    )
