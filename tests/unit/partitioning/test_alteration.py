"""The changes of ALTER TABLE to a definition, and the types that a column may become."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import duckdb
import pytest

from secateur.errors import SchemeError, UnknownColumnError
from secateur.partitioning.schemes import HashComponent, PartitionScheme
from secateur.partitioning.tables import (
    AddColumn,
    CheckDef,
    Column,
    ColumnChange,
    DropColumn,
    IndexDef,
    RenameColumn,
    RenameTable,
    SetDefault,
    SetNullable,
    SetType,
    TableDef,
    altered,
    is_wider,
)
from secateur.partitioning.types import SqlType, parse_type

NOW = datetime(2026, 5, 6, 7, 8, 9, tzinfo=UTC)
INTEGER, VARCHAR = parse_type("INTEGER"), parse_type("VARCHAR")
TABLE = TableDef(
    "t",
    7,
    (
        Column("k", INTEGER, nullable=False),
        Column("a", VARCHAR),
        Column("b", INTEGER, default="3"),
        Column("i", INTEGER),
    ),
    ("k",),
    PartitionScheme(hashes=(HashComponent(("k",), 4),), types=(("k", INTEGER),)),
    indexes=(IndexDef("by_i", ("i",)),),
    checks=(CheckDef("positive", "a > '0'", ("a",)),),
)


def names(table: TableDef) -> list[str]:
    return [column.name for column in table.columns]


def test_changes_are_made_one_after_the_other() -> None:
    done = altered(
        TABLE,
        [
            AddColumn(Column("c", parse_type("DECIMAL(4,1)"), default="1.5")),
            RenameColumn("b", "d"),
            SetType("d", parse_type("BIGINT")),
            AddColumn(Column("B", VARCHAR)),
            RenameColumn("c", "e"),
            SetType("e", parse_type("DECIMAL(6,2)")),
            SetDefault("d", None),
            RenameTable("u"),
        ],
        NOW,
    )
    assert done.table.name == "u"
    assert names(done.table) == ["k", "a", "d", "i", "e", "B"]
    assert done.sources == ("k", "a", "b", "i", None, None)
    assert done.fill == {"e": Decimal("1.5"), "B": None}
    assert done.table.column("d").default is None
    assert done.table.column("e").default == "1.50"
    assert done.table.table_id == TABLE.table_id


def test_a_column_that_came_and_went_leaves_nothing() -> None:
    done = altered(TABLE, [AddColumn(Column("c", INTEGER)), DropColumn("C")], NOW)
    assert done.table == TABLE
    assert done.fill == {}
    again = altered(TABLE, [DropColumn("b"), AddColumn(Column("b", INTEGER))], NOW)
    assert again.sources == ("k", "a", "i", None)


def test_a_default_of_the_clock_is_the_time_of_the_statement_for_rows_that_are_there() -> None:
    done = altered(TABLE, [AddColumn(Column("c", parse_type("TIMESTAMP"), default="now()"))], NOW)
    assert done.fill == {"c": NOW.replace(tzinfo=None)}
    assert done.table.column("c").default == "now()"


@pytest.mark.parametrize(
    "changes",
    [
        [AddColumn(Column("A", INTEGER), if_not_exists=True)],
        [DropColumn("zz", if_exists=True)],
        [RenameColumn("b", "b")],
        [SetNullable("b", nullable=True)],
        [SetNullable("k", nullable=False)],
        [SetType("b", INTEGER)],
    ],
)
def test_nothing_to_do(changes: list[ColumnChange]) -> None:
    assert altered(TABLE, changes, NOW).table == TABLE


@pytest.mark.parametrize(
    ("change", "kind", "why"),
    [
        (AddColumn(Column("A", INTEGER)), SchemeError, "there is a column a already"),
        (RenameColumn("b", "I"), SchemeError, "there is a column i already"),
        (RenameColumn("b", ""), SchemeError, "at least one character"),
        (DropColumn("k"), SchemeError, "column k is of the primary key"),
        (SetNullable("k", nullable=True), SchemeError, "never NULL"),
        (DropColumn("i"), SchemeError, "index by_i has column i"),
        (RenameColumn("i", "j"), SchemeError, "index by_i has column i"),
        (DropColumn("a"), SchemeError, "CHECK positive reads column a"),
        (SetType("b", parse_type("SMALLINT")), SchemeError, "does not have every value of INTEGER"),
        (DropColumn("zz"), UnknownColumnError, "it has k, a, b, i"),
        (AddColumn(Column("u", parse_type("UUID"), default="uuid()")), SchemeError, "another value in each row"),
    ],
)
def test_what_cannot_be(change: ColumnChange, kind: type[Exception], why: str) -> None:
    with pytest.raises(kind, match=why):
        altered(TABLE, [change], NOW)


def test_an_index_stays_when_its_column_gets_wider() -> None:
    done = altered(TABLE, [SetType("i", parse_type("BIGINT"))], NOW)
    assert done.table.indexes == TABLE.indexes


NUMBERS = [
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    *("FLOAT", "DOUBLE", "DECIMAL(4,1)", "DECIMAL(6,1)", "DECIMAL(6,3)", "DECIMAL(18,3)", "DECIMAL(38,0)"),
]


@pytest.mark.parametrize("before", NUMBERS)
def test_a_wider_type_has_the_smallest_and_the_largest_value(before: str) -> None:
    narrow = parse_type(before)
    edges = _edges(narrow)
    for after in NUMBERS:
        if not is_wider(parse_type(after), narrow):
            continue
        for edge in edges:
            query = f"SELECT CAST(CAST(x AS {after}) AS {before}) = x FROM (SELECT CAST({edge} AS {before}) AS x)"
            assert duckdb.sql(query).fetchall() == [(True,)], (edge, before, after)


def _edges(type_: SqlType) -> list[str]:
    if type_.is_integer:
        return [f"'{edge}'" for edge in type_.integer_range]
    if type_.is_float:
        return ["1e38", "-1.5e-38", "0.1"]
    largest = 10**type_.precision - 1
    return [f"{sign}{largest}::DECIMAL(38,0) / 1e{type_.scale}" for sign in ("", "-")][: 2 * (type_.precision < 16)]


def test_what_is_said_to_be_wider_is_all_there_is() -> None:
    wider = {
        f"{before} to {after}"
        for before in NUMBERS
        for after in NUMBERS
        if is_wider(parse_type(after), parse_type(before))
    }
    assert {"INTEGER to BIGINT", "FLOAT to DOUBLE", "DECIMAL(4,1) to DECIMAL(6,1)", "INTEGER to DOUBLE"} <= wider
    assert wider.isdisjoint(
        {"BIGINT to INTEGER", "BIGINT to DOUBLE", "DECIMAL(6,1) to DECIMAL(6,3)", "DOUBLE to FLOAT"}
    )
    assert not is_wider(VARCHAR, INTEGER)
