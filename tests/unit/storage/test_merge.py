from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from secateur.errors import DuplicateKeyError
from secateur.storage import ChangeOperation, DuplicateKeys, SortedRows, TableLayout, common_row, new_rows, sort_rows
from secateur.storage.merge import merge
from secateur.wire import ShortTable


def test_sorts_chunks_and_tables_together(layout: TableLayout, rows: Any, tuples: Any) -> None:
    tables = [pa.concat_tables([rows((2, "b", 1)), rows((1, "z", 2))]), rows((2, "a", 3))]
    assert tuples(sort_rows(layout, tables, DuplicateKeys.REFUSED).table) == [(1, "z", 2), (2, "a", 3), (2, "b", 1)]


def test_sorts_nothing(layout: TableLayout) -> None:
    assert sort_rows(layout, [], DuplicateKeys.REFUSED).table.schema == layout.schema


def test_of_equal_keys_the_last_wins(layout: TableLayout, rows: Any, tuples: Any) -> None:
    tables = [rows((1, "x", 1), (2, "x", 2), (1, "x", 3)), rows((1, "x", 4), (0, "x", 5))]
    assert tuples(sort_rows(layout, tables, DuplicateKeys.LAST_WINS).table) == [(0, "x", 5), (1, "x", 4), (2, "x", 2)]


def test_of_equal_keys_the_first_wins(layout: TableLayout, rows: Any, tuples: Any) -> None:
    tables = [rows((1, "x", 1), (2, "x", 2), (1, "x", 3)), rows((1, "x", 4), (0, "x", 5))]
    assert tuples(sort_rows(layout, tables, DuplicateKeys.FIRST_WINS).table) == [(0, "x", 5), (1, "x", 1), (2, "x", 2)]


def test_new_rows_are_those_whose_keys_are_not_there(
    layout: TableLayout, rows: Any, sorted_of: Any, tuples: Any
) -> None:
    base, incoming = sorted_of(rows((1, "a", 1), (2, "a", 2))), sorted_of(rows((0, "a", 5), (2, "a", 6), (3, "a", 7)))
    assert tuples(new_rows(layout, base, incoming).table) == [(0, "a", 5), (3, "a", 7)]
    assert new_rows(layout, sorted_of(rows()), incoming) is incoming
    assert new_rows(layout, sorted_of(rows((9, "a", 1))), incoming) is incoming


@pytest.mark.parametrize("ordered", [True, False], ids=["ascending", "shuffled"])
def test_equal_keys_are_named(layout: TableLayout, rows: Any, ordered: bool) -> None:
    given = [(1, "x", 1), (2, "a", 2), (2, "b", 3), (2, "b", 4)]
    with pytest.raises(
        DuplicateKeyError, match=r"t: key \(a=2, b='b'\) occurs more than once among the rows given"
    ) as caught:
        sort_rows(layout, [rows(*(given if ordered else given[::-1]))], DuplicateKeys.REFUSED)
    assert caught.value.details == {"table": "t", "key": [2, "b"]}


def test_rows_in_order_are_copied_all_the_same(layout: TableLayout, rows: Any) -> None:
    given = rows((1, "x", 1), (2, "x", 2))
    result = sort_rows(layout, [given], DuplicateKeys.REFUSED).table
    assert result.equals(given)
    assert result["a"].chunk(0).buffers()[1].address != given["a"].chunk(0).buffers()[1].address


BASE = [(1, "a", 10), (1, "c", 11), (3, "a", 12)]
MERGES = [
    pytest.param(
        ChangeOperation.APPEND,
        [(0, "z", 1), (1, "b", 2), (4, "a", 3)],
        [(0, "z", 1), (1, "a", 10), (1, "b", 2), (1, "c", 11), (3, "a", 12), (4, "a", 3)],
        id="append",
    ),
    pytest.param(ChangeOperation.APPEND, [(9, "a", 1)], [*BASE, (9, "a", 1)], id="append-behind"),
    pytest.param(ChangeOperation.APPEND, [], BASE, id="append-nothing"),
    pytest.param(
        ChangeOperation.UPSERT,
        [(1, "a", 1), (1, "b", 2), (3, "a", 3)],
        [(1, "a", 1), (1, "b", 2), (1, "c", 11), (3, "a", 3)],
        id="upsert",
    ),
    pytest.param(ChangeOperation.UPSERT, BASE, BASE, id="upsert-the-same"),
    pytest.param(
        ChangeOperation.IGNORE,
        [(1, "a", 1), (1, "b", 2), (3, "a", 3)],
        [(1, "a", 10), (1, "b", 2), (1, "c", 11), (3, "a", 12)],
        id="ignore",
    ),
    pytest.param(ChangeOperation.IGNORE, BASE, BASE, id="ignore-all"),
    pytest.param(ChangeOperation.OVERWRITE, [(2, "q", 1)], [(2, "q", 1)], id="overwrite"),
    pytest.param(ChangeOperation.OVERWRITE, [], [], id="overwrite-by-nothing"),
    pytest.param(ChangeOperation.DELETE, [(1, "c", 0), (2, "c", 0), (3, "a", 0)], [(1, "a", 10)], id="delete"),
    pytest.param(ChangeOperation.DELETE, [(0, "a", 0), (7, "a", 0)], BASE, id="delete-what-is-not-there"),
    pytest.param(ChangeOperation.DELETE, BASE, [], id="delete-all"),
]


