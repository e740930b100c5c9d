from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from secateur.errors import Error, NotSupportedError, ParameterError, SchemeError, SqlSyntaxError
from secateur.partitioning.components import HashComponent
from secateur.partitioning.every import Every, EveryUnit
from secateur.planner.planner import Planner
from secateur.planner.statement import CreateTable, DropTable


def create(sql: str) -> CreateTable:
    statement = Planner().prepare(sql, (), None)  # type: ignore[arg-type]
    assert isinstance(statement, CreateTable)
    return statement


def bounds(sql: str) -> list[tuple[Any, Any, str | None]]:
    component = create(sql).tdef.scheme.range
    assert component is not None
    return [(partition.lower, partition.upper, partition.name) for partition in component.ranges]


def test_columns_types_and_nullability() -> None:
    table = create(
        'CREATE TABLE "My Table" (Id BIGINT, "select" VARCHAR(20) NOT NULL, price DECIMAL(10, 2) NULL, seen TIMESTAMP WITH TIME ZONE, d DOUBLE PRECISION, '
        "vector FLOAT[], PRIMARY KEY (id))"
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
        pytest.param("RANGE (c) SPLIT AT (10, 20)", [(None, (10,), None), ((10,), (20,), None), ((20,), None, None)], id="splits"),
        pytest.param(
            "RANGE (c, a) SPLIT AT ((10, 1), (20, -2))", [(None, (10, 1), None), ((10, 1), (20, -2), None), ((20, -2), None, None)], id="splits of two columns"
        ),
        pytest.param(
            'RANGE (c) (PARTITION VALUES < 0, PARTITION middle 0 <= VALUES < 10, PARTITION VALUE = 15, PARTITION "last one" 20 <= VALUES)',
            [(None, (0,), None), ((0,), (10,), "middle"), ((15,), (16,), None), ((20,), None, "last one")],
            id="bounds with a gap, a value and names",
        ),
        pytest.param("RANGE (c) (PARTITION VALUES)", [(None, None, None)], id="one range over everything"),
        pytest.param("RANGE (c) (PARTITION value VALUES < 3)", [(None, (3,), "value")], id="a range named value"),
        pytest.param(
            "RANGE (c, a) (PARTITION (1, 2) <= VALUES < (3, 4), PARTITION VALUE = (9, 9))", [((1, 2), (3, 4), None), ((9, 9), (9, 10), None)], id="tuples"
        ),
        pytest.param(
            "RANGE (d) SPLIT AT (DATE '2024-01-01', '2024-02-01')",
            [(None, (date(2024, 1, 1),), None), ((date(2024, 1, 1),), (date(2024, 2, 1),), None), ((date(2024, 2, 1),), None, None)],
            id="dates",
        ),
        pytest.param("RANGE (p) SPLIT AT (1.5)", [(None, (Decimal("1.50"),), None), ((Decimal("1.50"),), None, None)], id="decimals get the column's scale"),
    ],
)
def test_ranges(clause: str, expected: list[Any]) -> None:
    assert bounds(f"CREATE TABLE t (a INT, c INT, d DATE, p DECIMAL(6,2), PRIMARY KEY (a, c, d, p)) PARTITION BY {clause}") == expected


def test_a_range_may_have_hash_components_of_its_own() -> None:
    scheme = create(
        "CREATE TABLE t (a INT, b INT, c INT, PRIMARY KEY (a, b, c)) PARTITION BY HASH (a) PARTITIONS 4, RANGE (c) "
        "(PARTITION VALUES < 0, PARTITION 0 <= VALUES < 10 HASH (a) PARTITIONS 8 SEED 5, HASH (b) PARTITIONS 2, PARTITION VALUE = 10 NO HASH)"
    ).tdef.scheme
    assert scheme.range is not None
    assert [partition.hashes for partition in scheme.range.ranges] == [None, (HashComponent(("a",), 8, 5), HashComponent(("b",), 2)), ()]
    assert scheme.partition_count == 4 + 16 + 1


