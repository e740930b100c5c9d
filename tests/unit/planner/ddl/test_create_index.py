from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from secateur.errors import Error, NotSupportedError, SchemeError, SqlSyntaxError, UnknownColumnError, UnknownTableError
from secateur.partitioning.index import IndexDef
from secateur.planner.statement import CreateIndex, DropIndex


def test_an_index_is_read(bench: Any) -> None:
    statement = bench.prepare("CREATE INDEX IF NOT EXISTS by_priority ON Orders (PRIORITY, day)")
    assert isinstance(statement, CreateIndex)
    assert (statement.table.name, statement.index, statement.if_not_exists) == ("orders", IndexDef("by_priority", ("priority", "day")), True)
    assert bench.prepare("DROP INDEX by_priority") == DropIndex("by_priority", if_exists=False)
    assert bench.prepare("DROP INDEX IF EXISTS by_priority") == DropIndex("by_priority", if_exists=True)


def with_indexes(bench: Any, *columns: tuple[str, ...]) -> None:
    indexes = tuple(IndexDef(f"i{number}", names) for number, names in enumerate(columns))
    bench.known["orders"] = replace(bench.table("orders"), indexes=indexes)
    bench.version += 1


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ("amount = 5", "  index i0: amount = ('5.00')"),
        ("amount BETWEEN 5 AND 7 AND id > 3", "  index i0: ('5.00') <= amount <= ('7.00')"),
        ("day > DATE '2024-01-01'", "  index i1: ('2024-01-01') < day"),
        ("amount > 1 AND day = DATE '2024-01-01'", "  index i1: day = ('2024-01-01')"),
        ("amount IN (1, 2)", "  index i0: ('1.00') <= amount <= ('2.00'), in 2 ranges"),
        ("amount = 1 OR amount IS NULL", None),
        ("amount = 1 OR priority = 'x'", None),
        ("NOT amount = 1", "  index i0: amount, in 2 ranges"),
        ("amount = 1 AND customer_id = 'C1'", None),
        ("priority = 'x'", None),
    ],
)
def test_explain_says_what_is_searched(bench: Any, where: str, line: str | None) -> None:
    with_indexes(bench, ("amount",), ("day", "priority"))
    text = bench.explain(f"SELECT * FROM orders WHERE {where}").text
    assert [found for found in text.splitlines() if found.startswith("  index ")] == ([] if line is None else [line])


def test_explain_names_the_index_for_programs(bench: Any) -> None:
    with_indexes(bench, ("amount",))
    (scan,) = bench.explain("SELECT * FROM orders WHERE amount = 5").json["pruning"]["scans"]
    assert scan["index"] == "i0"
    assert scan["primary_key_bounds"] == {"lower": None, "upper": None}


@pytest.mark.parametrize(
    ("sql", "kind", "message", "column"),
    [
        pytest.param("CREATE INDEX i ON nowhere (a)", UnknownTableError, "'nowhere' does not exist", 19, id="unknown table"),
        pytest.param("CREATE INDEX i ON orders (amout)", UnknownColumnError, "did you mean amount?", 27, id="unknown column"),
        pytest.param("CREATE INDEX i ON orders (amount, AMOUNT)", SchemeError, "named twice", 35, id="a column twice"),
        pytest.param("CREATE INDEX i ON orders (lower(priority))", NotSupportedError, "an index of an expression", 27, id="an expression"),
        pytest.param("CREATE UNIQUE INDEX i ON orders (id)", NotSupportedError, "only the primary key is unique", 8, id="unique"),
        pytest.param("CREATE INDEX ON orders (id)", SqlSyntaxError, "expected ON", 17, id="no name"),
        pytest.param("CREATE INDEX i ON orders", SqlSyntaxError, "expected (", 25, id="no columns"),
        pytest.param("CREATE INDEX i ON orders (id) WHERE id > 1", SqlSyntaxError, "the end of the statement", 31, id="a part of the rows"),
        pytest.param("DROP INDEX", SqlSyntaxError, "the name of an index", 11, id="drop nothing"),
    ],
)
def test_mistakes(bench: Any, sql: str, kind: type[Error], message: str, column: int) -> None:
    with pytest.raises(kind) as caught:
        bench.prepare(sql)
    assert type(caught.value) is kind
    assert message in str(caught.value)
    assert caught.value.details["column"] == column
