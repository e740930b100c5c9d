"""Laws of clients that know a part of the ranges, over random histories of ALTER TABLE.

A client that fetches what its statements need routes as one that knows all ranges: the same partitions for a statement,
the same partition for a row, the same rows without a range, and the same ranges that EVERY has to make. Every failure
names its seed; ``SECATEUR_PRUNING_WORLDS`` sets how many histories are tried.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from msgspec import structs

from predicates import Predicates
from secateur.errors import DatabaseError, NoRangeError, UnknownRangesError
from secateur.partitioning.pruning import PartitionTree
from secateur.partitioning.schemes import PartitionScheme, partial_ranges
from secateur.partitioning.schemes.partial_ranges import RangePage
from secateur.partitioning.schemes.scheme import learn_ranges
from secateur.protocol import decode, encode
from test_range_changes import CHANGES, History
from worlds import DAYS, INTEGERS, TEXTS

T = TypeVar("T")
HISTORIES = int(os.environ.get("SECATEUR_PRUNING_WORLDS", "1"))
STATEMENTS = 12
ROWS = 12
_references = itertools.count()


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(partial_ranges, "PAGE_RANGES", 2)
    monkeypatch.setattr(partial_ranges, "ANSWER_PAGES_MAX", 2)
    return iter([None])


class Client:
    """What a client knows of a scheme, and how it learns more."""

    def __init__(self, scheme: PartitionScheme) -> None:
        self.full = scheme
        self.reference = f"test_partial_ranges/{next(_references)}"
        sent = encode(structs.replace(scheme.outline(), reference=self.reference))
        self.outline = decode(sent, PartitionScheme)

    def learned(self, read: Callable[[PartitionScheme], T]) -> T:
        while True:
            try:
                return read(self.outline.newest())
            except UnknownRangesError as unknown:
                pages = self.full.pages(unknown.details["wanted"])
                if not learn_ranges(unknown.details["reference"], [decode(encode(p), RangePage) for p in pages]):
                    raise AssertionError(f"nothing new for {unknown.details}") from None

    def ids(self, tree: PartitionTree, params: Sequence[Any]) -> tuple[int, ...]:
        mine = structs.replace(tree, scheme_or_reference=self.outline)
        assert tuple(mine.live_ids()) == tuple(tree.live_ids())
        return tuple(self.learned(lambda _: mine.bind(params).ids))


def outcome(read: Callable[[PartitionScheme], Any], scheme: PartitionScheme | Client) -> Any:
    """What is read from a scheme, or by a client, or how it is refused."""
    try:
        return scheme.learned(read) if isinstance(scheme, Client) else read(scheme)
    except NoRangeError as error:
        return error.message


def random_history(seed: int) -> Iterator[History]:
    history = History(random.Random(seed))
    history.begin()
    history.insert()
    yield history
    for _ in range(CHANGES):
        history.change()
        yield history


@pytest.mark.parametrize("seed", range(HISTORIES))
@pytest.mark.sampled(one_in=3)
def test_a_statement_needs_the_same_partitions_however_much_is_known(seed: int) -> None:
    for history in random_history(9000 + seed):
        client = Client(history.table.scheme)
        for _ in range(STATEMENTS):
            predicates = Predicates(history.rng)
            where, params = predicates.predicate(2), predicates.params()
            try:
                statement = history.world.prepare(f"SELECT v FROM t WHERE {where}", params)
            except DatabaseError:
                continue
            bound = list(statement.params or ())
            for scan in statement.plan.scans:
                expected = tuple(scan.tree.bind(bound).ids)
                assert client.ids(scan.tree, bound) == expected, (where, bound)
                assert Client(history.table.scheme).ids(scan.tree, bound) == expected, (where, bound)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_a_row_has_the_same_partition_however_much_is_known(seed: int) -> None:
    for history in random_history(9500 + seed):
        check_rows(history)


def check_rows(history: History) -> None:
    rng, full = history.rng, history.table.scheme
    rows = [{"a": rng.choice(INTEGERS), "b": rng.choice(TEXTS), "c": rng.choice(DAYS), "v": 0} for _ in range(ROWS)]
    data = pa.Table.from_pylist(rows, schema=history.table.arrow_schema)
    reads: list[Callable[[PartitionScheme], Any]] = [
        *(lambda scheme, row=row: scheme.partition_of(row) for row in rows),  # type: ignore[misc]
        lambda scheme: scheme.missing_cells(data),
        lambda scheme: scheme.partitions_of(data).tolist(),
        lambda scheme: scheme.partitions_of(data, unmatched_allowed=True).tolist(),
    ]
    client = Client(full)
    for read in reads:
        expected = outcome(read, full)
        assert outcome(read, client) == expected
        assert outcome(read, Client(full)) == expected
    known = client.outline.newest()
    assert (known.partition_count, known.has_gaps, known.columns) == (full.partition_count, full.has_gaps, full.columns)
    assert known.live_ids() == full.live_ids()
    assert known.affinity_group() == full.affinity_group()