@pytest.mark.parametrize(
    ("sql", "kind", "message", "column"),
    [
        pytest.param("CREATE TABLE t (a INT)", SchemeError, "no primary key", None, id="no primary key"),
        pytest.param("CREATE TABLE t (a INT, PRIMARY KEY (b))", SchemeError, "'b', which is no column", 24, id="key of an unknown column"),
        pytest.param("CREATE TABLE t (a INT, PRIMARY KEY (a, A))", SchemeError, "twice", 24, id="key with a column twice"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)", SqlSyntaxError, "one PRIMARY KEY", 42, id="two keys"),
        pytest.param("CREATE TABLE t (a INT, A INT, PRIMARY KEY (a))", SqlSyntaxError, "declared twice", 24, id="a column twice"),
        pytest.param("CREATE TABLE t (a INTT, PRIMARY KEY (a))", NotSupportedError, "column 'a': type 'INTT'", 19, id="unknown type"),
        pytest.param("CREATE TABLE t (a FLOAT PRIMARY KEY)", SchemeError, "a of type FLOAT", None, id="a FLOAT does not partition"),
        pytest.param(
            "CREATE TABLE t (a INT PRIMARY KEY, b INT) PARTITION BY HASH (b) PARTITIONS 3", SchemeError, "not in the primary key", 43, id="outside of the key"
        ),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (x) PARTITIONS 3", SchemeError, "x", 36, id="unknown partitioning column"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS 0", SchemeError, "0", 36, id="no partitions"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (a)", SqlSyntaxError, "expected PARTITIONS", 57, id="end in the middle"),
        pytest.param(
            "CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS x", SqlSyntaxError, "number of partitions, found 'x'", 69, id="no number"
        ),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY LIST (a)", SqlSyntaxError, "HASH (...) or RANGE", 49, id="unknown component"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT (3, 1)", SchemeError, "lower bound", 36, id="splits out of order"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT (NULL)", SchemeError, "cannot be NULL", 69, id="a NULL bound"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT ('x')", SchemeError, "'x'", 36, id="a bound of another type"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT (DATE 'x')", SchemeError, "'x' is no DATE", 69, id="a bad date"),
        pytest.param(
            "CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) (PARTITION 1 < VALUES)",
            SqlSyntaxError,
            "lower <= VALUES < upper",
            72,
            id="exclusive lower bound",
        ),
        pytest.param(
            "CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) (PARTITION VALUES <= 1)",
            SqlSyntaxError,
            "lower <= VALUES < upper",
            77,
            id="inclusive upper bound",
        ),
        pytest.param(
            "CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) (PARTITION VALUE = (1, 2))", SqlSyntaxError, "1 value", 80, id="too many values"
        ),
        pytest.param(
            "CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) SPLIT AT (1), RANGE (a) SPLIT AT (2)",
            SqlSyntaxError,
            "at most one RANGE",
            73,
            id="two range components",
        ),
        pytest.param(
            "CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) (PARTITION VALUES < 5, PARTITION 3 <= VALUES)",
            SchemeError,
            "overlap",
            36,
            id="ranges that overlap",
        ),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY) REPLICATED BACKUPS 1", NotSupportedError, "REPLICATED with", 47, id="replicated with backups"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY) BACKUPS 1 REPLICATED", NotSupportedError, "REPLICATED with", 46, id="backups and replicated"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY) BACKUPS 99", SchemeError, "at most 16", 44, id="too many backups"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY) BACKUPS 1 BACKUPS 2", SqlSyntaxError, "found 'BACKUPS'", 46, id="backups twice"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY) WITH (x)", SqlSyntaxError, "found 'WITH'", 36, id="something else"),
        pytest.param("CREATE TABLE t (a INT DEFAULT 3, PRIMARY KEY (a))", NotSupportedError, "DEFAULT", 23, id="a default"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY, CHECK (a > 0))", NotSupportedError, "CHECK", 36, id="a check"),
        pytest.param("CREATE OR REPLACE TABLE IF NOT EXISTS t (a INT PRIMARY KEY)", SqlSyntaxError, "OR REPLACE leaves nothing", 25, id="two wishes"),
        pytest.param("CREATE SEQUENCE s", NotSupportedError, "CREATE SEQUENCE is not supported", 8, id="a sequence"),
        pytest.param("CREATE OR REPLACE MACRO f(a) AS a", NotSupportedError, "CREATE MACRO is not supported: write the expression", 19, id="a macro"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY, s STRUCT(x INT))", NotSupportedError, "column 's': the type STRUCT is not", 38, id="a struct"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY, s ENUM('x'))", NotSupportedError, "column 's': the type ENUM is not", 38, id="an enum"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY, s INT[3])", NotSupportedError, "a list of a fixed length is not", 42, id="an array"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY, s JSON)", NotSupportedError, "type 'JSON' is not supported", 38, id="a type of no column"),
        pytest.param("CREATE TABLE other.t (a INT PRIMARY KEY)", NotSupportedError, "schema", 14, id="a schema"),
        pytest.param("CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS ?", ParameterError, "no parameters", 69, id="a parameter"),
        pytest.param("CREATE TABLE t", SqlSyntaxError, "expected (, found the end", 15, id="no columns"),
    ],
)
def test_what_cannot_be_is_said_where_it_stands(sql: str, kind: type[Error], message: str, column: int | None) -> None:
    with pytest.raises(kind) as caught:
        create(sql)
    assert message in str(caught.value)
    assert type(caught.value) is kind
    assert caught.value.details["line"] == 1
    if column is not None:
        assert caught.value.details["column"] == column


