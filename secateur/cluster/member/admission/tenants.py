"""The tenants of a member: what each may ask of it, and what it has used since that was told last."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from secateur.cluster.member.admission.statement_queue import TenantShare
from secateur.errors import LimitExceededError
from secateur.protocol.access import ResourceGroup
from secateur.wire import PeerInfo

_UNGROUPED: Final = ResourceGroup("")
_KEPT_MAX: Final = 10_000
"""Accounts that are kept without a connection."""
BUSY_S: Final = 0.01
"""From so many seconds of the event loop in a window on it is asked whether a tenant takes more than its share."""
_LOOK_S: Final = 0.001
"""And once more after so many, until the window ends."""
_MEAN_S: Final = 50e-6
_NEW_SHARE: Final = 0.02


class TenantUse(msgspec.Struct):
    """What a tenant has used, beside what the log of statements has.

    Attributes:
        gets: Reads of rows by their keys, which are in no list of statements.
        refused: Statements that were refused because of a limit of the tenant, or because too many waited.
        short_s: Seconds for which the event loop worked on its statements.
        kernel_s: Seconds of processor time in kernel calls.
        waited_s: Seconds for which its statements waited for their turn.
        rows_read: Rows that kernel calls have read.
        bytes_sent: Bytes of answers.
    """

    gets: int = 0
    refused: int = 0
    short_s: float = 0.0
    kernel_s: float = 0.0
    waited_s: float = 0.0
    rows_read: int = 0
    bytes_sent: int = 0


class TenantAccount:
    """One tenant. Lives on the event loop of a member.

    What each look-up adds to stands in the account itself; the rest in :class:`TenantUse`.

    Args:
        name: The tenant.
        on_busy: Called when it has taken more than :data:`BUSY_S` of the event loop in this window.
        clock: Seconds that only grow.

    Attributes:
        name: The tenant.
        group: Its resource group; one without limits where it is in none.
        roles: The roles of its tokens that have connected.
        connections: Its open connections.
        use: What it has used since :meth:`taken`, beside these.
        short_s: Seconds for which the event loop worked on its statements since then. The native executor adds to it,
            and to the following two.
        bytes_sent: Bytes of answers since then.
        gets: Reads of rows by their keys since then.
        look_s: If ``short_s`` is more, :meth:`look` is to be called.
        mean_s: While it is paced, the time that the event loop takes for one of its short statements.
        credit_s: While it is paced, the time that it may still use.
        is_paced: Whether its short statements have to keep to its share of the event loop.
        is_free: Whether its short statements may be answered as if it were the only tenant.
        seen_s: When it last used any.
    """

    __slots__ = (
        "_clock",
        "_on_busy",
        "_tokens",
        "_tokens_s",
        "_window_s",
        "bytes_sent",
        "connections",
        "credit_s",
        "gets",
        "group",
        "is_free",
        "is_paced",
        "look_s",
        "mean_s",
        "name",
        "roles",
        "seen_s",
        "short_s",
        "use",
    )

    def __init__(self, name: str, on_busy: Callable[[], None], clock: Callable[[], float]) -> None:
        self.name = name
        self.group = _UNGROUPED
        self.roles: set[str] = set()
        self.connections = 0
        self.use = TenantUse()
        self.short_s = 0.0
        self.bytes_sent = 0
        self.gets = 0
        self.mean_s = _MEAN_S
        self.credit_s = 0.0
        self.is_paced = False
        self.is_free = True
        self.seen_s = clock()
        self._on_busy = on_busy
        self._clock = clock
        self._window_s = 0.0  # short_s at the beginning of this window
        self.look_s = BUSY_S
        self._tokens = 0.0
        self._tokens_s = clock()

    @property
    def share(self) -> TenantShare:
        """Its share of a member."""
        return TenantShare(self.group.weight, self.group.max_running)

    def worked(self, elapsed_s: float, statements: int = 1) -> None:
        """The event loop has worked for some of its statements."""
        self.short_s += elapsed_s
        if self.short_s > self.look_s:
            self.look(elapsed_s, statements)

    def pace(self, *, is_paced: bool) -> None:
        """Have its short statements keep to its share, or no longer."""
        self.is_paced = is_paced
        self.use_group(self.group)

    def use_group(self, group: ResourceGroup) -> None:
        """Act on its resource group."""
        if group.rate is not None and group.rate != self.group.rate:
            self._tokens, self._tokens_s = max(group.rate, 1.0), self._clock()
        self.group = group
        self.is_free = not self.is_paced and group.rate is None and group.max_rows is None

    def window_ended(self) -> float:
        """Begin another window; returns the seconds of the event loop that it has used in the last one."""
        used_s, self._window_s = self.short_s - self._window_s, self.short_s
        self.look_s = self.short_s + BUSY_S
        return used_s

    def taken(self) -> TenantUse:
        """What it has used since this was asked for last."""
        use, self.use = self.use, TenantUse()
        use.short_s, use.bytes_sent, use.gets = self.short_s, self.bytes_sent, self.gets
        self._window_s -= self.short_s
        self.look_s -= self.short_s
        self.short_s, self.bytes_sent, self.gets = 0.0, 0, 0
        return use

    def look(self, elapsed_s: float, statements: int) -> None:
        """Its last statements took so long, and there is more to do than to count."""
        if self.is_paced:
            self.mean_s += _NEW_SHARE * (elapsed_s / statements - self.mean_s)
            self.credit_s -= elapsed_s
        else:
            self.look_s = self.short_s + _LOOK_S
        if self.short_s - self._window_s > BUSY_S:
            self._on_busy()

    def check_rate(self, statements: int = 1) -> None:
        """Take statements out of the token bucket, which holds as many as may come in a second.

        Raises:
            LimitExceededError: There are not so many in it; nothing was done.
        """
        rate = self.group.rate
        if rate is None:
            return
        now_s = self._clock()
        burst = max(rate, 1.0)
        self._tokens = min(self._tokens + (now_s - self._tokens_s) * rate, burst)
        self._tokens_s = now_s
        if self._tokens >= min(statements, burst):  # what is more than a second's worth is owed afterwards
            self._tokens -= statements
            return
        self.use.refused += 1
        missing_s = (min(statements, burst) - self._tokens) / rate
        raise LimitExceededError(
            f"tenant {self.name!r} may ask for {rate:g} statements a second at a member (rate of resource group"
            f" {self.group.name!r}): nothing was done for this one; try again in {missing_s:.3f} s",
            limit="rate",
            tenant=self.name,
            retry_after_s=missing_s,
            retry_safe=True,
        )


class TenantAccounts:
    """The accounts of a member, by tenant. Lives on its event loop.

    Args:
        clock: Seconds that only grow.

    Attributes:
        on_busy: Called when a tenant has taken more than :data:`BUSY_S` of the event loop in this window.
        by_tenant: They; the same dictionary always.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.on_busy: Callable[[], None] = lambda: None
        self._clock = clock
        self._groups: tuple[ResourceGroup, ...] = ()
        self.by_tenant: dict[str, TenantAccount] = {}

    def __iter__(self) -> Iterator[TenantAccount]:
        return iter(list(self.by_tenant.values()))

    def of(self, peer: PeerInfo) -> TenantAccount:
        """The account of a client's tenant."""
        account = self.by_tenant.get(peer.tenant)
        if account is None:
            account = self.by_tenant[peer.tenant] = TenantAccount(peer.tenant, lambda: self.on_busy(), self._clock)
            self._learn(account, peer)
        return account

    def connected(self, peer: PeerInfo) -> None:
        """A client has connected."""
        account = self.of(peer)
        account.connections += 1
        if peer.token is not None and not account.roles.issuperset(peer.token.roles):
            self._learn(account, peer)

    def gone(self, peer: PeerInfo) -> None:
        """A connection of a client has ended."""
        account = self.by_tenant.get(peer.tenant)
        if account is not None:
            account.connections -= 1

    def take_groups(self, groups: Iterable[ResourceGroup]) -> None:
        """Act on these resource groups and no others."""
        self._groups = tuple(groups)
        for account in self.by_tenant.values():
            self._regroup(account)

    def forget_unused(self) -> None:
        """Forget the accounts of tenants that are not connected, if they are too many; what they used was told."""
        if len(self.by_tenant) > _KEPT_MAX:
            for account in self:
                if not account.connections:
                    del self.by_tenant[account.name]

    def share_of(self, tenant: str) -> TenantShare:
        """The share of a tenant."""
        account = self.by_tenant.get(tenant)
        return TenantShare() if account is None else account.share

    def waited(self, peer: PeerInfo, seconds: float) -> None:
        """A statement has waited for its turn."""
        self.of(peer).use.waited_s += seconds

    def refused(self, peer: PeerInfo) -> None:
        """A statement was refused because too many waited."""
        self.of(peer).use.refused += 1

    def _learn(self, account: TenantAccount, peer: PeerInfo) -> None:
        if peer.token is not None:
            account.roles.update(peer.token.roles)
        self._regroup(account)

    def _regroup(self, account: TenantAccount) -> None:
        """The first group that is for one of its roles, else the first that is for everybody; the owner is in none."""
        named = (group for group in self._groups if account.roles.intersection(group.roles))
        common = (group for group in self._groups if not group.roles)
        found = next(named, None) or next(common, None) if account.name else None
        account.use_group(found or _UNGROUPED)
