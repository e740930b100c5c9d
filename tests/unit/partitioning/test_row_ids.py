from __future__ import annotations

import time
import uuid

import pyarrow as pa
import pytest

from secateur.errors import ProgrammingError, UnknownColumnError
from secateur.partitioning.schemes import ROW_ID, HashComponent, PartitionScheme
from secateur.partitioning.tables import (
    ROW_ID_COLUMN,
    Column,
    TableDef,
    check_has_key,
    check_writable,
    filled_row_ids,
    new_row_ids,
    row_id_array,
    with_row_ids,
    without_row_ids,
)
from secateur.partitioning.tables.conform import MissingColumns, conform
from secateur.partitioning.types import parse_type

VISIBLE = (Column("a", parse_type("INTEGER"), nullable=False), Column("b", parse_type("VARCHAR")))
SCHEME = PartitionScheme((HashComponent(("a",), 4),), types=(("a", parse_type("INTEGER")),))
EVENTS = TableDef("events", 1, (*VISIBLE, ROW_ID_COLUMN), ("a", ROW_ID), SCHEME)
KEYED = TableDef("keyed", 2, VISIBLE, ("a",), SCHEME)
ROWS = pa.table({"B": ["x", None, "x"], "a": [1, 2, 1]})


def ids_of(rows: pa.Table) -> list[uuid.UUID]:
    return rows.column(ROW_ID).to_pylist()


@pytest.mark.parametrize("make", [new_row_ids, lambda count: row_id_array(count).to_pylist()])
@pytest.mark.parametrize("count", [0, 1, 1000])
def test_ids_are_uuids_of_version_7_that_ascend(make: object, count: int) -> None:
    before = time.time_ns() // 1_000_000
    found = [uuid.UUID(str(one)) for one in make(count)]  # type: ignore[operator]
    after = time.time_ns() // 1_000_000
    assert len(found) == count
    assert found == sorted(set(found))
    assert {(one.version, one.variant) for one in found} <= {(7, uuid.RFC_4122)}
    assert all(before <= one.int >> 80 <= after for one in found)


def test_no_id_is_given_twice() -> None:
    given = [one for count in [1] * 2000 + [40] * 50 for one in new_row_ids(count)]
    given += [one for _ in range(50) for one in row_id_array(1000).to_pylist()]
    assert len(set(given)) == len(given) == 54_000


def test_users_see_the_other_columns() -> None:
    assert EVENTS.has_row_ids
    assert EVENTS.visible_columns == KEYED.visible_columns == KEYED.columns == VISIBLE
    assert EVENTS.visible_schema == KEYED.arrow_schema
    assert EVENTS.arrow_schema.names == ["a", "b", ROW_ID]
    assert (EVENTS.declared_key, KEYED.declared_key) == ((), ("a",))
    assert EVENTS.is_placed_by_key
    assert not KEYED.has_row_ids
    with pytest.raises(UnknownColumnError, match=f"no column {ROW_ID!r}; it has a, b$"):
        EVENTS.visible_column(ROW_ID.upper().lower())
    assert EVENTS.column(ROW_ID) is ROW_ID_COLUMN


def test_rows_get_the_ids_that_they_lack() -> None:
    found = conform(ROWS, EVENTS, MissingColumns.REFUSED)
    assert found.schema.equals(EVENTS.arrow_schema, check_metadata=True)
    assert found.select(["a", "b"]).to_pydict() == {"a": [1, 2, 1], "b": ["x", None, "x"]}
    assert len(set(ids_of(found))) == 3
    assert ids_of(conform(found.select([2, 1, 0]), EVENTS)) == ids_of(found), "those that they have stay"
    assert set(ids_of(conform(ROWS, EVENTS))).isdisjoint(ids_of(found))
    given = with_row_ids(ROWS, EVENTS)
    assert with_row_ids(given, EVENTS) is given
    assert ids_of(conform(given, EVENTS)) == ids_of(given)
    assert without_row_ids(given) == without_row_ids(ROWS) == ROWS
    assert with_row_ids(ROWS, KEYED) is ROWS


def test_new_rows_get_ids_beside_those_that_have_them() -> None:
    known = row_id_array(2)
    mixed = pa.chunked_array([known, pa.nulls(2, known.type), known.slice(0, 1)])
    found = filled_row_ids(mixed).to_pylist()
    assert [found[0], found[1], found[4]] == [known[0].as_py(), known[1].as_py(), known[0].as_py()]
    assert len(set(found)) == 4
    assert None not in found
    assert filled_row_ids(pa.chunked_array([], known.type)).to_pylist() == []


def test_what_users_may_not_do_is_refused() -> None:
    check_writable(ROWS.schema, EVENTS)
    check_writable(pa.schema([(ROW_ID, pa.int64())]), KEYED)
    with pytest.raises(UnknownColumnError, match="no column"):
        check_writable(pa.schema([(ROW_ID.upper(), pa.string())]), EVENTS)
    check_has_key(KEYED, "nothing")
    with pytest.raises(ProgrammingError, match=r"events has no primary key, so it rains: create it with PRIMARY KEY"):
        check_has_key(EVENTS, "it rains")