def test_positions_count_lines() -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        create("CREATE TABLE t (\n  a INT,\n  PRIMARY KEY (a)\n)\nPARTITION BY\n  HASH a")
    assert (caught.value.details["line"], caught.value.details["column"]) == (6, 8)
    assert str(caught.value).endswith("    HASH a\n         ^")


@pytest.mark.parametrize(
    ("sql", "expected"), [("DROP TABLE t", DropTable("t", if_exists=False)), ('drop table if exists "T 1";', DropTable("T 1", if_exists=True))]
)
def test_drop(sql: str, expected: DropTable) -> None:
    assert Planner().prepare(sql, (), None) == expected  # type: ignore[arg-type]


def test_drop_of_something_else() -> None:
    with pytest.raises(NotSupportedError, match="DROP SEQUENCE is not supported: there are tables, views and indexes"):
        Planner().prepare("DROP SEQUENCE i", (), None)  # type: ignore[arg-type]


def test_a_default_partition_takes_what_no_range_holds() -> None:
    ddl = "CREATE TABLE t (a INT, b INT, PRIMARY KEY (a, b)) PARTITION BY HASH (b) PARTITIONS 2, RANGE (a) (PARTITION 0 <= VALUES < 9, DEFAULT PARTITION {})"
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
        ("INT", "EVERY 1000", Every(1000, EveryUnit.NUMBER)),
        ("BIGINT", "EVERY 1000 STARTING -5", Every(1000, EveryUnit.NUMBER, -5)),
        ("DATE", "EVERY INTERVAL 1 DAY", Every(1, EveryUnit.DAY)),
        ("DATE", "every interval 2 weeks starting date '2024-01-01'", Every(14, EveryUnit.DAY, date(2024, 1, 1))),
        ("DATE", "EVERY INTERVAL '1 month'", Every(1, EveryUnit.MONTH)),
        ("DATE", "EVERY INTERVAL '3' YEAR", Every(36, EveryUnit.MONTH)),
        ("TIMESTAMP", "EVERY INTERVAL 1 QUARTER STARTING '2024-01-01'", Every(3, EveryUnit.MONTH, datetime(2024, 1, 1))),
        ("TIMESTAMP", "EVERY INTERVAL 6 HOURS", Every(21_600_000_000, EveryUnit.MICROSECOND)),
        ("TIMESTAMPTZ", "EVERY INTERVAL 1 DAY", Every(86_400_000_000, EveryUnit.MICROSECOND)),
    ],
)
def test_ranges_made_on_demand(type_: str, clause: str, expected: Every) -> None:
    component = create(f"CREATE TABLE t (a {type_} PRIMARY KEY) PARTITION BY RANGE (a) {clause} BACKUPS 1").tdef.scheme.range
    assert component is not None
    assert (component.every, component.ranges) == (expected, ())


def test_ranges_made_on_demand_beside_others() -> None:
    component = create(
        "CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) EVERY 10 STARTING 100 (PARTITION 0 <= VALUES < 9, DEFAULT PARTITION)"
    ).tdef.scheme.range
    assert component is not None
    assert (component.every, len(component.ranges), component.catch_all is None) == (Every(10, EveryUnit.NUMBER, 100), 1, False)


@pytest.mark.parametrize(
    ("clause", "error", "message"),
    [
        ("EVERY", SqlSyntaxError, "expected a number, or INTERVAL 1 DAY, found the end"),
        ("EVERY INTERVAL 1", SqlSyntaxError, "expected YEAR, QUARTER, MONTH"),
        ("EVERY INTERVAL 1 FORTNIGHT", SqlSyntaxError, "expected YEAR, QUARTER, MONTH"),
        ("EVERY INTERVAL '1 day 2 hours'", SqlSyntaxError, "expected an interval of one unit"),
        ("EVERY INTERVAL -1 DAY", SqlSyntaxError, "expected how many units"),
        ("EVERY 10 STARTING", SqlSyntaxError, "expected a value"),
        ("EVERY INTERVAL 1 DAY", SchemeError, r"EVERY does not fit column a of type INTEGER: write a number, as in EVERY 1000 \(line 1, column 36\)"),
        ("EVERY 10 SPLIT AT (5)", SqlSyntaxError, "found 'SPLIT'"),
    ],
)
def test_every_refused(clause: str, error: type[Error], message: str) -> None:
    with pytest.raises(error, match=message):
        create(f"CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY RANGE (a) {clause}")
