"""The tokens that a server accepts beside the one of the cluster."""

from __future__ import annotations

from collections.abc import Iterable

from secateur.errors import UnreachableError
from secateur.protocol.tokens import GrantedToken, digest_of


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
        """What a token was made for; None if there is no such token.

        Raises:
            UnreachableError: That is not known yet.
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
