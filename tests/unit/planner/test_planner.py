from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from secateur.errors import LimitExceededError
from secateur.partitioning.tables import ColumnStatistics, TableStatistics
from secateur.planner import ExplainFormat, ExplainStatement, PlannedSelect, Planner
from secateur.protocol import Pruning, SetOption, SetPruning, SetTimeout


def test_a_statement_that_is_too_long_is_refused(context: Any) -> None:
    with pytest.raises(LimitExceededError, match="the statement has 8,000,008 characters"):
        context.prepare("SELECT " + "1 + " * 2_000_000 + "1")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SET pruning = on", SetPruning(Pruning.ON)),
        ("set PRUNING to 'Off';", SetPruning(Pruning.OFF)),
        ("SET statement_timeout = '1.5s'", SetTimeout("1.5s", 1500)),
        ("SET pruning = verify", SetPruning(Pruning.VERIFY)),
        ("SET pruning = default", SetPruning(None)),
        ("SET statement_timeout TO DEFAULT", SetTimeout("0", 0)),
        ("SET disabled_rules = default", SetOption("disabled_rules", "")),
        ("SET step_rows = default", SetOption("step_rows", "")),
        (
            "SET disabled_rules = 'materialize_subquery, JOIN_KEYS_FIRST'",
            SetOption("disabled_rules", "join_keys_first, materialize_subquery"),
        ),
        ("SET disabled_rules TO materialize_subquery", SetOption("disabled_rules", "materialize_subquery")),
        ("SET disabled_rules = ''", SetOption("disabled_rules", "")),
        ("SET combinations_per_partition = 32", SetOption("combinations_per_partition", "32")),
    ],
)
def test_settings(context: Any, sql: str, expected: SetOption | SetPruning | SetTimeout) -> None:
    assert context.prepare(sql) == expected


@pytest.mark.parametrize(
    ("sql", "form", "analyze"),
    [
        ("EXPLAIN SELECT 1", ExplainFormat.TEXT, False),
        ("explain (format json) select 1", ExplainFormat.JSON, False),
        ("EXPLAIN ANALYZE SELECT 1", ExplainFormat.TEXT, True),
        ("EXPLAIN ANALYZE (FORMAT TEXT) INSERT INTO customers SELECT 'a', 'b', 1", ExplainFormat.TEXT, True),
        ("EXPLAIN (ANALYZE, FORMAT JSON) DELETE FROM orders", ExplainFormat.JSON, True),
    ],
)
def test_explain_has_a_form_and_a_target(context: Any, sql: str, form: ExplainFormat, *, analyze: bool) -> None:
    statement = context.prepare(sql)
    assert isinstance(statement, ExplainStatement)
    assert (statement.format, statement.analyze) == (form, analyze)
    assert sql[statement.offset :].split()[0].upper() in ("SELECT", "INSERT", "DELETE")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1;",
        "VALUES (1, 'a'), (2, 'b')",
        "FROM orders",
        "(SELECT 1)",
        "WITH x AS (SELECT 1) FROM x",
        "SELECT 1 -- done",
        "select/**/1",
    ],
)
def test_every_kind_of_query_is_a_select(context: Any, sql: str) -> None:
    assert isinstance(context.prepare(sql), PlannedSelect)


