"""Rows that come as plain values are stored as the same rows in Arrow are, and refused where those are."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from secateur.engine_limits import EngineLimits
from secateur.errors import DataError, DuplicateKeyError, Error, NullKeyError, TopologyChangedError
from secateur.partitioning.tables import TableDef
from secateur.partitioning.types import parse_type
from secateur.storage import ChangeOperation, Partition, TableLayout, feed_table
from secateur.wire import ShortTable

VALUES: dict[str, list[Any]] = {
    "BOOLEAN": [True, False, None],
    "TINYINT": [-128, 127, None],
    "UBIGINT": [0, 2**64 - 1, None],
    "HUGEINT": [-(10**37), 10**37, None],
    "DECIMAL(18,3)": [Decimal("-1.500"), Decimal("123456789012345.001"), None],
    "FLOAT": [0.10000000149011612, float("inf"), None],
    "DOUBLE": [-0.0, 1e300, float("-inf"), None],
    "VARCHAR": ["", "a\0", "é", "\U0001f600", None],
    "BLOB": [b"", b"\x00\xff", None],
    "DATE": [date(1, 1, 1), date(9999, 12, 31), None],
    "TIME": [time(0), time(23, 59, 59, 999_999), None],
    "TIMESTAMP": [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999), None],
    "TIMESTAMPTZ": [datetime(1960, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 1, 2, 3, 4, UTC), None],
    "UUID": [UUID(int=0), UUID(int=2**128 - 1), None],
}
KEY_TYPES = ["BIGINT", "VARCHAR", "DOUBLE", "DECIMAL(18,3)", "TIMESTAMP", "UUID", "HUGEINT", "BLOB"]
KEYS: dict[str, list[Any]] = VALUES | {"BIGINT": [-(2**63), -1, 0, 2**63 - 1], "DOUBLE": [-1.5, 0.0, 1e300]}
OPERATIONS = [ChangeOperation.UPSERT, ChangeOperation.APPEND, ChangeOperation.IGNORE, ChangeOperation.DELETE]


@pytest.fixture
def every_type(make_table: Any, request: pytest.FixtureRequest) -> TableDef:
    """A table with a column of every type, keyed by one of the type of the parameter and an INTEGER."""
    columns = {"k": request.param, "n": "INTEGER"} | {f"c{at}": text for at, text in enumerate(VALUES)}
    table: TableDef = make_table(columns, ["k", "n"])
    return table


@pytest.mark.parametrize("bound", [256, 8, 0])
@pytest.mark.parametrize("every_type", KEY_TYPES, indirect=True)
def test_they_are_the_same_rows(every_type: TableDef, bound: int) -> None:
    limits = EngineLimits(delta_rows_min=bound, delta_rows_max=bound)
    layout = TableLayout.of(every_type, limits)
    arrow, plain = Partition(layout, 0), Partition(layout, 0)
    rng = random.Random(f"{every_type.columns[0].type} {bound}")
    key_type = str(every_type.columns[0].type)
    keys = [
        key for text, values in KEYS.items() if str(parse_type(text)) == key_type for key in values if key is not None
    ]
    for _ in range(60):
        operation, count = rng.choice(OPERATIONS), rng.randint(1, 4)
        are_keys = operation is ChangeOperation.DELETE
        columns = [[rng.choice(keys) for _ in range(count)], [rng.randint(0, 2) for _ in range(count)]]
        if not are_keys:
            columns += [[rng.choice(values) for _ in range(count)] for values in VALUES.values()]
        given = ShortTable(columns, count)
        schema = layout.key_schema if are_keys else layout.schema
        types = [parse_type(str(column.type)) for column in every_type.columns][: len(columns)]
        outcomes = []
        for partition, rows in ((arrow, given.in_schema(types, schema)), (plain, given)):
            try:
                outcomes.append(str(partition.apply(operation, rows)))
            except DuplicateKeyError as error:
                outcomes.append(f"{error} {error.details}")
        assert outcomes[0] == outcomes[1]
        key = (rng.choice(keys), rng.randint(0, 2))
        assert _found(plain, key) == _found(arrow, key)
        if rng.random() < 0.3:
            assert plain.snapshot().table.equals(arrow.snapshot().table)
        if rng.random() < 0.1:
            assert plain.snapshot().fold().table.equals(arrow.snapshot().fold().table)
        assert (plain.rows, plain.version) == (arrow.rows, arrow.version)
    assert plain.snapshot().table.equals(arrow.snapshot().table)
    plain.snapshot().table.validate(full=True)


def _found(partition: Partition, key: tuple[Any, ...]) -> list[str] | None:
    found = partition.find(key)
    return None if found is None else [repr(column[found[1]].as_py()) for column in found[0]]


def test_rows_between_writes_in_arrow_keep_their_order(layout: TableLayout, rows: Any, tuples: Any) -> None:
    partition = Partition(layout, 0)
    for round_ in range(40):
        given = [(key, "x", round_) for key in range(round_ % 3, 9, 3)]
        columns = [list(column) for column in zip(*given, strict=True)]
        partition.apply(ChangeOperation.UPSERT, rows(*given) if round_ % 4 == 0 else ShortTable(columns, len(given)))
        for key, text, value in given:
            columns_found, position = partition.find((key, text)) or ([], 0)
            assert columns_found[2][position].as_py() == value
    assert tuples(partition.snapshot().table) == [(key, "x", 37 + (key + 2) % 3) for key in range(9)]


def test_a_snapshot_does_not_see_later_plain_rows(layout: TableLayout, tuples: Any) -> None:
    partition = Partition(layout, 0)
    partition.apply(ChangeOperation.UPSERT, ShortTable([[1], ["x"], [1]], 1))
    before = partition.snapshot()
    partition.apply(ChangeOperation.UPSERT, ShortTable([[1], ["x"], [2]], 1))
    assert tuples(before.table) == [(1, "x", 1)]
    assert tuples(partition.snapshot().table) == [(1, "x", 2)]


def test_their_bytes_are_counted_and_given_back(layout: TableLayout) -> None:
    partition = Partition(layout, 0)
    partition.apply(ChangeOperation.UPSERT, ShortTable([[1], ["x" * 1000], [1]], 1))
    assert 1000 < partition.nbytes < 1200
    partition.snapshot().fold()
    assert 1000 < partition.nbytes < 1200


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        ([[1], ["x"]], DataError, "rows of 2 plain values were sent for the columns a BIGINT, b VARCHAR, v BIGINT"),
        ([[1], ["x"], ["one"]], DataError, "column v: 'one' \\(str\\) does not fit BIGINT"),
        ([[1], ["x"], [2**63]], DataError, "column v: 9223372036854775808 \\(int\\) does not fit BIGINT"),
        ([[1], [5], [1]], DataError, "column b: 5 \\(int\\) does not fit VARCHAR"),
        ([[1], [{"a": []}], [1]], DataError, "does not fit VARCHAR"),
        ([[1, None], ["x", "y"], [1, 1]], NullKeyError, "t.a is NOT NULL, but 1 of 2 rows have NULL there"),
    ],
)
def test_what_does_not_fit_is_refused_whole(
    layout: TableLayout, columns: list[list[Any]], error: type[Error], words: str
) -> None:
    partition = Partition(layout, 0)
    with pytest.raises(error, match=words):
        partition.apply(ChangeOperation.UPSERT, ShortTable(columns, len(columns[0])))
    assert (partition.rows, partition.version) == (0, 0)


def test_types_that_plain_values_do_not_represent_are_refused(make_table: Any) -> None:
    partition = Partition(TableLayout.of(make_table({"k": "BIGINT", "i": "INTERVAL"}, ["k"])), 0)
    with pytest.raises(DataError, match="send them in Arrow"):
        partition.apply(ChangeOperation.UPSERT, ShortTable([[1], [timedelta(days=1)]], 1))


def test_rows_of_other_partitions_are_refused(make_table: Any) -> None:
    table = make_table({"k": "BIGINT", "v": "BIGINT"}, ["k"], partitions=4)
    layout = TableLayout.of(table)
    for key in range(20):
        right = table.scheme.partition_of({"k": key})
        wrong = Partition(layout, (right + 1) % 4)
        with pytest.raises(TopologyChangedError, match=f"belongs to partition {right}, not {wrong.number}"):
            wrong.apply(ChangeOperation.UPSERT, ShortTable([[key], [1]], 1))
        with pytest.raises(TopologyChangedError):
            wrong.apply(ChangeOperation.DELETE, ShortTable([[key]], 1))
        assert Partition(layout, right).apply(ChangeOperation.UPSERT, ShortTable([[key], [1]], 1)) == 1


def test_every_row_is_looked_at_and_not_only_some(make_table: Any) -> None:
    table = make_table({"k": "BIGINT", "v": "BIGINT"}, ["k"], partitions=4)
    own = [key for key in range(200) if table.scheme.partition_of({"k": key}) == 0][:8]
    other = next(key for key in range(200) if table.scheme.partition_of({"k": key}) == 1)
    for at in range(8):
        keys = [*own[:at], other, *own[at + 1 :]]
        partition = Partition(TableLayout.of(table), 0)
        with pytest.raises(TopologyChangedError, match=f"k={other}"):
            partition.apply(ChangeOperation.UPSERT, ShortTable([keys, [1] * 8], 8))
        with pytest.raises(TopologyChangedError, match=f"k={other}"):
            partition.apply(ChangeOperation.DELETE, ShortTable([keys], 8))
        assert partition.rows == 0


def test_the_change_feed_has_them(make_table: Any) -> None:
    table = make_table({"k": "BIGINT", "v": "BIGINT"}, ["k"])
    with_feed = TableDef(table.name, 1, table.columns, table.primary_key, table.scheme_or_reference, change_feed=True)
    layout = TableLayout.of(with_feed)
    arrow, plain = Partition(layout, 0), Partition(layout, 0)
    for value in (1, 2):
        given = ShortTable([[7], [value]], 1)
        for partition, rows in ((plain, given), (arrow, given.in_schema(layout.types, layout.schema))):
            partition.apply(ChangeOperation.UPSERT, rows)
            assert partition.feed is not None
            partition.feed.changed(0, value)
    assert [entry.rows for entry in _entries(plain)] == [entry.rows for entry in _entries(arrow)]
    assert feed_table(layout.schema, _entries(plain)).num_rows == 3


def _entries(partition: Partition) -> list[Any]:
    assert partition.feed is not None
    return list(partition.feed.entries())
