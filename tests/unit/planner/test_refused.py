from __future__ import annotations

from typing import Any

import pytest

from secateur.errors import NotSupportedError
from secateur.planner.refused import STATEMENTS


@pytest.mark.parametrize("word", STATEMENTS)
def test_statements_of_the_dialect_say_what_to_do_instead(bench: Any, word: str) -> None:
    with pytest.raises(NotSupportedError) as caught:
        bench.prepare(f"{word} something")
    assert caught.value.message.startswith(f"{word} is not supported: {STATEMENTS[word]} (line 1, column 1)")


@pytest.mark.parametrize(
    ("sql", "message", "column"),
    [
        ("SELECT * FROM orders, duckdb_tables()", "duckdb_tables() is not supported: it does not know the tables of a cluster; read secateur.tables", 23),
        ("SELECT * FROM pragma_table_info('orders')", "read secateur.columns", 15),
        ("WITH a AS (SELECT 1), b AS (DELETE FROM orders RETURNING *) SELECT 1", "DELETE in a common table expression is not supported", 23),
    ],
)
def test_parts_of_a_query_are_refused_where_they_stand(bench: Any, sql: str, message: str, column: int) -> None:
    with pytest.raises(NotSupportedError) as caught:
        bench.prepare(sql)
    assert message in caught.value.message
    assert caught.value.details["column"] == column


def test_what_tells_of_the_dialect_is_not_refused(bench: Any) -> None:
    assert bench.select("SELECT count(*) FROM duckdb_functions()").plan.columns == (("count_star()", "BIGINT"),)