@pytest.mark.parametrize(("operation", "given", "expected"), MERGES)
def test_merge(
    layout: TableLayout,
    rows: Any,
    sorted_of: Any,
    tuples: Any,
    operation: ChangeOperation,
    given: list[Any],
    expected: list[Any],
) -> None:
    base = sorted_of(rows(*BASE))
    incoming = sorted_of(rows(*given) if operation is not ChangeOperation.DELETE else rows(*given).select(["a", "b"]))
    merged = merge(layout, base, incoming, operation)
    assert tuples(merged.table) == expected
    assert merged.rows == len(expected)
    assert tuples(base.table) == BASE


@pytest.mark.parametrize("operation", list(ChangeOperation))
def test_merge_into_nothing(
    layout: TableLayout, rows: Any, sorted_of: Any, tuples: Any, operation: ChangeOperation
) -> None:
    nothing, incoming = sorted_of(rows()), sorted_of(rows(*BASE))
    expected = [] if operation is ChangeOperation.DELETE else BASE
    assert tuples(merge(layout, nothing, incoming, operation).table) == expected


def test_an_upsert_of_some_columns_keeps_the_others(
    layout: TableLayout, rows: Any, sorted_of: Any, tuples: Any
) -> None:
    given = rows((0, "z", 1), (1, "a", 1), (3, "a", 1), (9, "z", 1)).select(["a", "b"])
    merged = merge(layout, sorted_of(rows(*BASE)), SortedRows(given, layout.order), ChangeOperation.UPSERT)
    assert tuples(merged.table) == [(0, "z", None), *BASE, (9, "z", None)]


def test_append_names_the_smallest_key_that_is_there(layout: TableLayout, rows: Any, sorted_of: Any) -> None:
    with pytest.raises(DuplicateKeyError, match=r"^t: key \(a=1, b='c'\) is already there$"):
        merge(
            layout,
            sorted_of(rows(*BASE)),
            sorted_of(rows((0, "a", 0), (1, "c", 0), (3, "a", 0))),
            ChangeOperation.APPEND,
        )


@pytest.mark.parametrize(
    ("left", "right", "row"),
    [
        pytest.param([], BASE, None, id="nothing-left"),
        pytest.param(BASE, [], None, id="nothing-right"),
        pytest.param(BASE, [(2, "a", 0)], None, id="disjoint"),
        pytest.param(BASE, [(0, "a", 0), (3, "a", 0)], 1, id="common"),
    ],
)
def test_common_row(
    layout: TableLayout, rows: Any, sorted_of: Any, left: list[Any], right: list[Any], row: int | None
) -> None:
    assert common_row(layout, sorted_of(rows(*left)), sorted_of(rows(*right))) == row


def test_keys_that_compare_equal_only_in_their_first_columns_are_different(
    layout: TableLayout, rows: Any, sorted_of: Any
) -> None:
    assert merge(layout, sorted_of(rows((1, "a", 0))), sorted_of(rows((1, "a\0", 0))), ChangeOperation.APPEND).rows == 2


KEYS_OF_A_TYPE: dict[str, list[Any]] = {
    "BIGINT": [5, -(2**63), 2**63 - 1, 0, -1, 5],
    "HUGEINT": [10**37, -(10**37), 0, 7, 7],
    "VARCHAR": ["", "a", "Z", "ä", "\U0001f600", "\uffff", "aa", "a"],
    "BLOB": [b"", b"\x00", b"\xff", b"a", b"\x00"],
    "BOOLEAN": [True, False, True],
    "DOUBLE": [float("nan"), 0.0, -0.0, float("inf"), float("-inf"), 1.5, float("nan")],
    "DECIMAL(5, 2)": [Decimal("1.10"), Decimal("-1.10"), Decimal("0.00"), Decimal("1.10")],
    "DATE": [date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29), date(2024, 2, 29)],
    "TIME": [time(23, 59, 59, 999_999), time(0), time(12), time(0)],
    "TIMESTAMP": [datetime(2024, 1, 1, 0, 0, 0, 1), datetime(1969, 12, 31), datetime(2024, 1, 1)],
    "UUID": [UUID(int=7), UUID(int=2**128 - 1), UUID(int=2**127), UUID(int=7)],
}


@pytest.mark.parametrize("repeats", [DuplicateKeys.LAST_WINS, DuplicateKeys.FIRST_WINS])
@pytest.mark.parametrize("kind", KEYS_OF_A_TYPE)
def test_few_rows_are_in_the_order_of_many(make_table: Any, kind: str, repeats: DuplicateKeys) -> None:
    """Few rows are sorted as Python values, and many by Arrow: 40 others with keys of their own bring those in."""
    layout = TableLayout.of(make_table({"k": kind, "n": "INTEGER", "v": "INTEGER"}, ["k", "n"]))
    keys = [(key, number) for number in (1, 0) for key in KEYS_OF_A_TYPE[kind]]

    def table(rows: list[tuple[Any, int]], first: int) -> pa.Table:
        types = {column.name: column.type for column in layout.tdef.columns}
        columns = [[key for key, _ in rows], [number for _, number in rows], [*range(first, first + len(rows))]]
        return ShortTable(columns, len(rows)).in_schema(list(types.values()), layout.schema)

    few = sort_rows(layout, [table(keys, 0)], repeats).table
    others = table([(keys[0][0], number) for number in range(2, 42)], 1000)
    many = sort_rows(layout, [table(keys, 0), others], repeats).table
    assert repr(few.to_pylist()) == repr(many.filter(pc.less(many["v"], 1000)).to_pylist())  # NaN equals nothing
    assert 1 < few.num_rows < len(keys) or len(set(map(repr, keys))) == len(keys)
