"""Faults of the product that the simulation has to find: each replaces a method, in a process that simulates.

They are what a change of the product could do wrong without any other test noticing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final
from weakref import WeakKeyDictionary

from msgspec import structs

from secateur.cluster.controller import ClusterState
from secateur.cluster.controller.rebalancer import Rebalancer
from secateur.cluster.member import (
    Acknowledgements,
    ChangeKey,
    ChangeRegistry,
    MemberLoads,
    RecordedChange,
    UnconfirmedPublications,
)
from secateur.cluster.member.member_log import MemberLog
from secateur.cluster.settings import Fsync
from secateur.storage import Partition, ReadLease
from secateur.storage.log.disk import Disk
from secateur.storage.store_loads import StoreLoads
from secateur.wire import Reply

__all__ = ["FOUND_BY", "PLANTS"]


def acknowledge_early() -> None:
    """A write is acknowledged before its copies have it."""

    Acknowledgements.settling = lambda *_: None  # type: ignore[method-assign]


def skip_fencing() -> None:
    """A member answers after the end of its lease."""
    ReadLease.check = lambda _: None  # type: ignore[method-assign]


def drop_a_delta_at_promotion() -> None:
    """A copy makes its last change only when the next one comes, so that one that becomes the primary lacks it."""
    apply = Partition.apply
    last: WeakKeyDictionary[Partition, tuple[Any, ...]] = WeakKeyDictionary()

    def late(self: Partition, *change: Any, is_copy: bool = False) -> int:
        if not is_copy:
            return apply(self, *change)
        before = last.get(self)
        last[self] = change
        if before is not None:
            apply(self, *before, is_copy=True)
        return int(change[1].num_rows)

    Partition.apply = late  # type: ignore[method-assign]


def forget_a_change_of_a_load() -> None:
    """A member lacks one of the rows of a load of which it keeps copies."""
    stage = StoreLoads.stage

    def fewer(self: StoreLoads, load: str, table: int, partition: int, attempt: int, rows: Any, **kind: Any) -> Any:
        return stage(self, load, table, partition, attempt, rows.slice(0, max(1, rows.num_rows - 1)), **kind)

    stage_copy = MemberLoads.stage_copy

    async def stage_fewer(self: MemberLoads, request: Any) -> Any:
        StoreLoads.stage = fewer  # type: ignore[method-assign]
        try:
            return await stage_copy(self, request)
        finally:
            StoreLoads.stage = stage  # type: ignore[method-assign]

    MemberLoads.stage_copy = stage_fewer  # type: ignore[method-assign]


def apply_a_retry_twice() -> None:
    """A change that is asked for again is made again."""

    async def once(_: ChangeRegistry, key: ChangeKey, make: Callable[[], Awaitable[RecordedChange]]) -> RecordedChange:
        return await make()

    ChangeRegistry.is_new = lambda *_: True  # type: ignore[method-assign]
    ChangeRegistry.made = lambda *_: None  # type: ignore[method-assign]
    ChangeRegistry.once = once  # type: ignore[method-assign]


def skip_fsync() -> None:
    """A member acknowledges what it has written, and does not wait until it is on the disk."""
    made = MemberLog.__init__

    def careless(self: MemberLog, disk: Disk, _: Fsync, *args: Any, **kwargs: Any) -> None:
        made(self, disk, Fsync.OFF, *args, **kwargs)

    MemberLog.__init__ = careless  # type: ignore[method-assign]


def forget_who_leaves() -> None:
    """A controller that is started anew does not know who is to leave, and members end with what they own."""
    restore = ClusterState.restore

    def restore_without(self: ClusterState, epoch: int, topology: Any, catalog: Any, state: Any) -> None:
        restore(self, epoch, topology, catalog, structs.replace(state, draining=()))

    ClusterState.restore = restore_without  # type: ignore[method-assign]

    leaving: list[str] = []
    drain, progress = Rebalancer.drain, Rebalancer.progress

    async def drain_noting(self: Rebalancer, request: Any) -> Any:
        leaving[:] = request.message.members
        return await drain(self, request)

    def all_drained(self: Rebalancer, request: Any) -> Any:
        said = progress(self, request).message
        return Reply(structs.replace(said, draining=tuple(leaving), drained=tuple(leaving)))

    Rebalancer.drain = drain_noting  # type: ignore[method-assign]
    Rebalancer.progress = all_drained  # type: ignore[method-assign]


def answer_before_all_have_published() -> None:
    """A reader of a replicated table sees a load before other members have it."""
    UnconfirmedPublications.made = lambda *_: None  # type: ignore[method-assign]


PLANTS: Final[dict[str, Callable[[], None]]] = {
    plant.__name__: plant
    for plant in (
        acknowledge_early,
        skip_fencing,
        drop_a_delta_at_promotion,
        forget_a_change_of_a_load,
        apply_a_retry_twice,
        skip_fsync,
        forget_who_leaves,
        answer_before_all_have_published,
    )
}

FOUND_BY: Final[dict[str, str]] = {
    "acknowledge_early": "machines",
    "skip_fencing": "splits",
    "drop_a_delta_at_promotion": "kills",
    "forget_a_change_of_a_load": "loads",
    "apply_a_retry_twice": "answers",
    "skip_fsync": "power",
    "forget_who_leaves": "leaving",
    "answer_before_all_have_published": "distances",
}
"""By plant, the kind of trouble that finds it soon; see :data:`mix.LEANINGS`."""
