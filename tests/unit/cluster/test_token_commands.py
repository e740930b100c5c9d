"""Who may make tokens, and what becomes of those that are revoked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from secateur.cluster.controller import TokenCommands
from secateur.errors import AuthenticationError, LimitExceededError, ProgrammingError
from secateur.protocol import AccessRecord, CreateToken, GrantedToken, Operation, RevokeToken, TokenRole
from secateur.wire import PeerInfo, Request


class State:
    """What the controller keeps: as if every member were told at once."""

    access = AccessRecord()

    async def all_reached(self) -> None:
        """They are."""


@pytest.mark.parametrize("bearer", TokenRole)
@pytest.mark.parametrize("asked", TokenRole)
def test_nobody_makes_a_token_above_its_own_role(bearer: TokenRole, asked: TokenRole) -> None:
    async def main() -> int:
        state = State()
        commands = TokenCommands(state, lambda _: None, has_token=True)  # type: ignore[arg-type]
        peer = PeerInfo(1, "test", "test", True, token=GrantedToken("t1", bearer))
        request = Request(Operation.CREATE_TOKEN, CreateToken(asked), memoryview(b""), peer)
        if asked > bearer:
            with pytest.raises(AuthenticationError, match="nothing was done"):
                await commands.create(request)
        else:
            await commands.create(request)
        return len(state.access.tokens)

    assert asyncio.run(main()) == (asked <= bearer)


def signed(name: str, expires: float) -> GrantedToken:
    return GrantedToken(f"jwt:{name}", TokenRole.WRITE, name.encode(), expires=expires, is_signed=True)


def revoked(state: State, *given: str, known: Sequence[GrantedToken] = ()) -> list[str]:
    """Revoke tokens, of which the signed ones are found by their ids; the ids that are answered."""
    by_text = {token.id: token for token in known}
    commands = TokenCommands(state, by_text.get, has_token=True)  # type: ignore[arg-type]
    peer = PeerInfo(1, "test", "test", True)

    async def main() -> list[str]:
        requests = [Request(Operation.REVOKE_TOKEN, RevokeToken(one), memoryview(b""), peer) for one in given]
        return [(await commands.revoke(request)).message.id for request in requests]

    return asyncio.run(main())


def test_a_signed_token_that_is_revoked_is_kept_until_it_has_ended_by_every_clock() -> None:
    state, now = State(), time.time()
    made, ended, late = GrantedToken("t1", TokenRole.READ), signed("ended", now - 7200), signed("late", now - 60)
    state.access = AccessRecord((made,), revoked=(ended, late))
    lives, for_ever = signed("lives", now + 60), signed("for ever", 1e300)
    assert revoked(state, lives.id, for_ever.id, known=[lives, for_ever]) == [lives.id, for_ever.id]
    assert [token.id for token in state.access.revoked] == [late.id, lives.id, for_ever.id]
    listed = state.access.listed_tokens
    assert [(token.id, token.revoked is not None, token.digest) for token in listed] == [
        ("t1", False, b""),
        (lives.id, True, b""),
        (for_ever.id, True, b""),
    ]
    assert (listed[-1].expires or 0) < 2**33, "a calendar can show it"
    assert revoked(state, "t1") == ["t1"]
    assert state.access.tokens == ()
    assert len(state.access.revoked) == 3


def test_what_cannot_be_revoked_is_said_without_a_secret() -> None:
    def refuse(_: str) -> GrantedToken:
        raise AuthenticationError("the signed token is not accepted: Signature has expired")

    state = State()
    state.access = AccessRecord((GrantedToken("t1", TokenRole.READ),))
    with pytest.raises(ProgrammingError, match="there is no token 'eyJhbGciOiJFUzI1'; there are t1") as caught:
        revoked(state, "eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.e30.c2VjcmV0")
    assert "c2VjcmV0" not in str(caught.value)
    commands = TokenCommands(state, refuse, has_token=True)  # type: ignore[arg-type]
    request = Request(Operation.REVOKE_TOKEN, RevokeToken("ey.a.b"), memoryview(b""), PeerInfo(1, "t", "t", True))
    with pytest.raises(ProgrammingError, match=r"nothing to revoke: .*has expired"):
        asyncio.run(commands.revoke(request))


def test_there_is_a_bound_on_signed_tokens_that_are_revoked() -> None:
    state, one = State(), signed("one", time.time() + 60)
    state.access = AccessRecord(revoked=(one,) * 1000)
    with pytest.raises(LimitExceededError, match="have their issuer sign with another key"):
        revoked(state, one.id, known=[one])
