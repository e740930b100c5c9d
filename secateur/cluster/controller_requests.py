"""The requests of a member to the controller, which are repeated while that is being started anew."""

from __future__ import annotations

import asyncio
from typing import Final, TypeVar

from secateur.client.execution.retry_policy import CONTROLLER_WAIT_S
from secateur.errors import MemberLostError, UnreachableError
from secateur.protocol.message import Message
from secateur.protocol.operation import operation_of
from secateur.wire import Answer, Payload
from secateur.wire.peer import Peer

_PAUSE_S: Final = 0.1

R = TypeVar("R")


class ControllerRequests:
    """Sends requests to the controller, again and again for a while if repeating them does no harm.

    Args:
        controller: The controller.
        wait_s: How long to wait for a controller that cannot be reached.
    """

    def __init__(self, controller: Peer, wait_s: float = CONTROLLER_WAIT_S) -> None:
        self._controller = controller
        self._wait_s = wait_s

    async def request(self, message: Message[R], payload: Payload = b"") -> Answer[R]:
        """Send a request and wait for the whole answer.

        Raises:
            Error: As :meth:`secateur.wire.Peer.request`.
        """
        loop = asyncio.get_running_loop()
        end_s: float | None = None  # counted from the first failure: the request may have waited long for its answer
        while True:
            try:
                return await self._controller.request(message, payload)
            except (UnreachableError, MemberLostError) as error:
                end_s = end_s or loop.time() + self._wait_s
                is_own = error.details.get("address") == self._controller.address  # else the controller's answer
                if not is_own or not operation_of(message).is_idempotent or loop.time() >= end_s:
                    raise
            await asyncio.sleep(_PAUSE_S)
