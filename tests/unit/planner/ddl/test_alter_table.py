from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from secateur.errors import DataError, Error, NotSupportedError, SchemeError, SqlSyntaxError, UnknownColumnError
from secateur.partitioning.schemes import (
    AddRange,
    DropNamed,
    DropRange,
    HashComponent,
    RangeChange,
    RangeSpec,
    catch_all,
    single_value,
)
from secateur.partitioning.tables import (
    AddColumn,
    Column,
    ColumnChange,
    DropColumn,
    RenameColumn,
    RenameTable,
    SetDefault,
    SetNullable,
    SetType,
)
from secateur.partitioning.types import parse_type
from secateur.planner import AlterColumns, AlterTable


@pytest.fixture
def alter(context: Any) -> Callable[[str], tuple[RangeChange, ...]]:
    context.create(
        "CREATE TABLE days (n INT, id INT, PRIMARY KEY (n, id)) PARTITION BY HASH (id) PARTITIONS 2, RANGE (n)"
        " (PARTITION one 1 <= VALUES < 2, PARTITION 2 <= VALUES < 3, PARTITION VALUE = 9, DEFAULT PARTITION rest)"
    )
    context.create("CREATE TABLE pairs (a INT, b INT, PRIMARY KEY (a, b)) PARTITION BY RANGE (a, b) SPLIT AT ((1, 1))")

    def prepare(sql: str) -> tuple[RangeChange, ...]:
        statement = context.prepare(sql)
        assert isinstance(statement, AlterTable)
        return statement.changes

    return prepare


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param("ADD PARTITION 3 <= VALUES < 4", [AddRange(RangeSpec((3,), (4,)))], id="add"),
        pytest.param(
            "ADD PARTITION three 3 <= VALUES < 4 NO HASH",
            [AddRange(RangeSpec((3,), (4,), "three", ()))],
            id="add without hash",
        ),
        pytest.param(
            "add partition 3 <= values < 4 hash (id) partitions 8 seed 5",
            [AddRange(RangeSpec((3,), (4,), None, (HashComponent(("id",), 8, 5),)))],
            id="a busy month gets more buckets",
        ),
        pytest.param("ADD PARTITION VALUE = 7", [AddRange(single_value((7,)))], id="add a value"),
        pytest.param("DROP PARTITION one", [DropNamed("one")], id="drop by name"),
        pytest.param('DROP PARTITION "ONE"', [DropNamed("ONE")], id="drop by quoted name"),
        pytest.param("DROP PARTITION 2 <= VALUES < 3", [DropRange(RangeSpec((2,), (3,)))], id="drop by bounds"),
        pytest.param(
            "DROP PARTITION one 1 <= VALUES < 2", [DropRange(RangeSpec((1,), (2,), "one"))], id="drop by both"
        ),
        pytest.param("DROP PARTITION VALUE = 9", [DropRange(single_value((9,)))], id="drop by value"),
        pytest.param("DROP DEFAULT PARTITION", [DropRange(catch_all())], id="drop the catch-all"),
        pytest.param(
            "DROP DEFAULT PARTITION, ADD DEFAULT PARTITION",
            [DropRange(catch_all()), AddRange(catch_all())],
            id="a new catch-all",
        ),
        pytest.param(
            "DROP PARTITION one, ADD PARTITION 0 <= VALUES < 2, DROP PARTITION rest",
            [DropNamed("one"), AddRange(RangeSpec((0,), (2,))), DropNamed("rest")],
            id="several",
        ),
    ],
)
def test_changes(alter: Callable[[str], tuple[RangeChange, ...]], changes: str, expected: list[RangeChange]) -> None:
    assert alter(f"ALTER TABLE Days {changes}") == tuple(expected)


@pytest.fixture
def alter_columns(context: Any) -> Callable[[str], tuple[ColumnChange, ...]]:
    context.create("CREATE TABLE t (k INT PRIMARY KEY, a VARCHAR, b INT, partition INT)")

    def prepare(changes: str) -> tuple[ColumnChange, ...]:
        statement = context.prepare(f"ALTER TABLE t {changes}")
        assert isinstance(statement, AlterColumns)
        return statement.changes

    return prepare


