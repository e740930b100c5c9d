from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from secateur.errors import Error, NotSupportedError, ParameterError, SchemeError, SqlSyntaxError, UnknownTableError
from secateur.partitioning.components import HashComponent
from secateur.partitioning.range_changes import AddRange, DropNamed, DropRange, RangeChange
from secateur.partitioning.range_spec import RangeSpec, catch_all, single_value
from secateur.planner.statement import AlterTable


@pytest.fixture
def alter(bench: Any) -> Callable[[str], tuple[RangeChange, ...]]:
    bench.create(
        "CREATE TABLE days (n INT, id INT, PRIMARY KEY (n, id)) PARTITION BY HASH (id) PARTITIONS 2, "
        "RANGE (n) (PARTITION one 1 <= VALUES < 2, PARTITION 2 <= VALUES < 3, PARTITION VALUE = 9, DEFAULT PARTITION rest)"
    )
    bench.create("CREATE TABLE pairs (a INT, b INT, PRIMARY KEY (a, b)) PARTITION BY RANGE (a, b) SPLIT AT ((1, 1))")

    def prepare(sql: str) -> tuple[RangeChange, ...]:
        statement = bench.prepare(sql)
        assert isinstance(statement, AlterTable)
        return statement.changes

    return prepare


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param("ADD PARTITION 3 <= VALUES < 4", [AddRange(RangeSpec((3,), (4,)))], id="add"),
        pytest.param("ADD PARTITION three 3 <= VALUES < 4 NO HASH", [AddRange(RangeSpec((3,), (4,), "three", ()))], id="add without hash"),
        pytest.param(
            "add partition 3 <= values < 4 hash (id) partitions 8 seed 5",
            [AddRange(RangeSpec((3,), (4,), None, (HashComponent(("id",), 8, 5),)))],
            id="a busy month gets more buckets",
        ),
        pytest.param("ADD PARTITION VALUE = 7", [AddRange(single_value((7,)))], id="add a value"),
        pytest.param("DROP PARTITION one", [DropNamed("one")], id="drop by name"),
        pytest.param('DROP PARTITION "ONE"', [DropNamed("ONE")], id="drop by quoted name"),
        pytest.param("DROP PARTITION 2 <= VALUES < 3", [DropRange(RangeSpec((2,), (3,)))], id="drop by bounds"),
        pytest.param("DROP PARTITION one 1 <= VALUES < 2", [DropRange(RangeSpec((1,), (2,), "one"))], id="drop by both"),
        pytest.param("DROP PARTITION VALUE = 9", [DropRange(single_value((9,)))], id="drop by value"),
        pytest.param("DROP DEFAULT PARTITION", [DropRange(catch_all())], id="drop the catch-all"),
        pytest.param("DROP DEFAULT PARTITION, ADD DEFAULT PARTITION", [DropRange(catch_all()), AddRange(catch_all())], id="a new catch-all"),
        pytest.param(
            "DROP PARTITION one, ADD PARTITION 0 <= VALUES < 2, DROP PARTITION rest",
            [DropNamed("one"), AddRange(RangeSpec((0,), (2,))), DropNamed("rest")],
            id="several",
        ),
    ],
)
def test_changes(alter: Callable[[str], tuple[RangeChange, ...]], changes: str, expected: list[RangeChange]) -> None:
    assert alter(f"ALTER TABLE Days {changes}") == tuple(expected)


@pytest.mark.parametrize(
    ("sql", "error", "message"),
    [
        pytest.param("ALTER TABLE nope DROP PARTITION p", UnknownTableError, r"'nope' does not exist.* \(line 1, column 13\)", id="unknown table"),
        pytest.param("ALTER TABLE orders DROP PARTITION p", SchemeError, r"has no RANGE component.* \(line 1, column 13\)", id="no ranges"),
        pytest.param(
            "ALTER TABLE days DROP PARTITION p", SchemeError, r"no range named p; it has one: .*\(line 1, column 18\)\n.*\n +\^{16}", id="unknown name"
        ),
        pytest.param(
            "ALTER TABLE days DROP PARTITION 1 <= VALUES < 3", SchemeError, r"no range with exactly the bounds \(1\) <= VALUES < \(3\)", id="other upper"
        ),
        pytest.param("ALTER TABLE days DROP PARTITION one VALUES", SchemeError, "no range with exactly the bounds VALUES;", id="name with other bounds"),
        pytest.param("ALTER TABLE days DROP PARTITION one 2 <= VALUES < 3", SchemeError, "is named nothing, not one; nothing was dropped", id="KUDU-1750"),
        pytest.param(
            "ALTER TABLE days\n ADD PARTITION 5 <= VALUES < 6,\n ADD PARTITION 0 <= VALUES < 5",
            SchemeError,
            r"overlap; a row belongs to one range at most \(line 3, column 2\)",
            id="the second of two",
        ),
        pytest.param("ALTER TABLE days DROP PARTITION one, DROP PARTITION one", SchemeError, r"no range named one.*\(line 1, column 38\)", id="twice"),
        pytest.param("ALTER TABLE days ADD DEFAULT PARTITION", SchemeError, "has a DEFAULT PARTITION already", id="second catch-all"),
        pytest.param("ALTER TABLE pairs DROP DEFAULT PARTITION", SchemeError, "no DEFAULT PARTITION", id="no catch-all"),
        pytest.param("ALTER TABLE pairs ADD PARTITION 1 <= VALUES", SqlSyntaxError, r"expected \(value, value\)", id="one value for two columns"),
        pytest.param("ALTER TABLE days ADD PARTITION 'x' <= VALUES", SchemeError, "column n: 'x' .* does not fit INTEGER", id="type"),
        pytest.param(
            "ALTER TABLE days ADD COLUMN c INT", NotSupportedError, "ALTER TABLE ADD COLUMN is not supported: the ranges of a table can be altered", id="column"
        ),
        pytest.param("ALTER TABLE days DROP c", NotSupportedError, "this change is not supported", id="drop column"),
        pytest.param("ALTER TABLE days RENAME TO nights", NotSupportedError, "ALTER TABLE RENAME is not supported", id="rename"),
        pytest.param("ALTER VIEW v", NotSupportedError, "ALTER VIEW is not supported", id="view"),
        pytest.param("ALTER TABLE other.days DROP PARTITION one", NotSupportedError, "a schema in front of a table name", id="schema"),
        pytest.param("ALTER TABLE days DROP PARTITION one two", SqlSyntaxError, "expected", id="too much"),
        pytest.param("ALTER TABLE days DROP PARTITION", SqlSyntaxError, "expected", id="too little"),
        pytest.param("ALTER TABLE days ADD PARTITION ? <= VALUES", ParameterError, "takes no parameters", id="parameter"),
    ],
)
def test_refused(alter: Callable[[str], tuple[RangeChange, ...]], sql: str, error: type[Error], message: str) -> None:
    with pytest.raises(error, match=f"(?s){message}"):
        alter(sql)
