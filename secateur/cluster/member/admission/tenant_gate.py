"""The gate of a member that has tenants: their limits, what their statements cost, and their shares of the event loop.

Requests of clients pass it from the moment on when the first connects that is not the owner. Statements that have to be
admitted wait in :class:`~secateur.cluster.member.admission.statement_queue.StatementQueue`. Those that the event loop
answers at once cost less than waiting, so they are let pass; but where one tenant takes more than its share of an event
loop that has much to do, and others are there, it is *paced*: its next statements wait until its share allows them.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final, cast

from msgspec.structs import replace

from secateur.cluster.member.admission.statement_admission import Admissions
from secateur.cluster.member.admission.tenants import TenantAccount, TenantAccounts
from secateur.cluster.member.statements.open_results import OpenResults
from secateur.engine.threads import METER, WORK, StatementWork
from secateur.errors import LimitExceededError
from secateur.protocol.message import Role
from secateur.protocol.operations import Operation
from secateur.protocol.query import Executed, PartOfRows, StatementCost
from secateur.wire import Handled, Payload, PeerInfo, Reply, Request

_STATEMENTS: Final = frozenset(
    {
        Operation.EXECUTE,
        Operation.EXECUTE_FIRST_STAGE,
        Operation.EXECUTE_MANY,
        Operation.PROFILE,
        Operation.GET_ROWS,
        Operation.OPEN_SNAPSHOT,
        Operation.CHANGE_ONE_PARTITION,
        Operation.CHANGE_MANY,
        Operation.WRITE_ROWS,
        Operation.WRITE_MANY,
    }
)
"""Requests that begin a statement."""
_MEASURED: Final = _STATEMENTS | {Operation.NEXT_ROWS, Operation.READ_SNAPSHOT}
_MANY: Final = frozenset({Operation.EXECUTE_MANY, Operation.CHANGE_MANY})

_WINDOW_S: Final = 0.1
"""The use of the event loop is looked at over so long."""
_PRESENT_S: Final = 1.0
"""A tenant counts as present for so long after its last short statement."""
_CONTENDED: Final = 0.7
"""Below this share of a processor the event loop has time for everybody: to pace a tenant costs it more than answering
its look-ups, and at 0.4 the others' 99th percentile was no better for it.
"""
_BURST_S: Final = 0.0002
"""A paced tenant may use so many seconds at a time: others wait no longer than that for it."""
_PACED_MAX: Final = 1000
"""Paced statements of one tenant that wait; one more is refused."""


class TenantGate:
    """Lives on the event loop of a member.

    Args:
        clock: Seconds that only grow.
        loop_clock: Seconds of processor time of the event loop.
    """

    def __init__(
        self,
        accounts: TenantAccounts,
        admissions: Admissions,
        results: OpenResults,
        clock: Callable[[], float] = time.perf_counter,
        loop_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._accounts = accounts
        accounts.on_busy = self._look
        self._admissions = admissions
        self._results = results
        self._clock = clock
        self._window_began_s = clock()
        self._loop_clock = loop_clock
        self._loop_s = loop_clock()
        self._paced: dict[TenantAccount, _Pace] = {}
        self._rows_read: dict[int, int] = {}  # of open results that may not have more than so many, by connection
        METER.is_on = True

    def gone(self, peer: PeerInfo) -> None:
        """A connection has ended."""
        self._rows_read.pop(peer.connection_id, None)

    def may_answer(self, account: TenantAccount) -> bool:
        """Whether the next short statement of a tenant that is not free may be answered at once."""
        group = account.group
        if group.rate is not None or group.max_rows is not None:
            return False  # to be counted in the general way
        pace = self._paced.get(account)
        return pace is None or pace.may_go()

    def handle(self, request: Request[Any], handler: Callable[[Request[Any]], Handled]) -> Handled:
        """Handle a request within the limits of its tenant.

        Raises:
            LimitExceededError: It is beyond them; nothing was done.
            Error: As the handler.
        """
        peer, operation = request.peer, request.operation
        if operation not in _MEASURED or peer.role is not Role.CLIENT:
            return handler(request)
        account = self._accounts.of(peer)
        if operation in _STATEMENTS:
            if account.group.rate is not None:
                account.check_rate(_count(request))
            pace = self._paced.get(account)
            if pace is not None and not pace.may_go():
                return self._later(pace, account, request, handler)
        return self._handled(account, request, handler)

    async def _later(
        self,
        pace: _Pace,
        account: TenantAccount,
        request: Request[Any],
        handler: Callable[[Request[Any]], Handled],
    ) -> Reply[Any]:
        await pace.turn()
        handled = self._handled(account, request, handler)
        return handled if isinstance(handled, Reply) else await cast("Awaitable[Reply[Any]]", handled)

    def _handled(
        self, account: TenantAccount, request: Request[Any], handler: Callable[[Request[Any]], Handled]
    ) -> Handled:
        begun = self._clock()
        handled = handler(request)
        elapsed_s = self._clock() - begun
        account.worked(elapsed_s)
        if isinstance(handled, Reply):
            return self._checked(account, request, handled)
        if type(handled) is asyncio.Future or not isinstance(handled, Awaitable):
            return handled  # a change that is made, and waits for its copies
        measured = self._measured(account, request, handled)
        if isinstance(handled, Coroutine):  # one that is cancelled before it begins would never await this
            weakref.finalize(measured, handled.close).atexit = False
        return measured

    async def _measured(
        self, account: TenantAccount, request: Request[Any], answering: Awaitable[Reply[Any]]
    ) -> Reply[Any]:
        group, operation = account.group, request.operation
        work = StatementWork(group.max_memory)
        WORK.set(work)  # of this task, and of those that it starts
        timeout_ms = group.statement_timeout_ms if operation.is_abandonable else None
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000) as deadline:
                reply = await answering
        except TimeoutError:
            if not deadline.expired():
                raise
            if operation is Operation.NEXT_ROWS:
                self._results.close(request.peer)
            raise LimitExceededError(
                f"the statement took longer than {timeout_ms} ms, the statement_timeout of resource group"
                f" {group.name!r}, and was cancelled",
                limit="statement_timeout",
                tenant=account.name,
                retry_safe=True,
            ) from None
        finally:
            cost = StatementCost(1000 * sum(work.processor_times), work.rows_read)
            self._settle(account, request.peer, work)
            work.added_late = partial(self._settle, account, request.peer, work)
        if work.loop_s:
            account.worked(work.loop_s, _count(request))
        if isinstance(reply.message, Executed) and not reply.message.has_more:
            reply = Reply(replace(reply.message, cost=cost), reply.payload)
        return self._checked(account, request, reply)

    def _settle(self, account: TenantAccount, peer: PeerInfo, work: StatementWork) -> None:
        """Count the work of a statement that was not counted yet, and charge what was not charged."""
        use = account.use
        used_s = sum(work.processor_times)
        use.kernel_s += used_s - work.counted_s
        work.counted_s = used_s
        use.rows_read += work.rows_read
        work.rows_read = 0
        self._admissions.long.charge(peer, work.uncharged_s())

    def _checked(self, account: TenantAccount, request: Request[Any], reply: Reply[Any]) -> Reply[Any]:
        """An answer that has no more rows than one may have."""
        account.bytes_sent += _bytes_of(reply.payload)
        if request.operation is Operation.GET_ROWS:
            account.gets += 1
        rows_max, said = account.group.max_rows, reply.message
        if rows_max is None or not isinstance(said, (Executed, PartOfRows)):
            return reply
        connection_id = request.peer.connection_id
        rows = said.rows + (self._rows_read.pop(connection_id, 0) if isinstance(said, PartOfRows) else 0)
        if rows > rows_max:
            self._results.close(request.peer)
            raise LimitExceededError(
                f"the result has more than {rows_max:,} rows, the max_rows of resource group {account.group.name!r}:"
                " aggregate or filter more, or add a LIMIT",
                limit="max_rows",
                tenant=account.name,
            )
        if said.has_more:
            self._rows_read[connection_id] = rows
        return reply

    def _look(self) -> None:
        """A tenant has much to do on the event loop: look who takes more than its share of it."""
        now_s = self._clock()
        window_s = now_s - self._window_began_s
        if window_s < _WINDOW_S:
            return
        loop_s = self._loop_clock()  # of the thread that calls this
        busy_s, self._window_began_s, self._loop_s = loop_s - self._loop_s, now_s, loop_s
        used = {}
        present = []
        for account in self._accounts:
            used_s = account.window_ended()
            if used_s:
                used[account], account.seen_s = used_s, now_s
            if account.seen_s > now_s - _PRESENT_S:
                present.append(account)
        weights = sum(account.group.weight for account in present)
        counted_s = sum(used.values())
        is_contended = len(present) > 1 and busy_s > _CONTENDED * window_s
        for account, used_s in used.items():
            fair = account.group.weight / weights
            pace = self._paced.get(account)
            if pace is None and is_contended and used_s > fair * counted_s and account.name:
                pace = self._paced[account] = _Pace(account, self._clock)
                account.pace(is_paced=True)
            if pace is None:
                continue
            if len(present) == 1 or not pace.has_waited():
                del self._paced[account]
                account.pace(is_paced=False)
                pace.release_all()
            else:
                # What is counted is a part of what the event loop does for a statement: it reads and writes as well.
                pace.rate = fair * min(counted_s / max(busy_s, counted_s), 1.0)


class _Pace:
    """The pace of a tenant that takes more than its share: a token bucket of seconds of the event loop."""

    def __init__(self, account: TenantAccount, clock: Callable[[], float]) -> None:
        self.rate = 1.0
        self._account = account
        self._clock = clock
        self._filled_s = clock()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._has_waited = True  # it has just begun
        account.credit_s = 0.0

    def may_go(self) -> bool:
        """Whether a statement may go on at once; it has to be its turn, and there has to be credit."""
        return not self._waiting and self._filled() > 0

    def has_waited(self) -> bool:
        """Whether a statement has waited since this was asked last."""
        waited, self._has_waited = self._has_waited or bool(self._waiting), False
        return waited

    async def turn(self) -> None:
        """Wait until a statement may go on.

        Raises:
            LimitExceededError: Too many wait.
        """
        if len(self._waiting) >= _PACED_MAX:
            self._account.use.refused += 1
            raise LimitExceededError(
                f"{_PACED_MAX} short statements of tenant {self._account.name!r} wait, which takes more than its share"
                " of this member: nothing was done for this one; try again later",
                limit="share",
                tenant=self._account.name,
                retry_safe=True,
            )
        self._has_waited = True
        begun = self._clock()
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._wake_later()
        try:
            await turn
        finally:
            self._account.use.waited_s += self._clock() - begun

    def release_all(self) -> None:
        """Nobody waits any longer."""
        if self._timer is not None:
            self._timer.cancel()
        while self._waiting:
            _release(self._waiting.popleft())

    def _filled(self) -> float:
        now_s, account = self._clock(), self._account
        account.credit_s = min(account.credit_s + (now_s - self._filled_s) * self.rate, _BURST_S)
        self._filled_s = now_s
        return account.credit_s

    def _wake_later(self) -> None:
        if self._timer is None:
            wait_s = max(_BURST_S - self._filled(), 0.0) / self.rate
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._wake)

    def _wake(self) -> None:
        self._timer = None
        credit_s = self._filled()
        while self._waiting and credit_s > 0:
            _release(self._waiting.popleft())
            credit_s -= self._account.mean_s
        if self._waiting:
            self._wake_later()


def _count(request: Request[Any]) -> int:
    """The statements that a request begins."""
    return len(request.message.params) if request.operation in _MANY else 1


def _release(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


def _bytes_of(payload: Payload) -> int:
    pieces = [payload] if isinstance(payload, (bytes, memoryview)) else payload
    return sum(memoryview(piece).nbytes for piece in pieces)
