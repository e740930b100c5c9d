"""Bulk loads on one member: nothing before publication, everything after it, and never a row lost to what happens in
between.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from secateur.engine_limits import EngineLimits
from secateur.errors import (
    DataError,
    DuplicateKeyError,
    InternalError,
    LimitExceededError,
    LoadFailedError,
    NullKeyError,
    ProgrammingError,
    TopologyChangedError,
)
from secateur.partitioning.tables import TableDef
from secateur.storage import MIXED, ChangeOperation, MemberStore, MixedAttempt, message_bytes


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def points(make_table: Any) -> TableDef:
    return make_table({"k": "BIGINT", "v": "BIGINT"}, ["k"], partitions=4, table_id=1, name="points")


@pytest.fixture
def keys_of(points: TableDef) -> list[list[int]]:
    """The first keys of each partition."""
    found: list[list[int]] = [[], [], [], []]
    for key in range(200):
        found[points.scheme.partition_of({"k": key})].append(key)
    return found


@pytest.fixture
def batch(points: TableDef) -> Any:
    """Rows with these keys and one value."""
    return lambda keys, value: pa.table({"k": keys, "v": [value] * len(keys)}, schema=points.arrow_schema)


@pytest.fixture
def store(points: TableDef, keys_of: list[list[int]], batch: Any, clock: Clock) -> MemberStore:
    """Partitions 0 to 2, with two rows in each."""
    store = MemberStore(clock=clock)
    store.create_table(points, range(3))
    for partition in range(3):
        store.apply(1, partition, ChangeOperation.APPEND, batch(keys_of[partition][:2], 0))
    return store


def content(store: MemberStore) -> dict[int, int]:
    relation = store.relation(1, range(3))
    return dict(zip(relation["k"].to_pylist(), relation["v"].to_pylist(), strict=True))


def test_nothing_is_seen_before_publication_and_everything_after(
    store: MemberStore, keys_of: list[list[int]], batch: Any
) -> None:
    before = content(store)
    assert store.loads.stage("L", 1, 0, 0, batch(keys_of[0][2:4], 1)) == 2
    assert store.loads.stage("L", 1, 0, 0, batch(keys_of[0][4:5], 1)) == 3
    store.loads.stage("L", 1, 1, 0, batch(keys_of[1][2:3], 1))
    assert content(store) == before
    assert store.loads.prepare("L", 1, "append", {0: [0], 1: [0]}) == 4
    assert content(store) == before
    assert store.loads.publish("L") == 4
    assert content(store) == before | dict.fromkeys([*keys_of[0][2:5], keys_of[1][2]], 1)


def test_upsert_replaces_and_adds(store: MemberStore, keys_of: list[list[int]], batch: Any) -> None:
    before = content(store)
    store.loads.stage("L", 1, 0, 0, batch([*keys_of[0][1:3], keys_of[0][1]], 1))
    assert store.loads.prepare("L", 1, "upsert", {0: [0]}) == 2
    store.loads.publish("L")
    assert content(store) == before | dict.fromkeys(keys_of[0][1:3], 1)


def partition_0(store: MemberStore) -> dict[int, int]:
    return {row["k"]: row["v"] for row in store.relation(1, [0]).to_pylist()}


class TestMixed:
    """One load that removes, adds and replaces."""

    def stage(self, store: MemberStore, attempt: MixedAttempt, rows: pa.Table) -> None:
        store.loads.stage("mixed", 1, 0, attempt, rows, keys=attempt is MixedAttempt.REMOVED)

    def test_everything_at_once(self, store: MemberStore, keys_of: list[list[int]], batch: Any) -> None:
        a, b, c, d = keys_of[0][:4]
        store.apply(1, 0, ChangeOperation.OVERWRITE, batch([a, b, c], 1))
        self.stage(store, MixedAttempt.REMOVED, batch([a, b], 0))
        self.stage(store, MixedAttempt.ADDED, batch([a, d], 2))
        self.stage(store, MixedAttempt.REPLACED, batch([c], 3))
        store.loads.prepare("mixed", 1, MIXED, {0: [0, 1, 2]})
        assert partition_0(store) == {a: 1, b: 1, c: 1}
        store.loads.publish("mixed")
        assert partition_0(store) == {a: 2, c: 3, d: 2}

    def test_a_removed_row_may_be_all_there_was(self, store: MemberStore, keys_of: list[list[int]], batch: Any) -> None:
        a = keys_of[0][0]
        store.apply(1, 0, ChangeOperation.OVERWRITE, batch([a], 1))
        self.stage(store, MixedAttempt.REMOVED, batch([a], 0))
        store.loads.prepare("mixed", 1, MIXED, {0: [0]})
        store.loads.publish("mixed")
        assert partition_0(store) == {}

    def test_an_added_key_that_stays_is_refused(self, store: MemberStore, keys_of: list[list[int]], batch: Any) -> None:
        a, b = keys_of[0][:2]
        store.apply(1, 0, ChangeOperation.OVERWRITE, batch([a, b], 1))
        self.stage(store, MixedAttempt.REMOVED, batch([a], 0))
        self.stage(store, MixedAttempt.ADDED, batch([b], 2))
        with pytest.raises(DuplicateKeyError, match="is already there"):
            store.loads.prepare("mixed", 1, MIXED, {0: [0, 1]})

    def test_a_write_of_another_key_in_between_is_kept(
        self, store: MemberStore, keys_of: list[list[int]], batch: Any
    ) -> None:
        a, b, c = keys_of[0][:3]
        store.apply(1, 0, ChangeOperation.OVERWRITE, batch([a], 1))
        self.stage(store, MixedAttempt.REMOVED, batch([a], 0))
        self.stage(store, MixedAttempt.ADDED, batch([b], 2))
        store.loads.prepare("mixed", 1, MIXED, {0: [0, 1]})
        store.apply(1, 0, ChangeOperation.APPEND, batch([c], 3))
        store.loads.publish("mixed")
        assert partition_0(store) == {b: 2, c: 3}


def test_overwrite_empties_the_partitions_without_rows(
    store: MemberStore, keys_of: list[list[int]], batch: Any
) -> None:
    store.loads.stage("L", 1, 2, 0, batch(keys_of[2][5:7], 1))
    store.loads.prepare("L", 1, "overwrite", {2: [0]})
    store.loads.publish("L")
    assert content(store) == dict.fromkeys(keys_of[2][5:7], 1)


def test_overwrite_by_nothing_empties_the_table(store: MemberStore) -> None:
    assert store.loads.prepare("L", 1, "overwrite", {}) == 0
    assert len(content(store)) == 6
    store.loads.publish("L")
    assert content(store) == {}


def test_only_the_attempt_named_counts(store: MemberStore, keys_of: list[list[int]], batch: Any) -> None:
    before = content(store)
    store.loads.stage("L", 1, 0, 0, batch(keys_of[0][2:4], 1))
    store.loads.stage("L", 1, 0, 1, batch(keys_of[0][2:4], 2))
    store.loads.stage("L", 1, 1, 0, batch(keys_of[1][2:4], 3))
    assert store.loads.prepare("L", 1, "append", {0: [1]}) == 2
    store.loads.publish("L")
    assert content(store) == before | dict.fromkeys(keys_of[0][2:4], 2)


def test_several_attempts_may_each_bring_a_share(store: MemberStore, keys_of: list[list[int]], batch: Any) -> None:
    before = content(store)
    store.loads.stage("L", 1, 0, 5, batch(keys_of[0][2:4], 1))
    store.loads.stage("L", 1, 0, 3, batch(keys_of[0][3:6], 2))
    assert store.loads.prepare("L", 1, "upsert", {0: [5, 3]}) == 4
    store.loads.publish("L")
    assert content(store) == before | {keys_of[0][2]: 1} | dict.fromkeys(keys_of[0][3:6], 2)


def test_what_was_staged_for_a_partition_that_is_built_anew_does_not_count_twice(
    store: MemberStore, keys_of: list[list[int]], batch: Any
) -> None:
    """Seed 2180040 of the simulation: a partition went to another member and came back during a load."""
    staged = batch(keys_of[0][2:4], 1)
    store.loads.stage("a", 1, 0, 0, staged)
    store.loads.stage("a", 1, 1, 0, batch(keys_of[1][2:4], 1))
    store.begin_copy(1, 0)
    assert store.loads.registry.staged_bytes == message_bytes(staged)
    store.loads.stage("a", 1, 0, 0, staged)
    assert store.loads.prepare("a", 1, "append", {0: [0], 1: [0]}) == 4


def test_abort_leaves_everything_as_it_was_and_frees_the_rows(
    store: MemberStore, keys_of: list[list[int]], batch: Any, allocated: Any
) -> None:
    before = content(store)
    store.stats()  # takes over the merges that reading has just paid for, and lets the old rows go
    bytes_before = allocated()
    store.loads.stage("L", 1, 0, 0, batch(keys_of[0][2:4], 1))
    store.loads.prepare("L", 1, "append", {0: [0]})
    assert store.loads.abort("L")
    assert content(store) == before
    assert allocated() == bytes_before
    assert store.loads.registry.all() == []
    store.apply(1, 0, ChangeOperation.APPEND, batch(keys_of[0][2:4], 5))


@pytest.mark.parametrize("mode", ["append", "upsert", "overwrite"])
def test_publication_and_abort_may_be_repeated(
    store: MemberStore, keys_of: list[list[int]], batch: Any, mode: str
) -> None:
    store.loads.stage("L", 1, 0, 0, batch(keys_of[0][2:4], 1))
    assert store.loads.prepare("L", 1, mode, {0: [0]}) == store.loads.prepare("L", 1, mode, {0: [0]}) == 2
    assert store.loads.publish("L") == 2
    version, after = store.data_version(1), content(store)
    assert store.loads.publish("L") == 2
    assert not store.loads.abort("L")
    assert (store.data_version(1), content(store)) == (version, after)
    assert store.loads.abort("M")
    assert store.loads.abort("M")


def test_published_numbers_come_from_the_caller_or_count_on(store: MemberStore) -> None:
    for load, number, expected in [("A", None, 1), ("B", 17, 17), ("C", None, 18)]:
        store.loads.prepare(load, 1, "upsert", {})
        store.loads.publish(load, number)
        assert store.data_version(1).published == expected


@pytest.mark.parametrize(
    ("mode", "attempt", "match"),
    [
        pytest.param("append", 0, r"key \(k=\d+\) is already there", id="there"),
        pytest.param("append", 1, r"key \(k=\d+\) occurs more than once", id="twice"),
        pytest.param("overwrite", 1, r"key \(k=\d+\) occurs more than once", id="twice-overwrite"),
    ],
)
def test_duplicates_are_found_at_preparation(
    store: MemberStore, keys_of: list[list[int]], batch: Any, mode: str, attempt: int, match: str
) -> None:
    before = content(store)
    store.loads.stage("L", 1, 0, 0, batch(keys_of[0][1:3], 1))
    store.loads.stage("L", 1, 0, 1, batch(keys_of[0][5:6] * 2, 1))
    with pytest.raises(DuplicateKeyError, match=match):
        store.loads.prepare("L", 1, mode, {0: [attempt]})
    with pytest.raises(LoadFailedError, match="load L is not prepared on this member"):
        store.loads.publish("L")
    store.loads.abort("L")
    assert content(store) == before


class TestWhatComesInBetween:
    """Something changes the table between preparation and publication of a load, or while it is prepared in a
    thread.
    """

    @pytest.mark.parametrize("mode", ["append", "upsert"])
    def test_a_write_of_other_keys_is_kept(
        self, store: MemberStore, keys_of: list[list[int]], batch: Any, mode: str
    ) -> None:
        before = content(store)
        store.loads.stage("L", 1, 0, 0, batch(keys_of[0][2:4], 1))
        store.loads.prepare("L", 1, mode, {0: [0]})
        store.apply(1, 0, ChangeOperation.APPEND, batch(keys_of[0][4:5], 2))
        store.apply(1, 0, ChangeOperation.UPSERT, batch(keys_of[0][:1], 3))
        store.apply(1, 0, ChangeOperation.DELETE, batch(keys_of[0][1:2], 0))
        store.loads.publish("L")
        expected = before | dict.fromkeys(keys_of[0][2:4], 1) | {keys_of[0][4]: 2, keys_of[0][0]: 3}
        del expected[keys_of[0][1]]
        assert content(store) == expected

    def test_an_upsert_load_published_later_wins(
        self, store: MemberStore, keys_of: list[list[int]], batch: Any
    ) -> None:
        store.loads.stage("L", 1, 0, 0, batch(keys_of[0][:3], 1))
        store.loads.prepare("L", 1, "upsert", {0: [0]})
        store.apply(1, 0, ChangeOperation.UPSERT, batch(keys_of[0][1:4], 2))
        store.loads.publish("L")
        assert [content(store)[key] for key in keys_of[0][:4]] == [1, 1, 1, 2]

    def test_overwriting_replaces_also_what_was_written_since(
        self, store: MemberStore, keys_of: list[list[int]], batch: Any
    ) -> None:
        store.loads.stage("L", 1, 0, 0, batch(keys_of[0][:1], 1))
        store.loads.prepare("L", 1, "overwrite", {0: [0]})
        store.apply(1, 0, ChangeOperation.APPEND, batch(keys_of[0][4:5], 2))
        store.apply(1, 1, ChangeOperation.APPEND, batch(keys_of[1][4:5], 2))
        store.loads.publish("L")
        assert content(store) == {keys_of[0][0]: 1}

    @pytest.mark.parametrize("mode", ["append", "upsert"])
    def test_a_write_of_a_key_that_an_append_brings_is_refused(
        self, store: MemberStore, keys_of: list[list[int]], batch: Any, mode: str
    ) -> None:
        store.loads.stage("L", 1, 0, 0, batch(keys_of[0][2:4], 1))
        store.loads.prepare("L", 1, "append", {0: [0]})
        with pytest.raises(LoadFailedError, match="belongs to load L, which is about to be published"):
            store.apply(1, 0, ChangeOperation(mode), batch(keys_of[0][3:5], 2))
        store.loads.publish("L")
        assert content(store)[keys_of[0][3]] == 1
        assert keys_of[0][4] not in content(store)
        assert store.apply(1, 0, ChangeOperation.UPSERT, batch(keys_of[0][3:5], 2)) == 2

    def test_a_key_written_while_the_preparation_runs_is_found(
        self, store: MemberStore, keys_of: list[list[int]], batch: Any
    ) -> None:
        store.loads.stage("L", 1, 0, 0, batch(keys_of[0][2:4], 1))
        preparation = store.loads.begin_prepare("L", 1, "append", {0: [0]})
        store.apply(1, 0, ChangeOperation.APPEND, batch(keys_of[0][3:4], 2))
        while preparation.run_step():
            pass
        with pytest.raises(DuplicateKeyError, match="is already there"):
            store.loads.finish_prepare(preparation)
        store.loads.abort("L")
        assert content(store)[keys_of[0][3]] == 2

    def test_another_key_written_while_the_preparation_runs_is_kept(
        self, store: MemberStore, keys_of: list[list[int]], batch: Any
    ) -> None:
        before = content(store)
        store.loads.stage("L", 1, 0, 0, batch(keys_of[0][2:4], 1))
        preparation = store.loads.begin_prepare("L", 1, "append", {0: [0]})
        store.apply(1, 0, ChangeOperation.APPEND, batch(keys_of[0][4:5], 2))
        while preparation.run_step():
            pass
        store.loads.finish_prepare(preparation)
        store.loads.publish("L")
        assert content(store) == before | dict.fromkeys(keys_of[0][2:4], 1) | {keys_of[0][4]: 2}

    def test_a_load_aborted_while_its_preparation_runs(
        self, store: MemberStore, keys_of: list[list[int]], batch: Any
    ) -> None:
        store.loads.stage("L", 1, 0, 0, batch(keys_of[0][2:4], 1))
        preparation = store.loads.begin_prepare("L", 1, "append", {0: [0]})
        store.loads.abort("L")
        while preparation.run_step():
            pass
        with pytest.raises(LoadFailedError, match="load L was aborted"):
            store.loads.finish_prepare(preparation)

    def test_a_table_dropped_in_between(self, store: MemberStore, keys_of: list[list[int]], batch: Any) -> None:
        store.loads.stage("L", 1, 0, 0, batch(keys_of[0][2:4], 1))
        store.loads.prepare("L", 1, "append", {0: [0]})
        store.drop_table(1)
        with pytest.raises(LoadFailedError, match="load L was aborted"):
            store.loads.publish("L")
        assert store.loads.registry.all() == []


class TestTwoLoads:
    """Loads into one table that overlap in time.

    The controller publishes one at a time; a member does not rely on it.
    """

    @pytest.mark.parametrize("order", ["AB", "BA"])
    @pytest.mark.parametrize("modes", [("append", "append"), ("append", "upsert"), ("upsert", "upsert")], ids=str)
    def test_loads_of_different_keys_both_arrive(
        self, store: MemberStore, keys_of: list[list[int]], batch: Any, order: str, modes: tuple[str, str]
    ) -> None:
        before = content(store)
        for load, mode, keys, value in [("A", modes[0], keys_of[0][2:4], 1), ("B", modes[1], keys_of[0][4:6], 2)]:
            store.loads.stage(load, 1, 0, 0, batch(keys, value))
            store.loads.prepare(load, 1, mode, {0: [0]})
        for load in order:
            store.loads.publish(load)
        assert content(store) == before | dict.fromkeys(keys_of[0][2:4], 1) | dict.fromkeys(keys_of[0][4:6], 2)

    @pytest.mark.parametrize(
        "modes",
        [
            ("append", "append"),
            ("append", "upsert"),
            ("upsert", "append"),
            ("overwrite", "append"),
            ("append", "overwrite"),
        ],
        ids=str,
    )
    def test_a_common_key_is_refused_when_either_appends(
        self, store: MemberStore, keys_of: list[list[int]], batch: Any, modes: tuple[str, str]
    ) -> None:
        store.loads.stage("A", 1, 0, 0, batch(keys_of[0][2:4], 1))
        store.loads.stage("B", 1, 0, 0, batch(keys_of[0][3:5], 2))
        store.loads.prepare("A", 1, modes[0], {0: [0]})
        with pytest.raises(
            LoadFailedError,
            match=rf"points: load B has key \(k={keys_of[0][3]}\), and so has load A, which is about to be published",
        ):
            store.loads.prepare("B", 1, modes[1], {0: [0]})
        store.loads.abort("A")
        assert store.loads.prepare("B", 1, modes[1], {0: [0]}) == 2
        store.loads.publish("B")
        assert content(store)[keys_of[0][3]] == 2

    def test_of_two_upserts_the_one_published_last_wins(
        self, store: MemberStore, keys_of: list[list[int]], batch: Any
    ) -> None:
        for load, value in [("A", 1), ("B", 2)]:
            store.loads.stage(load, 1, 0, 0, batch(keys_of[0][2:4], value))
            store.loads.prepare(load, 1, "upsert", {0: [0]})
        store.loads.publish("B")
        store.loads.publish("A")
        assert [content(store)[key] for key in keys_of[0][2:4]] == [1, 1]


class TestRefused:
    def test_stage_on_another_member(self, store: MemberStore, keys_of: list[list[int]], batch: Any) -> None:
        with pytest.raises(TopologyChangedError, match="partition 3 of points is not on this member"):
            store.loads.stage("L", 1, 3, 0, batch(keys_of[3][:1], 1))

    def test_stage_into_the_wrong_partition(self, store: MemberStore, keys_of: list[list[int]], batch: Any) -> None:
        with pytest.raises(TopologyChangedError, match="belongs to partition 0, not 1"):
            store.loads.stage("L", 1, 1, 0, batch(keys_of[0][:1], 1))

    def test_stage_of_bad_rows(self, store: MemberStore, keys_of: list[list[int]]) -> None:
        with pytest.raises(NullKeyError, match=r"points\.k is NOT NULL"):
            store.loads.stage("L", 1, 0, 0, pa.table({"k": pa.array([None], pa.int64()), "v": [1]}))
        with pytest.raises(DataError, match="points: expected the columns"):
            store.loads.stage("L", 1, 0, 0, pa.table({"v": [1]}))
        assert store.loads.registry.all() == []

    def test_one_load_has_one_table(
        self, store: MemberStore, keys_of: list[list[int]], batch: Any, make_table: Any
    ) -> None:
        store.create_table(make_table({"k": "BIGINT"}, ["k"], table_id=2), [0])
        store.loads.stage("L", 1, 0, 0, batch(keys_of[0][2:3], 1))
        with pytest.raises(LoadFailedError, match="load L loads table 1, not 2"):
            store.loads.stage("L", 2, 0, 0, pa.table({"k": [1]}))
        with pytest.raises(LoadFailedError, match="load L loads table 1, not 2"):
            store.loads.prepare("L", 2, "append", {})

    @pytest.mark.parametrize(
        ("end", "match"),
        [("prepare", "is prepared already"), ("publish", "was published already"), ("abort", "was aborted")],
    )
    def test_rows_that_come_late(
        self, store: MemberStore, keys_of: list[list[int]], batch: Any, end: str, match: str
    ) -> None:
        store.loads.stage("L", 1, 0, 0, batch(keys_of[0][2:3], 1))
        if end == "abort":
            store.loads.abort("L")
        else:
            store.loads.prepare("L", 1, "append", {0: [0]})
        if end == "publish":
            store.loads.publish("L")
        with pytest.raises(
            LoadFailedError, match=f"load L {match}.*; use a new load id|load L {match} and takes no more rows"
        ):
            store.loads.stage("L", 1, 0, 0, batch(keys_of[0][3:4], 1))

    def test_parts_that_were_not_staged_here(self, store: MemberStore, keys_of: list[list[int]], batch: Any) -> None:
        store.loads.stage("L", 1, 0, 0, batch(keys_of[0][2:3], 1))
        with pytest.raises(LoadFailedError, match="points: load L has no rows here for partition 1, attempt 0"):
            store.loads.prepare("L", 1, "append", {0: [0], 1: [0]})
        with pytest.raises(LoadFailedError, match="load L has no rows here for partition 0, attempt 3"):
            store.loads.prepare("L", 1, "append", {0: [3]})
        with pytest.raises(TopologyChangedError, match="partition 3 of points is not on this member"):
            store.loads.prepare("L", 1, "append", {3: [0]})

    def test_an_unknown_mode(self, store: MemberStore) -> None:
        with pytest.raises(ProgrammingError, match="load mode 'replace' does not exist"):
            store.loads.prepare("L", 1, "replace", {})

    def test_a_second_preparation_that_asks_for_something_else(
        self, store: MemberStore, keys_of: list[list[int]], batch: Any
    ) -> None:
        store.loads.stage("L", 1, 0, 0, batch(keys_of[0][2:3], 1))
        store.loads.prepare("L", 1, "append", {0: [0]})
        with pytest.raises(LoadFailedError, match="load L was prepared with another table, mode or partitions"):
            store.loads.prepare("L", 1, "upsert", {0: [0]})

    def test_publication_of_what_is_not_prepared(
        self, store: MemberStore, keys_of: list[list[int]], batch: Any
    ) -> None:
        for load in ("unknown", "L"):
            store.loads.stage("L", 1, 0, 0, batch(keys_of[0][2:3], 1))
            with pytest.raises(
                LoadFailedError,
                match=f"load {load} is not prepared on this member; stage its rows and prepare it first",
            ):
                store.loads.publish(load)

    def test_finishing_what_did_not_run_is_our_bug(
        self, store: MemberStore, keys_of: list[list[int]], batch: Any
    ) -> None:
        store.loads.stage("L", 1, 0, 0, batch(keys_of[0][2:3], 1))
        with pytest.raises(InternalError, match="finished before it was run"):
            store.loads.finish_prepare(store.loads.begin_prepare("L", 1, "append", {0: [0]}))


def test_staged_bytes_are_bounded(points: TableDef, keys_of: list[list[int]], batch: Any) -> None:
    one = batch(keys_of[0][:1], 1)
    store = MemberStore(staged_bytes_max=3 * message_bytes(one))
    store.create_table(points, range(3))
    for load in "ABC":
        store.loads.stage(load, 1, 0, 0, one)
    with pytest.raises(
        LimitExceededError,
        match=r"load D needs \d+ bytes, but (\d+) of \1 are taken by staged rows; publish or abort other loads",
    ):
        store.loads.stage("D", 1, 0, 0, one)
    store.loads.abort("A")
    store.loads.stage("D", 1, 0, 0, one)
    store.loads.prepare("B", 1, "append", {0: [0]})
    store.loads.publish("B")
    store.loads.stage("E", 1, 0, 0, batch(keys_of[0][1:2], 1))


def test_loads_under_way_are_listed_with_their_age(
    store: MemberStore, keys_of: list[list[int]], batch: Any, clock: Clock
) -> None:
    two, one = batch(keys_of[0][2:4], 1), batch(keys_of[0][4:5], 1)
    store.loads.stage("L", 1, 0, 0, two)
    clock.now_s += 30
    (load,) = store.loads.registry.all()
    assert (load.load_id, load.table_id, load.rows, load.nbytes) == ("L", 1, 2, message_bytes(two))
    assert (load.operation, load.partition_rows) == (None, {0: 2})
    assert (store.loads.registry.idle(29.0), store.loads.registry.idle(31.0)) == (["L"], [])
    assert (store.loads.registry.age_s("L"), store.loads.registry.age_s("M")) == (30.0, 0.0)
    store.loads.stage("L", 1, 0, 0, one)
    store.loads.prepare("L", 1, "append", {0: [0]})
    assert (load.rows, load.nbytes) == (3, message_bytes(two) + message_bytes(one))
    assert (load.operation, load.partition_rows) == (ChangeOperation.APPEND, {0: 3})
    assert store.loads.registry.age_s("L") == 30.0
    clock.now_s += 30
    assert store.loads.registry.idle(1.0) == []  # other members may have published it


def test_outcomes_are_not_remembered_without_bound(points: TableDef) -> None:
    store = MemberStore(limits=EngineLimits(load_outcomes_max=2))
    store.create_table(points, [0])
    for load in "ABC":
        store.loads.prepare(load, 1, "upsert", {})
        store.loads.publish(load)
    assert store.loads.publish("C") == 0
    with pytest.raises(LoadFailedError, match="load A is not prepared on this member"):
        store.loads.publish("A")


def test_a_load_of_keys_deletes_them_at_publication(store: MemberStore, keys_of: list[list[int]], batch: Any) -> None:
    kept, gone = keys_of[0][1], keys_of[0][0]
    store.apply(1, 0, ChangeOperation.UPSERT, batch([gone, kept], 5))
    store.loads.stage("l", 1, 0, 0, batch([gone], 0).select(["k"]), keys=True)
    before = store.partition(1, 0).rows
    assert store.loads.prepare("l", 1, "delete", {0: [0]}) == 1
    assert store.partition(1, 0).rows == before, "nothing is gone before publication"
    assert store.loads.publish("l") == 1
    assert store.partition(1, 0).find([gone]) is None
    assert store.partition(1, 0).find([kept]) is not None


@pytest.mark.parametrize(("mode", "keys"), [("delete", False), ("append", True)])
def test_keys_and_rows_are_not_taken_for_each_other(
    store: MemberStore, keys_of: list[list[int]], batch: Any, mode: str, keys: bool
) -> None:
    rows = batch([keys_of[0][0]], 0)
    store.loads.stage("l", 1, 0, 0, rows.select(["k"]) if keys else rows, keys=keys)
    with pytest.raises(
        LoadFailedError, match=f"cannot {mode}: a deletion takes keys, an upsert rows with the same columns, and"
    ):
        store.loads.prepare("l", 1, mode, {0: [0]})
