"""The hello: the first request on every connection, which proves the token before any other request is read.

The token is the users' secret. Each cluster also has a secret of its own, made at its start and never given to a
client: members and the controller recognise each other by it, and refuse requests of clients that are reserved to the
cluster.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from secateur.errors import AuthenticationError, UnreachableError
from secateur.protocol.codec import decode
from secateur.protocol.hello import Greeting, Hello
from secateur.protocol.message import Role
from secateur.protocol.operations import Operation
from secateur.protocol.tokens import GrantedToken, TableRights, TokenRole, digest_of
from secateur.wire.frames import Frame
from secateur.wire.limits import Limits


class TokenBook:
    """Finds tokens by their digest. Lives on one event loop.

    Args:
        is_complete: Whether it is as it should be from the beginning. If not, it is once it was told the tokens: a
            process that has just started does not know them yet, and may not call one wrong.
    """

    def __init__(self, *, is_complete: bool = True) -> None:
        self.is_complete = is_complete
        self._tokens: dict[bytes, GrantedToken] = {}

    def take(self, tokens: Iterable[GrantedToken]) -> None:
        """Accept these tokens and no others."""
        self.is_complete = True
        self._tokens = {token.digest: token for token in tokens}

    def find(self, token: str) -> GrantedToken | None:
        """The record of a token; None if there is no such token.

        Raises:
            UnreachableError: The tokens of the cluster are not known yet.
        """
        found = self._tokens.get(digest_of(token))
        if found is None and not self.is_complete:
            raise UnreachableError(
                "this process has just started and does not know the tokens of the cluster yet: connect again"
            )
        return found

    def has(self, token_id: str) -> bool:
        """Whether a token is valid still."""
        return any(token.id == token_id for token in self._tokens.values())


_CLIENT_CHARS_MAX = 200


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
class Proven:
    """The claims that a hello has proved: name, role and session of the peer, and what its token is good for."""

    client: str
    role: Role
    session: str
    token_role: TokenRole = TokenRole.CODE
    token_id: str | None = None
    rights: TableRights | None = None


def hello(token: str | None, client: str, identity: ClusterIdentity | None, session: str = "") -> Hello:
    """The hello of a side that connects."""
    if identity is None:
        return Hello(token=token, client=client, session=session)
    return Hello(token=token, client=client, role=identity.role.value, secret=identity.secret)


def check_hello(frame: Frame, token: str | None, secret: str | None = None, tokens: TokenBook | None = None) -> Proven:
    """Judge the first request of a connection.

    Args:
        frame: The request.
        token: The secret that a client has to know; None if there is none.
        secret: The secret that a process of the cluster has to know; None where there are no such processes.
        tokens: Other tokens that are accepted, with their roles.

    Raises:
        AuthenticationError: It is no hello, its token is not ``token``, or it claims to be part of the cluster without
            knowing ``secret``.
        UnreachableError: The tokens are not known yet.
    """
    if frame.operation != Operation.HELLO.code:
        raise AuthenticationError(
            f"the first request of a connection has to be the hello, and this one asks for operation {frame.operation}"
        )
    said = decode(frame.header, Hello)
    granted = None
    if token is not None:
        if said.token is None:
            raise AuthenticationError(
                'this cluster asks for a token and none was given: pass token=... to connect (.option("token", ...) in'
                " Spark), or set SECATEUR_TOKEN; it is cluster.token in the process that started it"
            )
        if not _is_same(said.token, token):
            granted = None if tokens is None else tokens.find(said.token)
            if granted is None:
                raise AuthenticationError(
                    "the token is wrong or was revoked: use the one that the cluster was started with, or one that was"
                    " made since"
                )
    proven = Proven(said.client[:_CLIENT_CHARS_MAX], _role(said, secret), said.session[:_CLIENT_CHARS_MAX])
    if granted is None:
        return proven
    rights = TableRights.of(granted.id, granted.tables)
    return replace(proven, token_role=granted.role, token_id=granted.id, rights=rights)


def _role(said: Hello, secret: str | None) -> Role:
    if said.role is None and said.secret is None:
        return Role.CLIENT
    is_known = secret is not None and said.secret is not None and _is_same(said.secret, secret)
    if not is_known or said.role not in (Role.MEMBER, Role.CONTROLLER):
        raise AuthenticationError(
            f"the hello claims to come from a {str(said.role)[:40]!r} of this cluster and does not prove it: connect as"
            " a client"
        )
    return Role(said.role)


def _is_same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(errors="surrogatepass"), expected.encode())


def peer_limits(greeting: Greeting, own: Limits) -> Limits:
    """The bounds to hold when sending: ours, tightened by what the server said in its answer to hello."""
    theirs = greeting.limits
    if theirs is None:
        return own
    return Limits(
        frame_bytes_max=min(own.frame_bytes_max, theirs.frame_bytes_max),
        header_bytes_max=min(own.header_bytes_max, theirs.header_bytes_max),
    )
