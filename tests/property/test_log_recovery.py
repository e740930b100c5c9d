"""What a member's log and checkpoints hold after crashes: everything that was on disk, and nothing that never was.

Each round makes random changes of a store on a disk that loses, garbles and reorders what was not synced, stops it at a
random moment, recovers, compares with a model, and goes on from there.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa
import pytest
from msgspec.structs import replace

from secateur.errors import DamagedDirectoryError
from secateur.partitioning.schemes import PartitionScheme
from secateur.partitioning.tables import Column, TableDef
from secateur.partitioning.types import parse_type
from secateur.storage import ChangeOperation, DuplicateKeys, LoadOutcome, MemberStore, TableLayout, sort_rows
from secateur.storage.log.checkpoint import SEGMENT, Checkpoint, recover
from secateur.storage.log.records import (
    HEAD_BYTES,
    CheckpointHead,
    FrameWriter,
    LoggedChange,
    MakeBody,
    WrittenSnapshot,
    body_of,
    read_frames,
)
from secateur.wire import ShortTable, encode_rows
from virtual_disk import VirtualDisk

Rows = dict[int, int]

TABLE = TableDef(
    name="t",
    table_id=1,
    columns=(Column("k", parse_type("INTEGER"), nullable=False), Column("v", parse_type("INTEGER"))),
    primary_key=("k",),
    scheme_or_reference=PartitionScheme(),
)
HEAD = CheckpointHead("c1", "m1")


def table_of(rows: Rows) -> pa.Table:
    return pa.table({"k": list(rows), "v": list(rows.values())}, schema=TABLE.arrow_schema)


class _Machine:
    """A member reduced to its store and its disk."""

    def __init__(self, disk: VirtualDisk) -> None:
        self.disk = disk
        self.store = MemberStore()
        found = recover(disk, self.store)
        self.recovered = found
        self.last = found.copies[1, 0].last if (1, 0) in found.copies else 0
        self.written: Mapping[tuple[int, int], WrittenSnapshot] = found.snapshots
        self.number = found.number
        self.pending: list[MakeBody] = []
        self.store.record_to(self)
        if not self.store.tables():
            self.store.create_table(TABLE, [0])
        self.pending.clear()
        self.file = FrameWriter(0)
        self.checkpoint()

    def append(self, body: MakeBody) -> None:
        self.pending.append(body)

    def rows(self) -> Rows:
        found = self.store.relation(1, [0]).to_pydict()
        return dict(zip(found["k"], found["v"], strict=True))

    def write(self, operation: ChangeOperation, rows: Rows) -> None:
        few = ShortTable([list(rows), list(rows.values())], len(rows))
        is_few = len(rows) % 2 == 1 and operation is not ChangeOperation.DELETE
        given = few if is_few else table_of(rows)
        count = self.store.apply(1, 0, operation, given, is_copy=True)
        self.last += 1
        change = LoggedChange(1, 0, 7, self.last, self.last - 1, f"id{self.last}", operation.value, count)
        self.append(partial(body_of, change, (encode_rows(given),)))

    def load(self, load_id: str, mode: str, rows: Rows, *, publishes: bool) -> None:
        self.store.loads.stage(load_id, 1, 0, 0, table_of(rows))
        self.store.loads.prepare(load_id, 1, mode, {0: [0]})
        if publishes:
            self.store.loads.publish(load_id, self.store.data_version(1).published + 1)

    def flush(self, *, syncs: bool) -> None:
        bodies, self.pending = self.pending, []
        name = f"{SEGMENT}{self.number}"
        self.disk.append(name, self.file.framed(body() for body in bodies))
        if syncs:
            self.disk.sync(name)
            self.file.synced()

    def checkpoint(self) -> None:
        if self.file.end or self.pending:
            self.flush(syncs=True)
        self.number += 1
        made = Checkpoint.of(self.number, HEAD, self.store, self._copies(), self.written)
        self.written = made.write(self.disk)
        self.disk.append(f"{SEGMENT}{self.number}", b"")
        self.file = FrameWriter(self.number)
        made.remove_older(self.disk, self.written)

    def _copies(self) -> Sequence[MakeBody]:
        if not self.last:
            return []
        change = LoggedChange(1, 0, 7, self.last, self.last, f"id{self.last}", "upsert", 1, True)
        return [partial(body_of, change)]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sampled(one_in=2)
def test_after_a_crash_the_store_is_as_at_some_moment_since_the_last_sync(seed: int) -> None:
    rng = random.Random(seed)
    disk = VirtualDisk(rng)
    machine, loads = _Machine(disk), 0
    for _ in range(12):
        model = machine.rows()
        states: list[Rows] = [dict(model)]  # since the last sync
        for _ in range(rng.randint(0, 12)):
            match rng.choice(["upsert", "upsert", "delete", "load", "build", "flush", "sync", "checkpoint"]):
                case "upsert":
                    rows = {rng.randint(0, 9): rng.randint(0, 99) for _ in range(rng.randint(1, 4))}
                    machine.write(ChangeOperation.UPSERT, rows)
                case "delete":
                    machine.write(ChangeOperation.DELETE, {rng.randint(0, 9): 0})
                case "load":
                    loads += 1
                    rows = {rng.randint(0, 9): rng.randint(100, 199) for _ in range(rng.randint(1, 6))}
                    mode = rng.choice(["upsert", "overwrite", "ignore"])
                    machine.load(f"load{loads}", mode, rows, publishes=rng.random() < 0.7)
                case "build":
                    _of_a_partition_that_comes(machine, {rng.randint(0, 9): rng.randint(0, 99)}, partition=0)
                    states[:] = [{}]  # its rows are missing until they are complete
                case "flush":
                    machine.flush(syncs=False)
                case "sync":
                    machine.flush(syncs=True)
                    states.clear()
                case _:
                    machine.checkpoint()
                    states.clear()
            states.append(machine.rows())
        last = machine.last
        disk.crash()
        machine = _Machine(disk)
        assert machine.rows() in states
        assert machine.last <= last


def test_a_prepared_load_is_still_prepared_after_a_crash_and_can_be_published() -> None:
    disk = VirtualDisk(random.Random(1))
    machine = _Machine(disk)
    machine.write(ChangeOperation.UPSERT, {1: 1, 2: 2})
    machine.load("a", "upsert", {2: 20, 3: 30}, publishes=False)
    machine.load("b", "append", {9: 90}, publishes=False)
    machine.flush(syncs=True)
    for turn in range(2):  # once from the log, once from a checkpoint
        disk.crash()
        machine = _Machine(disk)
        assert machine.rows() == {1: 1, 2: 2}, turn
        assert sorted(load.load_id for load in machine.store.loads.prepared()) == ["a", "b"]
    machine.store.loads.publish("a", 5, 12)
    machine.store.loads.abort("b")
    machine.flush(syncs=True)
    for turn in range(2):
        disk.crash()
        machine = _Machine(disk)
        assert machine.rows() == {1: 1, 2: 20, 3: 30}, turn
        assert machine.store.data_version(1).published == 5
        outcomes = dict(machine.store.loads.registry.outcomes())
        assert outcomes["a"] == LoadOutcome(published=True, rows=12, number=5), "a client may ask again how many"
        assert not outcomes["b"].published


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.sampled(one_in=2)
def test_bytes_that_were_on_disk_and_are_garbled_are_reported_and_never_cut_off(seed: int) -> None:
    rng = random.Random(seed)
    disk = VirtualDisk(rng)
    machine = _Machine(disk)
    for value in range(6):
        machine.write(ChangeOperation.UPSERT, {value: value})
        machine.flush(syncs=True)
    name = f"{SEGMENT}{machine.number}"
    data = disk.read(name)
    last_frame = max(_frame_starts(machine.number, data))
    disk.garble(name, rng.randrange(last_frame))
    with pytest.raises(DamagedDirectoryError, match=f"{name} is damaged at byte"):
        recover(disk, MemberStore())
    assert len(disk.read(name)) == len(data)


def test_a_garbled_snapshot_is_reported_with_its_partition() -> None:
    disk = VirtualDisk(random.Random(3))
    machine = _Machine(disk)
    machine.write(ChangeOperation.UPSERT, {1: 1})
    machine.checkpoint()
    (file,) = [name for name in disk.list() if name.endswith(".arrow")]
    disk.garble(file, 40)
    with pytest.raises(DamagedDirectoryError, match="the rows of partition 0 of t, is damaged"):
        recover(disk, MemberStore())


def test_snapshots_are_arrow_files_that_others_can_read() -> None:
    disk = VirtualDisk(random.Random(4))
    machine = _Machine(disk)
    machine.write(ChangeOperation.UPSERT, {1: 10, 2: 20})
    machine.checkpoint()
    (file,) = [name for name in disk.list() if name.endswith(".arrow")]
    assert pa.ipc.open_file(pa.py_buffer(disk.read(file))).read_all().to_pydict() == {"k": [1, 2], "v": [10, 20]}


def test_a_checkpoint_writes_only_partitions_that_have_changed_and_removes_the_log_before_it() -> None:
    disk = VirtualDisk(random.Random(5))
    machine = _Machine(disk)
    machine.write(ChangeOperation.UPSERT, {1: 10})
    machine.checkpoint()
    first = [name for name in disk.list() if name.endswith(".arrow")]
    machine.checkpoint()
    assert [name for name in disk.list() if name.endswith(".arrow")] == first
    machine.write(ChangeOperation.UPSERT, {1: 11})
    machine.checkpoint()
    assert [name for name in disk.list() if name.endswith(".arrow")] != first
    number = machine.number
    assert len(disk.list()) == 3
    assert f"{SEGMENT}{number}" in disk.list()


@pytest.mark.parametrize("seed", range(100))
@pytest.mark.sampled(one_in=2)
def test_frames_that_were_synced_are_read_and_a_torn_tail_is_no_damage(seed: int) -> None:
    rng = random.Random(seed)
    disk, writer = VirtualDisk(rng), FrameWriter(3)
    bodies, synced = [], 0
    for _ in range(rng.randint(1, 10)):
        batch = [rng.randbytes(rng.randint(0, 200)) for _ in range(rng.randint(1, 4))]
        disk.append("f", writer.framed((body,) for body in batch))
        bodies += batch
        if rng.random() < 0.5:
            disk.sync("f")
            writer.synced()
            synced = len(bodies)
    disk.crash()
    frames = read_frames(3, disk.read("f"))
    read = [bytes(body) for body in frames.bodies]
    assert read == bodies[: len(read)]
    assert len(read) >= synced
    assert not frames.is_damaged


def test_a_disk_that_lies_about_a_sync_is_found_out() -> None:
    found = 0
    for seed in range(40):
        rng = random.Random(seed)
        disk, writer = VirtualDisk(rng), FrameWriter(1)
        disk.lies = True
        for _ in range(8):
            disk.append("f", writer.framed(iter([(rng.randbytes(90),)])))
            disk.sync("f")
            writer.synced()
        disk.crash()
        found += read_frames(1, disk.read("f")).is_damaged
    assert found


def _frame_starts(number: int, data: bytes) -> list[int]:
    starts, place = [], 0
    for body in read_frames(number, data).bodies:
        starts.append(place)
        place += HEAD_BYTES + len(body)
    return starts


def _of_a_partition_that_comes(machine: _Machine, rows: Rows, partition: int = 1) -> None:
    machine.store.begin_copy(1, partition)
    machine.flush(syncs=True)
    machine.store.install_copy(1, partition, sort_rows(TableLayout.of(TABLE), [table_of(rows)], DuplicateKeys.REFUSED))


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_a_copy_whose_rows_the_disk_has_lost_is_known_not_to_be_whole(has_checkpoint: bool) -> None:
    """Seed 738 of the simulation: the disk lied, and of a copy that was built had only that the partition is here."""
    disk = VirtualDisk(random.Random(1))
    machine = _Machine(disk)
    _of_a_partition_that_comes(machine, {1: 10, 2: 20})
    assert machine.store.arriving(1) == []
    machine.pending.clear()  # what the disk said it had written
    again = _Machine(disk)
    for _ in range(1 + has_checkpoint):
        assert (again.store.hosted(1), again.store.arriving(1)) == ([0, 1], [1])
        assert again.store.partition(1, 1).rows == 0
        again = _Machine(disk)  # it has begun with a checkpoint of its own
    again.store.drop_partition(1, 1)
    assert again.store.arriving(1) == []


def test_a_copy_that_was_built_is_whole_after_a_restart() -> None:
    disk = VirtualDisk(random.Random(1))
    machine = _Machine(disk)
    _of_a_partition_that_comes(machine, {1: 10, 2: 20})
    machine.flush(syncs=True)
    again = _Machine(disk)
    assert (again.store.hosted(1), again.store.arriving(1)) == ([0, 1], [])
    assert again.store.relation(1, [1]).to_pydict() == {"k": [1, 2], "v": [10, 20]}


def test_a_copy_that_was_built_anew_has_its_new_rows_after_two_restarts() -> None:
    """Seed 2180064 of the simulation: the checkpoint of the first restart named the file of the rows before."""
    disk = VirtualDisk(random.Random(1))
    machine = _Machine(disk)
    _of_a_partition_that_comes(machine, {1: 10})
    machine.checkpoint()
    _of_a_partition_that_comes(machine, {1: 11})
    machine.flush(syncs=True)
    for _ in range(2):
        assert _Machine(disk).store.relation(1, [1]).to_pydict() == {"k": [1], "v": [11]}


def test_replicated_rows_that_did_not_arrive_are_known_not_to_be_whole() -> None:
    disk = VirtualDisk(random.Random(1))
    machine = _Machine(disk)
    replicated = replace(TABLE, table_id=2, name="r", replicated=True)
    machine.store.copy_table(replicated, {0: table_of({1: 10})}, 0)
    whole, machine.pending = machine.pending, []
    for end in range(len(whole)):
        disk = VirtualDisk(random.Random(1))
        machine = _Machine(disk)
        machine.pending = whole[: end + 1]
        machine.flush(syncs=True)
        store = _Machine(disk).store
        is_whole = 0 in store.hosted(2) and 0 not in store.arriving(2)
        assert is_whole == (store.relation(2, store.hosted(2)).num_rows == 1)
    assert is_whole