INT = parse_type("INTEGER")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ("ADD COLUMN c INT", [AddColumn(Column("c", INT))]),
        ("ADD c INT NULL", [AddColumn(Column("c", INT))]),
        ("add column if not exists c int default 3 not null", [AddColumn(Column("c", INT, False, "3"), True)]),
        ("ADD COLUMN c INT NOT NULL DEFAULT 1 + 2", [AddColumn(Column("c", INT, False, "3"))]),
        ("ADD COLUMN partition2 INT, DROP a", [AddColumn(Column("partition2", INT)), DropColumn("a")]),
        ("DROP COLUMN IF EXISTS zz RESTRICT", [DropColumn("zz", True)]),
        ('DROP "partition"', [DropColumn("partition")]),
        ("RENAME a TO c", [RenameColumn("a", "c")]),
        ("RENAME COLUMN a TO c, RENAME COLUMN c TO d", [RenameColumn("a", "c"), RenameColumn("c", "d")]),
        ("RENAME TO u", [RenameTable("u")]),
        ("ALTER b SET DEFAULT 4", [SetDefault("b", "4")]),
        ("ALTER COLUMN B DROP DEFAULT", [SetDefault("b", None)]),
        ("ALTER b SET NOT NULL, ALTER b DROP NOT NULL", [SetNullable("b", False), SetNullable("b", True)]),
        ("ALTER b TYPE BIGINT", [SetType("b", parse_type("BIGINT"))]),
        ("ALTER b SET DATA TYPE DECIMAL(12, 2)", [SetType("b", parse_type("DECIMAL(12,2)"))]),
        ("ADD COLUMN c INT, ALTER c TYPE BIGINT", [AddColumn(Column("c", INT)), SetType("c", parse_type("BIGINT"))]),
    ],
)
def test_changes_of_columns(
    alter_columns: Callable[[str], tuple[ColumnChange, ...]], changes: str, expected: list[ColumnChange]
) -> None:
    assert list(alter_columns(changes)) == expected


@pytest.mark.parametrize(
    ("changes", "kind", "message", "at"),
    [
        ("DROP COLUMN k", SchemeError, "column k is of the primary key", "DROP COLUMN k"),
        ("ADD COLUMN c INT, DROP k", SchemeError, "cannot be dropped", "DROP k"),
        ("ALTER zz SET NOT NULL", UnknownColumnError, "no column 'zz'", "zz"),
        ("RENAME COLUMN zz TO c", UnknownColumnError, "no column 'zz'", "RENAME COLUMN zz TO c"),
        ("ALTER b", SqlSyntaxError, "expected SET DEFAULT", ""),
        ("ALTER b SET DEFAULT 'x'", DataError, "b", "'x'"),
        ("FROB", SqlSyntaxError, "expected ADD, DROP, RENAME or ALTER", "FROB"),
        ("ADD COLUMN c INT PRIMARY KEY", NotSupportedError, "may have DEFAULT and NOT NULL", "PRIMARY"),
        ("ADD COLUMN c", SqlSyntaxError, "the type of column 'c'", ""),
        ("ALTER b TYPE BIGINT USING b + 1", NotSupportedError, "a wider one", "USING"),
        ("ADD CONSTRAINT x CHECK (b > 1)", NotSupportedError, "the columns of a table", "ADD"),
        ("ADD COLUMN c INT, ADD PARTITION 1 <= VALUES < 3", SqlSyntaxError, "type of column", "1"),
    ],
)
def test_changes_of_columns_that_cannot_be(
    alter_columns: Callable[[str], tuple[ColumnChange, ...]], changes: str, kind: type[Error], message: str, at: str
) -> None:
    with pytest.raises(kind, match=message) as raised:
        alter_columns(changes)
    text = f"ALTER TABLE t {changes}"
    assert f"column {text.rindex(at) + 1})" in str(raised.value) if at else True
