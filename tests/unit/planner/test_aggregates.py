"""What the rows of the table of aggregates say, beside what DuckDB does."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.kernels.duckdb import default_kernel
from secateur.planner import AGGREGATES, SPLIT, SqlAggregate
from secateur.planner.binding import BoundPlan, bind_to_plan
from secateur.planner.distribute.aggregation import split_aggregation
from secateur.planner.tree import BoundText, column_types, sql_of
from secateur.planner.tree.relations import LogicalAggregate, LogicalStageRows

ARGUMENTS = {"count_star": "", **dict.fromkeys(("bool_and", "bool_or", "count_if"), "b")}
"""The column over which each aggregate goes, if it is not ``i``."""

ROWS = """
    SELECT k % 4 AS member, CASE WHEN k % 7 > 0 THEN k * 37 % 101 - 50 END AS i, k % 13 AS j,
           CASE WHEN k % 3 > 0 THEN k % 2 = 0 END AS b
    FROM range(1, 61) r(k)
"""


def argument(name: str) -> str:
    return ARGUMENTS.get(name, "i")


def answer(sql: str) -> Any:
    (value,) = default_kernel().run(f"WITH t AS MATERIALIZED ({ROWS}) {sql}", {}).columns[0].to_pylist()
    return value


def final_sql(name: str, states: str) -> str:
    """The final of an aggregate over the rows of a query, as ``c0``."""
    columns = {"i": "BIGINT", "j": "BIGINT", "b": "BOOLEAN"}
    plan = bind_to_plan(default_kernel(), f"SELECT {name}({argument(name)}) FROM t", {"t": columns}, [])
    assert isinstance(plan, BoundPlan)
    (aggregation,) = plan.root.children
    assert isinstance(aggregation, LogicalAggregate)
    split = split_aggregation(aggregation)
    assert split is not None
    partial, make_final = split
    types = column_types(partial)
    names = tuple(f"s{number}" for number in range(len(types)))
    final = make_final(LogicalStageRows(name=f"({states})", names=names, types=types))
    return sql_of(final, lambda _: "", BoundText())


@pytest.fixture(params=AGGREGATES.values(), ids=AGGREGATES)
def aggregate(request: pytest.FixtureRequest) -> SqlAggregate:
    found: SqlAggregate = request.param
    return found


@pytest.mark.parametrize("rows", ["TRUE", "member <> 2", "member = 1", "i IS NULL", "i = 12", "FALSE"])
@pytest.mark.parametrize("name", sorted(SPLIT))
def test_the_final_over_the_states_is_the_whole(name: str, rows: str) -> None:
    """As if each member had the rows with its number, and one of them had none."""
    aggregate, of = AGGREGATES[name], argument(name)
    states = ", ".join(f"{state}({of}) AS s{number}" for number, state in enumerate(aggregate.states))
    members = " UNION ALL ".join(f"SELECT {states} FROM t WHERE {rows} AND member = {number}" for number in range(5))
    type_ = answer(f"SELECT any_value(typeof(v)) FROM (SELECT {name}({of}) AS v FROM t)")
    combined = f"SELECT c0 AS v FROM ({final_sql(name, members)})"
    if aggregate.depends_on_order:
        values = answer(f"SELECT list({of}) FILTER ({of} IS NOT NULL) FROM t WHERE {rows}") or [None]
        assert answer(combined) in values
    else:
        assert answer(combined) == answer(f"SELECT {name}({of}) FROM t WHERE {rows}")
    assert answer(f"SELECT typeof(v) FROM ({combined})") == type_
    assert answer(final_sql(name, f"FROM ({members}) LIMIT 0")) == aggregate.of_nothing, "no member is asked"


def test_the_value_over_no_rows(aggregate: SqlAggregate) -> None:
    assert answer(f"SELECT {aggregate.name}({argument(aggregate.name)}) FROM t WHERE FALSE") == aggregate.of_nothing


def test_the_order_of_rows_matters_where_the_row_says_so(aggregate: SqlAggregate) -> None:
    call = f"SELECT {aggregate.name}({argument(aggregate.name)}) FROM (FROM t WHERE b ORDER BY"
    answers = {answer(f"{call} {order})") for order in ("i", "i DESC", "j, i", "hash(i)")}
    assert (len(answers) > 1) is aggregate.depends_on_order


@pytest.mark.parametrize("name", [name for name, aggregate in AGGREGATES.items() if aggregate.is_chosen])
def test_of_a_key_of_the_group_it_is_the_key(name: str) -> None:
    groups = f"SELECT i, {name}(i) AS v FROM t GROUP BY i"
    assert answer(f"SELECT count(*) FILTER (v IS DISTINCT FROM i) FROM ({groups})") == 0


@pytest.mark.parametrize("name", [name for name, aggregate in AGGREGATES.items() if aggregate.takes_distinct])
def test_distinct_values_are_enough_and_null_is_none(name: str) -> None:
    of, distinct = argument(name), f"SELECT {name}(DISTINCT {argument(name)}) FROM t"
    assert answer(distinct) == answer(f"{distinct} WHERE {of} IS NOT NULL")
    assert answer(distinct) == answer(f"SELECT {name}({of}) FROM (SELECT DISTINCT {of} FROM t)")
