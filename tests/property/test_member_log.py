"""The log of a member on a disk that is full, fails, or is slow: what is acknowledged, and how it goes on."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import random
import threading
from collections.abc import Mapping
from functools import partial

import pyarrow as pa
import pytest

from secateur.cluster.member.member_log import MemberLog
from secateur.cluster.settings import Fsync
from secateur.errors import DiskError
from secateur.partitioning.schemes import PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.storage import ChangeOperation, MemberStore
from secateur.storage.log.checkpoint import Checkpoint, recover
from secateur.storage.log.records import CheckpointHead, LoggedChange, WrittenSnapshot, body_of
from secateur.wire import encode_table
from virtual_disk import VirtualDisk

TABLE = TableDef(
    name="t",
    table_id=1,
    columns=(Column("k", parse_type("INTEGER"), nullable=False),),
    primary_key=("k",),
    scheme_or_reference=PartitionScheme(),
)


class _Counting(VirtualDisk):
    """Counts syncs."""

    syncs = 0

    def sync(self, name: str) -> None:
        self.syncs += 1
        super().sync(name)


class _TornOnce(VirtualDisk):
    """Waits before one write that it then tears, and counts the bytes that are written behind it."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.tears_next = False
        self.torn = ""
        self.behind_torn = 0
        self.reached, self.may_go_on = threading.Event(), threading.Event()

    def append(self, name: str, data: bytes) -> None:
        if not self.tears_next:
            self.behind_torn += len(data) if name == self.torn else 0
            super().append(name, data)
            return
        self.tears_next = False
        self.torn = name
        self.reached.set()
        self.may_go_on.wait(20)
        super().append(name, data[: len(data) // 2])
        raise OSError(errno.EIO, "Input/output error")


class _Member:
    """A store with a log."""

    def __init__(self, disk: VirtualDisk, fsync: Fsync = Fsync.ALWAYS, log_bytes_max: int = 1 << 20) -> None:
        self.store, self.sequence = MemberStore(), 0
        self.log = MemberLog(disk, fsync, log_bytes_max=log_bytes_max, mend_s=0.001)

    async def begin(self) -> None:
        await self.log.begin(1, {}, self._checkpoint)
        self.store.record_to(self.log)
        self.store.create_table(TABLE, [0])
        await self.log.flushed()

    def write(self, key: int) -> None:
        rows = pa.table({"k": [key]}, schema=TABLE.arrow_schema)
        self.store.apply(1, 0, ChangeOperation.UPSERT, rows)
        self.sequence += 1
        change = LoggedChange(1, 0, 1, self.sequence, 0, f"id{key}", "upsert", 1)
        self.log.append(partial(body_of, change, (encode_table(rows),)))

    async def takes_writes(self) -> None:
        """Return once the log is mended."""
        async with asyncio.timeout(20):
            while True:
                with contextlib.suppress(DiskError):
                    return self.log.check()
                await asyncio.sleep(0.001)

    def _checkpoint(self, number: int, written: Mapping[tuple[int, int], WrittenSnapshot]) -> Checkpoint:
        return Checkpoint.of(number, CheckpointHead("c", "m"), self.store, [], written)


def keys_on(disk: VirtualDisk) -> set[int]:
    """What a loss of power at this moment leaves."""
    left = disk.copy()
    left.crash()
    store = MemberStore()
    recover(left, store)
    return set(store.relation(1, [0]).column("k").to_pylist())


def test_what_is_durable_survives_and_one_sync_serves_writes_that_come_together() -> None:
    async def run() -> None:
        disk = _Counting(random.Random(1))
        member = _Member(disk)
        await member.begin()
        disk.syncs = 0
        for key in range(50):
            member.write(key)
        await asyncio.gather(*(member.log.durable() for _ in range(50)))
        assert disk.syncs <= 2
        assert keys_on(disk) == set(range(50))
        await member.log.close()

    asyncio.run(run())


@pytest.mark.parametrize("fails", ["full", "input/output error"])
def test_a_write_that_the_disk_refuses_is_an_error_and_the_next_ones_are_refused_until_there_is_room(
    fails: str,
) -> None:
    async def run() -> None:
        disk = VirtualDisk(random.Random(2))
        member = _Member(disk)
        await member.begin()
        member.write(1)
        await member.log.durable()
        capacity_bytes, disk.capacity_bytes = disk.capacity_bytes, 0
        if fails != "full":
            disk.capacity_bytes, disk.fails = capacity_bytes, 1_000_000
        member.write(2)
        with pytest.raises(DiskError, match="the change is visible, but it may not survive a restart") as raised:
            await member.log.durable()
        with pytest.raises(DiskError) as of_a_load:  # which is not visible, nor is a table that is being created
            await member.log.flushed()
        assert str(raised.value) == f"{of_a_load.value}; the change is visible, but it may not survive a restart"
        assert raised.value.details["path"] == disk.path
        assert raised.value.details.get("free_bytes") == (0 if fails == "full" else None)
        with pytest.raises(DiskError, match="nothing was written"):
            member.log.check()
        disk.capacity_bytes, disk.fails = capacity_bytes, 0
        await member.takes_writes()
        member.write(3)
        await member.log.durable()
        assert keys_on(disk) == {1, 2, 3}
        await member.log.close()

    asyncio.run(run())


def test_nothing_is_written_behind_a_record_that_a_checkpoint_could_not_write() -> None:
    async def run() -> None:
        other = VirtualDisk(random.Random(5))
        await (as_large := _Member(other)).begin()
        await as_large.log.close()
        disk = _TornOnce(random.Random(5))
        member = _Member(disk, log_bytes_max=sum(len(other.read(name)) for name in other.list() if "log-" in name))
        await member.begin()
        member.write(1)
        await member.log.durable()  # and a checkpoint begins, which writes what comes now
        disk.tears_next = True
        member.write(2)
        assert await asyncio.to_thread(disk.reached.wait, 20)
        member.write(3)
        waiting = asyncio.ensure_future(member.log.durable())
        await asyncio.sleep(0)
        disk.may_go_on.set()
        with pytest.raises(DiskError, match="may not survive a restart"):
            await waiting
        await member.takes_writes()
        assert disk.behind_torn == 0
        member.write(4)
        await member.log.durable()
        assert keys_on(disk) == {1, 2, 3, 4}
        await member.log.close()

    asyncio.run(run())


def test_the_log_is_cut_short_by_checkpoints_while_writes_go_on() -> None:
    async def run() -> None:
        disk = VirtualDisk(random.Random(3))
        member = _Member(disk, log_bytes_max=2_000)
        await member.begin()
        for key in range(200):
            member.write(key)
            await member.log.durable()
        assert sum(len(disk.read(name)) for name in disk.list() if name.startswith("log-")) < 40_000
        assert len([name for name in disk.list() if name.startswith("checkpoint-")]) <= 2
        await member.log.close()
        assert keys_on(disk) == set(range(200))

    asyncio.run(run())


@pytest.mark.parametrize("fsync", [Fsync.INTERVAL, Fsync.OFF])
def test_without_a_promise_nobody_waits_and_what_was_written_is_there_after_a_close(fsync: Fsync) -> None:
    async def run() -> None:
        disk = VirtualDisk(random.Random(4))
        member = _Member(disk, fsync)
        await member.begin()
        member.write(1)
        await member.log.durable()
        await member.log.close()
        store = MemberStore()
        recover(disk, store)
        assert store.relation(1, [0]).column("k").to_pylist() == [1]

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(40))
def test_what_was_acknowledged_survives_a_crash_at_any_moment_and_any_refusal_of_the_disk(seed: int) -> None:
    rng = random.Random(seed)

    async def run() -> None:
        disk = VirtualDisk(rng)
        member = _Member(disk, log_bytes_max=rng.choice([500, 5_000]))
        await member.begin()
        acknowledged: set[int] = set()

        async def write(key: int) -> None:
            try:
                member.log.check()
                member.write(key)
                await member.log.durable()
            except DiskError:
                return
            acknowledged.add(key)

        writes = []
        for key in range(60):
            if rng.random() < 0.05:
                disk.fails = rng.randint(1, 3)
            writes.append(asyncio.ensure_future(write(key)))
            if rng.random() < 0.3:
                await asyncio.sleep(rng.choice([0, 0.001]))
        survivors = set(acknowledged)  # the others are still on their way
        assert survivors <= keys_on(disk)
        for task in writes:
            task.cancel()
        await asyncio.gather(*writes, return_exceptions=True)
        await member.log.close()

    asyncio.run(run())