class TestCache:
    def test_the_same_text_and_types_give_the_same_plan(self, context: Any) -> None:
        sql = "SELECT * FROM orders WHERE customer_id = ?"
        one, two = context.select(sql, ["C1"]), context.select(sql, ["C2"])
        assert one.plan is two.plan
        assert (one.params, two.params) == (("C1",), ("C2",))

    def test_another_type_gives_another_plan(self, context: Any) -> None:
        small, large = context.select("SELECT ? AS n", [1]), context.select("SELECT ? AS n", [2**40])
        assert (small.plan.columns, large.plan.columns) == ((("n", "INTEGER"),), (("n", "BIGINT"),))
        assert small.plan.plan_id != large.plan.plan_id

    def test_another_schema_gives_another_plan(self, context: Any) -> None:
        before = context.select("SELECT * FROM customers")
        context.create("CREATE TABLE other (a INT PRIMARY KEY)")
        after = context.select("SELECT * FROM customers")
        assert before.plan is not after.plan
        assert before.plan.plan_id != after.plan.plan_id

    def test_a_constant_whose_evaluation_was_given_up_gives_another_plan(
        self, context: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Members keep plans by their ids: a plan without pruning must not stand for one with it."""
        sql = "SELECT * FROM orders WHERE customer_id = translate('c1', 'c', 'C')"
        known = context.select(sql)
        monkeypatch.setattr("secateur.planner.prune.operands.value_of", lambda _: ())
        given_up = Planner().prepare(sql, (), context)
        assert (str(known.plan.scans[0].tree), str(given_up.plan.scans[0].tree)) == (
            f"orders: (p{context.partition('orders', customer_id='C1')})",
            "orders: all",
        )
        assert known.plan.plan_id != given_up.plan.plan_id

    def test_a_query_may_be_planned_before_its_parameters_are_known(self, context: Any) -> None:
        sql = "SELECT * FROM orders WHERE customer_id = ?"
        assert context.select(sql).params is None
        assert context.select(sql, ["C1"]).params == ("C1",)

    def test_an_explained_statement_is_not_taken_for_itself(self, context: Any) -> None:
        sql = "EXPLAIN SELECT 1"
        assert isinstance(context.prepare(sql), ExplainStatement)
        assert isinstance(context.prepare(sql), ExplainStatement)

    def test_it_is_bounded(self, context: Any) -> None:
        context.planner = Planner(cached_max=2)
        first = context.select("SELECT 1 AS a").plan
        assert context.select("SELECT 1 AS a").plan is first
        for name in "bcd":
            context.select(f"SELECT 1 AS {name}")
        assert context.select("SELECT 1 AS a").plan is not first


def test_plans_survive_msgpack(context: Any) -> None:
    from secateur.engine.sql import SelectPlan

    for sql, params in [
        (
            (
                "SELECT o.id FROM orders o JOIN customers c USING (customer_id) WHERE customer_id IN (?, 'C2') AND"
                " o.id = 3"
            ),
            ["C1"],
        ),
        ("SELECT priority, sum(amount) FROM orders WHERE customer_id = $who GROUP BY 1", {"who": "C1"}),
        ("SELECT 1", ()),
    ]:
        plan = context.select(sql, params).plan
        assert SelectPlan.decoded(plan.plan_id, plan.encoded()) == plan


PLAN_OF_SETS = (
    "SELECT * FROM orders WHERE customer_id IN ('C1', 'C2', 'C3', 'C4', 'C5', 'C6') AND priority NOT IN ('a', 'b', 'c')"
)


def test_equal_plans_have_one_id_in_all_processes(context: Any) -> None:
    """A plan has sets of values, whose order depends on the seed of the process's hashes."""
    code = (
        "from described_tables import DescribedTables; from plan_files import read_tables;"
        f"print(DescribedTables.of(read_tables('shop')).select({PLAN_OF_SETS!r}).plan.plan_id)"
    )
    path = os.pathsep.join([str(Path(__file__).parents[2] / "plans"), os.environ.get("PYTHONPATH", "")])
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {context.select(PLAN_OF_SETS).plan.plan_id}


def test_the_number_of_combinations_is_a_setting(context: Any) -> None:
    sql = "SELECT count(*) FROM orders WHERE customer_id IN (?, ?)"
    limits = [
        context.planner.prepare(sql, ("a", "b"), context, settings).plan.scans[0].tree.limit
        for settings in ({}, {"combinations_per_partition": "1"}, {})
    ]
    assert limits == [8 * 271, 271, 8 * 271]


def test_a_plan_over_several_tables_is_made_again_when_their_sizes_are_other_ones(context: Any) -> None:
    joined, single = "SELECT count(*) FROM orders o JOIN customers c USING (customer_id)", "SELECT count(*) FROM orders"
    before = [context.select(sql).plan for sql in (joined, single)]
    context.statistics_snapshot = context.statistics_snapshot.with_table(TableStatistics(1, 1_000_000))
    after = [context.select(sql).plan for sql in (joined, single)]
    assert after[0] is not before[0]
    assert after[1] is before[1]
    assert context.select(joined).plan is after[0]


@pytest.mark.parametrize(
    ("sizes", "moved"),
    [pytest.param((10**9, 10), "scan c", id="few customers"), pytest.param((10, 10**9), "scan o", id="few orders")],
)
@pytest.mark.parametrize(
    ("head", "tail"),
    [
        pytest.param("", "", id="SELECT"),
        pytest.param("INSERT INTO customers (customer_id, name) ", "", id="INSERT"),
        pytest.param(
            "INSERT INTO customers (customer_id, name) ",
            " ON CONFLICT DO UPDATE SET name = excluded.name",
            id="a change as a whole",
        ),
    ],
)
def test_statistics_choose_what_moves(context: Any, head: str, tail: str, sizes: tuple[int, int], moved: str) -> None:
    for name, nbytes in zip(("orders", "customers"), sizes, strict=True):
        table = context.table(name)
        columns = {column.name: ColumnStatistics(nbytes, 0, 10) for column in table.columns}
        context.statistics_snapshot = context.statistics_snapshot.with_table(
            TableStatistics(table.table_id, 100, columns)
        )
    statement = context.prepare(
        f"{head}SELECT o.customer_id, c.name FROM orders o JOIN customers c ON o.priority = c.name{tail}"
    )
    select = statement.select if head else statement
    assert select.plan.stages[0].name == moved
