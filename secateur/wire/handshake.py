"""The hello: the first request on every connection, which proves the token before any other request is read.

The token is the users' secret. Each cluster also has a secret of its own, made at its start and never given to a
client: members and the controller recognise each other by it, and refuse requests of clients that are reserved to the
cluster.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from secateur.errors import AuthenticationError, UnreachableError
from secateur.protocol.access import AccessRecord, Rights
from secateur.protocol.codec import decode
from secateur.protocol.hello import Greeting, Hello
from secateur.protocol.message import Role
from secateur.protocol.operations import Operation
from secateur.protocol.tokens import GrantedToken, digest_of
from secateur.wire.frames import Frame, Limits

Verifier: TypeAlias = Callable[[str], GrantedToken | None]
"""What a signed token says, for one that this cluster did not make; None for a text that is none.

Raises:
    AuthenticationError: It is one, and not valid.
"""


class TokenBook:
    """Finds tokens by their digest, and knows what their bearers may do. Lives on one event loop.

    Args:
        is_complete: Whether it is as it should be from the beginning. If not, it is once it was told the tokens: a
            process that has just started does not know them yet, and may not call one wrong.
        verifier: Reads signed tokens of others; None where there are none.
    """

    def __init__(self, *, is_complete: bool = True, verifier: Verifier | None = None) -> None:
        self.is_complete = is_complete
        self.access = AccessRecord()
        self._verifier = verifier
        self._tokens: dict[bytes, GrantedToken] = {}
        self._revoked: frozenset[bytes] = frozenset()

    def take(self, access: AccessRecord) -> None:
        """Accept the tokens of a record and no others, with the roles and policies in it."""
        self.is_complete = True
        self.access = access
        self._tokens = {token.digest: token for token in access.tokens}
        self._revoked = frozenset(token.digest for token in access.revoked)

    def find(self, token: str) -> GrantedToken | None:
        """The record of a token; None if there is no such token, or it was revoked.

        Raises:
            AuthenticationError: It is over, or a signed one that is not valid.
            UnreachableError: The tokens of the cluster are not known yet.
        """
        found = self._tokens.get(digest_of(token))
        if found is None and not self.is_complete:  # nor does it know yet what the roles of a signed one may do
            raise UnreachableError(
                "this process has just started and does not know the tokens of the cluster yet: connect again"
            )
        if found is None and self._verifier is not None:
            found = self._verifier(token)
        if found is not None and found.is_over:
            raise AuthenticationError(f"the token {found.id!r} has expired: ask for another one")
        return found and self.current(found)

    def current(self, token: GrantedToken) -> GrantedToken | None:
        """A token as it is now; None if it was revoked. A signed one stays as it is until then."""
        if token.is_signed:
            return None if token.digest in self._revoked else token
        return self._tokens.get(token.digest)

    def rights(self, token: GrantedToken | None) -> Rights | None:
        """What the bearer of a token may do; None for one that may do everything that its role allows."""
        return None if token is None else Rights.of(token, self.access)


_CLIENT_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class ClusterIdentity:
    """The role that a process of the cluster claims in its hello, and proves by the secret that no client knows."""

    role: Role
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Proven:
    """The claims that a hello has proved: name, role and session of the peer, and its token; None for the cluster's."""

    client: str
    role: Role
    session: str
    token: GrantedToken | None = None


def hello(
    token: str | None = None, client: str = "", identity: ClusterIdentity | None = None, session: str = ""
) -> Hello:
    """The hello of a side that connects.

    ``client`` is a name for the logs of the server, by default that of the process. ``session`` is what the connections
    of one client session have in common.
    """
    client = client or f"python pid {os.getpid()}"
    if identity is None:
        return Hello(token=token, client=client, session=session)
    return Hello(token=token, client=client, role=identity.role.value, secret=identity.secret)


def check_hello(frame: Frame, token: str | None, secret: str | None = None, tokens: TokenBook | None = None) -> Proven:
    """Judge the first request of a connection.

    A client has to know the ``token``, or one of the others, and a process of the cluster the ``secret``; None where
    there is none.

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
    return Proven(said.client[:_CLIENT_CHARS_MAX], _role(said, secret), said.session[:_CLIENT_CHARS_MAX], granted)


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
