"""The statements that a member was asked to execute: those that run, and the newest of those that have ended. ``secateur.statements`` shows them.

It must cost next to nothing beside a statement of 100 microseconds: an entry is a tuple, and what it says in words is worked out when somebody asks.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

from secateur.wire import Reply, Request

__all__ = ["StatementLog"]

_ENDED_MAX: Final = 1000

_FIELDS: Final = ("execution", "members", "partitions_read", "rows")

_Ended = tuple[int, str, float, float, tuple[Any, ...] | None, str | None]
"""Number, id of the plan, seconds since the epoch, seconds that it took, ``_FIELDS`` of the answer's header, and what went wrong."""


class StatementLog:
    """What one member executed. Lives on its event loop.

    Args:
        member_id: The member.
        ended_max: How many ended statements are remembered.
    """

    def __init__(self, member_id: str, ended_max: int = _ENDED_MAX) -> None:
        self._member_id = member_id
        self._count = 0
        self._running: dict[int, tuple[str, float]] = {}
        self._ended: deque[_Ended] = deque(maxlen=ended_max)

    def execute(self, request: Request, run: Callable[[Request], Reply | Awaitable[Reply]]) -> Reply | Awaitable[Reply]:
        """Run a statement, and remember it."""
        plan_id = request.args["plan"]
        self._count = number = self._count + 1
        started_s, begun = time.time(), time.perf_counter()
        try:
            reply = run(request)
        except Exception as error:
            self._ended.append((number, plan_id, started_s, time.perf_counter() - begun, None, f"{type(error).__name__}: {error}"))
            raise
        if not isinstance(reply, Reply):
            return self._awaited(number, plan_id, started_s, reply)
        self._ended.append((number, plan_id, started_s, time.perf_counter() - begun, tuple(map(reply.header.get, _FIELDS)), None))
        return reply

    async def _awaited(self, number: int, plan_id: str, started_s: float, reply: Awaitable[Reply]) -> Reply:
        begun = time.perf_counter()
        self._running[number] = plan_id, started_s
        said, failure = None, None
        try:
            answer = await reply
            said = tuple(map(answer.header.get, _FIELDS))
            return answer
        except BaseException as error:
            failure = f"{type(error).__name__}: {error}"
            raise
        finally:
            del self._running[number]
            self._ended.append((number, plan_id, started_s, time.perf_counter() - begun, said, failure))

    def send(self, _: Request) -> Reply:
        """Answer ``statements``: the running ones, then the ended ones from new to old."""
        now_s = time.time()
        running = [
            {"number": number, "plan_id": plan_id, "state": "running", "started": started_s, "elapsed_ms": 1000 * (now_s - started_s)}
            for number, (plan_id, started_s) in self._running.items()
        ]
        return Reply({"statements": [*running, *map(self._described, reversed(self._ended))]})

    def _described(self, entry: _Ended) -> dict[str, Any]:
        number, plan_id, started_s, elapsed_s, said, failure = entry
        known = {"number": number, "plan_id": plan_id, "started": started_s, "elapsed_ms": 1000 * elapsed_s}
        if said is None:
            return {**known, "state": "failed", "error": failure}
        answered = dict(zip(_FIELDS, said, strict=True))
        # An answer that names no members is this member's alone.
        return {**known, "state": "done", **answered, "members": answered["members"] or [self._member_id]}
