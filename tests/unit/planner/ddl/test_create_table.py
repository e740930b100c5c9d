from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from secateur.partitioning.schemes import ROW_ID, HashComponent, IntervalPartitioning, IntervalUnit
from secateur.partitioning.tables import ROW_ID_COLUMN
from secateur.planner import CreateTable, DropTable, Planner
from secateur.planner.ddl.table_sql import table_sql


def create(sql: str) -> CreateTable:
    statement = Planner().prepare(sql, (), SimpleNamespace(types={}))  # type: ignore[arg-type]
    assert isinstance(statement, CreateTable)
    return statement


def bounds(sql: str) -> list[tuple[Any, Any, str | None]]:
    component = create(sql).tdef.scheme.range
    assert component is not None
    return [(partition.lower, partition.upper, partition.name) for partition in component.ranges]


def test_columns_types_and_nullability() -> None:
    table = create(
        'CREATE TABLE "My Table" (Id BIGINT, "select" VARCHAR(20) NOT NULL, price DECIMAL(10, 2) NULL, seen TIMESTAMP'
        " WITH TIME ZONE, d DOUBLE PRECISION, vector FLOAT[], PRIMARY KEY (id))"
    ).tdef
    assert table.name == "My Table"
    assert [(column.name, str(column.type), column.nullable) for column in table.columns] == [
        ("Id", "BIGINT", False),
        ("select", "VARCHAR", False),
        ("price", "DECIMAL(10,2)", True),
        ("seen", "TIMESTAMP WITH TIME ZONE", True),
        ("d", "DOUBLE", True),
        ("vector", "FLOAT[]", True),
    ]
    assert table.primary_key == ("Id",)


def test_defaults_are_a_hash_of_the_primary_key_and_one_backup() -> None:
    table = create("create table t (a int, b int, primary key (b, a))").tdef
    assert table.scheme.hashes == (HashComponent(("b", "a"), 271),)
    assert table.scheme.range is None
    assert (table.backups, table.replicated, table.table_id) == (1, False, 0)


def test_a_replicated_table_has_one_partition() -> None:
    table = create("create table t (a int primary key) replicated").tdef
    assert table.replicated
    assert table.partition_count == 1
    assert table.scheme.columns == ()


def test_hash_components_seed_and_backups() -> None:
    table = create(
        "CREATE TABLE IF NOT EXISTS t (a INT, b INT, c INT, PRIMARY KEY (a, b, c)) "
        "PARTITION BY HASH (B, a) PARTITIONS 16 SEED 7, HASH (c) PARTITIONS 3 SEED -1 BACKUPS 2"
    )
    assert table.if_not_exists
    assert table.tdef.scheme.hashes == (HashComponent(("b", "a"), 16, 7), HashComponent(("c",), 3, -1))
    assert table.tdef.backups == 2
    assert table.tdef.partition_count == 48


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        pytest.param(
            "RANGE (c) SPLIT AT (10, 20)", [(None, (10,), None), ((10,), (20,), None), ((20,), None, None)], id="splits"
        ),
        pytest.param(
            "RANGE (c, a) SPLIT AT ((10, 1), (20, -2))",
            [(None, (10, 1), None), ((10, 1), (20, -2), None), ((20, -2), None, None)],
            id="splits of two columns",
        ),
        pytest.param(
            'RANGE (c) (PARTITION VALUES < 0, PARTITION middle 0 <= VALUES < 10, PARTITION VALUE = 15, PARTITION "last'
            ' one" 20 <= VALUES)',
            [(None, (0,), None), ((0,), (10,), "middle"), ((15,), (16,), None), ((20,), None, "last one")],
            id="bounds with a gap, a value and names",
        ),
        pytest.param("RANGE (c) (PARTITION VALUES)", [(None, None, None)], id="one range over everything"),
        pytest.param("RANGE (c) (PARTITION value VALUES < 3)", [(None, (3,), "value")], id="a range named value"),
        pytest.param(
            "RANGE (c, a) (PARTITION (1, 2) <= VALUES < (3, 4), PARTITION VALUE = (9, 9))",
            [((1, 2), (3, 4), None), ((9, 9), (9, 10), None)],
            id="tuples",
        ),
        pytest.param(
            "RANGE (d) SPLIT AT (DATE '2024-01-01', '2024-02-01')",
            [
                (None, (date(2024, 1, 1),), None),
                ((date(2024, 1, 1),), (date(2024, 2, 1),), None),
                ((date(2024, 2, 1),), None, None),
            ],
            id="dates",
        ),
        pytest.param(
            "RANGE (p) SPLIT AT (1.5)",
            [(None, (Decimal("1.50"),), None), ((Decimal("1.50"),), None, None)],
            id="decimals get the column's scale",
        ),
    ],
)
def test_ranges(clause: str, expected: list[Any]) -> None:
    assert (
        bounds(f"CREATE TABLE t (a INT, c INT, d DATE, p DECIMAL(6,2), PRIMARY KEY (a, c, d, p)) PARTITION BY {clause}")
        == expected
    )


def test_a_range_may_have_hash_components_of_its_own() -> None:
    scheme = create(
        "CREATE TABLE t (a INT, b INT, c INT, PRIMARY KEY (a, b, c)) PARTITION BY HASH (a) PARTITIONS 4, RANGE (c)"
        " (PARTITION VALUES < 0, PARTITION 0 <= VALUES < 10 HASH (a) PARTITIONS 8 SEED 5, HASH (b) PARTITIONS 2,"
        " PARTITION VALUE = 10 NO HASH)"
    ).tdef.scheme
    assert scheme.range is not None
    assert [partition.hashes for partition in scheme.range.ranges] == [
        None,
        (HashComponent(("a",), 8, 5), HashComponent(("b",), 2)),
        (),
    ]
    assert scheme.partition_count == 4 + 16 + 1


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("DROP TABLE t", DropTable("t", if_exists=False)),
        ('drop table if exists "T 1";', DropTable("T 1", if_exists=True)),
    ],
)
def test_drop(sql: str, expected: DropTable) -> None:
    assert Planner().prepare(sql, (), SimpleNamespace(types={})) == expected  # type: ignore[arg-type]


