"""Who may make tokens."""

from __future__ import annotations

import asyncio

import pytest

from secateur.cluster.controller import TokenCommands
from secateur.errors import AuthenticationError
from secateur.protocol import AccessRecord, CreateToken, GrantedToken, Operation, TokenRole
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
        commands = TokenCommands(state, has_token=True)  # type: ignore[arg-type]
        peer = PeerInfo(1, "test", "test", True, token=GrantedToken("t1", bearer))
        request = Request(Operation.CREATE_TOKEN, CreateToken(asked), memoryview(b""), peer)
        if asked > bearer:
            with pytest.raises(AuthenticationError, match="nothing was done"):
                await commands.create(request)
        else:
            await commands.create(request)
        return len(state.access.tokens)

    assert asyncio.run(main()) == (asked <= bearer)