def test_a_default_partition_takes_what_no_range_holds() -> None:
    ddl = (
        "CREATE TABLE t (a INT, b INT, PRIMARY KEY (a, b)) PARTITION BY HASH (b) PARTITIONS 2, RANGE (a) (PARTITION 0"
        " <= VALUES < 9, DEFAULT PARTITION {})"
    )
    for clause, name, hashes in (
        ("", None, None),
        ("rest", "rest", None),
        ("NO HASH", None, ()),
        ('"no" HASH (b) PARTITIONS 3', "no", (HashComponent(("b",), 3),)),
    ):
        component = create(ddl.format(clause)).tdef.scheme.range
        assert component is not None
        assert component.catch_all is not None
        assert (component.catch_all.ordinal, component.catch_all.name, component.catch_all.hashes) == (1, name, hashes)


@pytest.mark.parametrize(
    ("type_", "clause", "expected"),
    [
        ("INT", "EVERY 1000", IntervalPartitioning(1000, IntervalUnit.NUMBER)),
        ("BIGINT", "EVERY 1000 STARTING -5", IntervalPartitioning(1000, IntervalUnit.NUMBER, -5)),
        ("DATE", "EVERY INTERVAL 1 DAY", IntervalPartitioning(1, IntervalUnit.DAY)),
        (
            "DATE",
            "every interval 2 weeks starting date '2024-01-01'",
            IntervalPartitioning(14, IntervalUnit.DAY, date(2024, 1, 1)),
        ),
        ("DATE", "EVERY INTERVAL '1 month'", IntervalPartitioning(1, IntervalUnit.MONTH)),
        ("DATE", "EVERY INTERVAL '3' YEAR", IntervalPartitioning(36, IntervalUnit.MONTH)),
        (
            "TIMESTAMP",
            "EVERY INTERVAL 1 QUARTER STARTING '2024-01-01'",
            IntervalPartitioning(3, IntervalUnit.MONTH, datetime(2024, 1, 1)),
        ),
        ("TIMESTAMP", "EVERY INTERVAL 6 HOURS", IntervalPartitioning(21_600_000_000, IntervalUnit.MICROSECOND)),
        ("TIMESTAMPTZ", "EVERY INTERVAL 1 DAY", IntervalPartitioning(86_400_000_000, IntervalUnit.MICROSECOND)),
    ],
)
def test_ranges_made_on_demand(type_: str, clause: str, expected: IntervalPartitioning) -> None:
    component = create(
        f"CREATE TABLE t (a {type_} PRIMARY KEY) PARTITION BY RANGE (a) {clause} BACKUPS 1"
    ).tdef.scheme.range
    assert component is not None
    assert (component.every, component.ranges) == (expected, ())


def test_ranges_made_on_demand_beside_others() -> None:
    component = create(
        "CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY 10 STARTING 100 (PARTITION 0 <= VALUES < 9,"
        " DEFAULT PARTITION)"
    ).tdef.scheme.range
    assert component is not None
    assert (component.every, len(component.ranges), component.catch_all is None) == (
        IntervalPartitioning(10, IntervalUnit.NUMBER, 100),
        1,
        False,
    )


@pytest.mark.parametrize(
    ("clauses", "key", "not_null"),
    [
        ("", (ROW_ID,), set()),
        ("REPLICATED", (ROW_ID,), set()),
        ("PARTITION BY RANDOM PARTITIONS 8", (ROW_ID,), set()),
        ("PARTITION BY HASH (B) PARTITIONS 4", ("b", ROW_ID), {"b"}),
        ("PARTITION BY HASH (c, b) PARTITIONS 4 SEED 7 BACKUPS 2", ("c", "b", ROW_ID), {"b", "c"}),
        ("PARTITION BY RANDOM PARTITIONS 3 SEED 5, RANGE (c) SPLIT AT (5)", (ROW_ID, "c"), {"c"}),
        ("PARTITION BY RANGE (c) EVERY 10", ("c", ROW_ID), {"c"}),
        (
            "PARTITION BY RANGE (c) (PARTITION VALUE = 5 HASH (b) PARTITIONS 3, DEFAULT PARTITION RANDOM PARTITIONS 2)",
            ("b", "c", ROW_ID),
            {"b", "c"},
        ),
    ],
)
def test_a_table_without_a_key_is_ordered_by_what_partitions_it_and_a_hidden_id(
    clauses: str, key: tuple[str, ...], not_null: set[str]
) -> None:
    table = create(f"CREATE TABLE t (a INT, b VARCHAR, c BIGINT, d FLOAT[]) {clauses}").tdef
    assert [column.name for column in table.visible_columns] == ["a", "b", "c", "d"]
    assert table.columns[-1] == ROW_ID_COLUMN
    assert set(table.primary_key) == set(key)
    assert table.declared_key == ()
    assert {column.name for column in table.visible_columns if not column.nullable} == not_null
    assert table.replicated or table.is_placed_by_key
    assert ROW_ID not in table_sql(table)
    again = create(table_sql(table)).tdef
    assert again == table
    assert table_sql(again) == table_sql(table)
