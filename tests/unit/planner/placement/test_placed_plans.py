"""What of a correlated subquery becomes rows by key, and what statements of several tables are gathered for."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.plan import Strategy
from secateur.engine.stage import Exchange
from secateur.planner.placement import search


@pytest.mark.parametrize(
    ("where", "is_lookup"),
    [
        pytest.param("score > (SELECT sum(amount) FROM orders o WHERE o.priority = c.name)", True, id="a value"),
        pytest.param("score > (SELECT count(*) FROM orders o WHERE o.priority = c.name)", False, id="a count, which is 0 of no rows"),
        pytest.param("EXISTS (SELECT 1 FROM orders o WHERE o.priority = c.name)", True, id="EXISTS"),
        pytest.param("EXISTS (SELECT max(id) FROM orders o WHERE o.priority = c.name)", False, id="EXISTS of one row"),
        pytest.param("EXISTS ((SELECT max(id) FROM orders o WHERE o.priority = c.name))", False, id="EXISTS of one row, in parentheses"),
        pytest.param("name NOT IN (SELECT max(priority) FROM orders o WHERE o.priority = c.name)", False, id="NOT IN"),
        pytest.param("name <> ALL (SELECT max(priority) FROM orders o WHERE o.priority = c.name)", False, id="ALL"),
    ],
)
def test_lookups(bench: Any, where: str, is_lookup: bool) -> None:
    plan = bench.select(f"SELECT c.name FROM customers c WHERE {where}").plan
    assert any(stage.name == "keys" for stage in plan.stages) is is_lookup


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        pytest.param("t1", Strategy.PLACED, id="a letter and a number"),
        pytest.param("orders", Strategy.PLACED, id="the name of a table"),
        pytest.param("s1", Strategy.GATHER, id="the name of a scan"),
        pytest.param("x0", Strategy.GATHER, id="the name of a stage"),
    ],
)
def test_names_of_common_table_expressions(bench: Any, name: str, strategy: Strategy) -> None:
    sql = f"WITH {name} AS (SELECT customer_id FROM orders WHERE amount > 1) SELECT c.name FROM {name} x JOIN customers c ON c.customer_id = x.customer_id"
    assert bench.select(sql).plan.strategy is strategy


@pytest.mark.parametrize(
    ("sql", "passes_on"),
    [
        pytest.param("SELECT c.name, o.amount FROM customers c JOIN orders o USING (customer_id)", True, id="a join"),
        pytest.param("SELECT * FROM (SELECT c.name, o.amount + 1 AS a FROM customers c JOIN orders o USING (customer_id)) q", True, id="a join in FROM"),
        pytest.param("SELECT c.name, o.amount FROM customers c JOIN orders o USING (customer_id) LIMIT 5", True, id="LIMIT"),
        pytest.param("SELECT c.name FROM customers c JOIN orders o USING (customer_id) ORDER BY 1 LIMIT 5", False, id="the first of an order"),
        pytest.param("SELECT DISTINCT c.name FROM customers c JOIN orders o USING (customer_id)", False, id="DISTINCT"),
        pytest.param("SELECT o.priority, count(*) FROM customers c JOIN orders o USING (customer_id) GROUP BY ALL", False, id="groups"),
        pytest.param("SELECT o.priority, rank() OVER (ORDER BY o.amount) FROM orders o", False, id="a window"),
    ],
)
def test_what_only_passes_rows_on(bench: Any, sql: str, passes_on: bool) -> None:
    assert bench.select(sql).plan.stages[-1].fragment.row_by_row is passes_on


@pytest.mark.parametrize(
    ("sql", "stages"),
    [
        pytest.param(
            "SELECT o.id, p.id FROM orders o ASOF JOIN orders p ON o.customer_id = p.customer_id AND o.day >= p.day",
            ["join o: members", "final: coordinator"],
            id="ASOF by the partitioning key",
        ),
        pytest.param(
            "SELECT o.id, p.id FROM orders o ASOF LEFT JOIN orders p ON o.priority = p.priority AND o.day >= p.day",
            ["scan p: members, broadcast", "join o: members", "final: coordinator"],
            id="ASOF by other columns",
        ),
        pytest.param(
            "SELECT sum(o.amount) FROM orders o ASOF JOIN metrics m ON o.day >= m.time",
            ["scan m: members, broadcast", "join o: members", "final: coordinator"],
            id="ASOF by nothing",
        ),
        pytest.param(
            "SELECT a.code, b.name, o.id FROM airlines a ASOF JOIN airlines b ON a.name >= b.name JOIN orders o ON o.priority = a.code",
            ["scan o: members", "final: coordinator"],
            id="ASOF of copies, whose choice among equals is made once",
        ),
        pytest.param(
            "WITH RECURSIVE r AS (SELECT customer_id, name FROM customers WHERE score = 0 UNION "
            "SELECT c.customer_id, c.name FROM customers c JOIN r ON c.name = r.customer_id) "
            "SELECT o.customer_id, sum(o.amount) FROM r JOIN orders o ON o.customer_id = r.customer_id GROUP BY ALL",
            ["scan customers: members", "scan c: members", "r: coordinator, broadcast", "join r: members", "final: coordinator"],
            id="a recursion, and what is joined with it",
        ),
        pytest.param(
            "WITH RECURSIVE r AS (SELECT code, name FROM airlines UNION SELECT a.code, a.name FROM airlines a JOIN r ON a.code = r.name) "
            "SELECT r.code, count(*) FROM r JOIN orders o ON o.priority = r.code GROUP BY ALL",
            ["r: coordinator, broadcast", "join r: members", "final: coordinator"],
            id="a recursion over copies",
        ),
        pytest.param(
            "SELECT n, o.id FROM range(3) AS r(n) JOIN orders o ON o.id = n",
            ["scan o: members", "final: coordinator"],
            id="a table function",
        ),
        pytest.param(
            "SELECT string_agg(DISTINCT o.priority, ',' ORDER BY o.priority) AS p FROM orders o JOIN customers c USING (customer_id) GROUP BY o.customer_id "
            "ORDER BY p DESC NULLS LAST",
            ["join o: members", "final: coordinator"],
            id="string_agg(DISTINCT), NULLS LAST",
        ),
        pytest.param(
            "SELECT o.priority, (SELECT min(a.name) FROM airlines a WHERE a.code = o.priority) AS n, sum(o.amount) "
            "FROM orders o JOIN customers c ON c.customer_id = o.customer_id GROUP BY 1",
            ["scan o: members", "scan c: members", "final: coordinator"],
            id="a subquery about rows of the SELECT around it",
        ),
        pytest.param(
            "SELECT id, rank() OVER w FROM orders o JOIN customers USING (customer_id) WINDOW w AS (PARTITION BY o.customer_id ORDER BY id) ORDER BY 2 LIMIT 3",
            ["join o: members", "final: coordinator"],
            id="a named window",
        ),
        pytest.param(
            "SELECT c.name, q.id FROM customers c, LATERAL (SELECT o.id FROM orders o WHERE o.customer_id = c.customer_id ORDER BY o.amount LIMIT 2) q",
            ["join c: members", "final: coordinator"],
            id="the first rows of each",
        ),
        pytest.param(
            "SELECT score, n FROM customers c LEFT JOIN ((SELECT customer_id, count(*) AS n FROM orders GROUP BY 1) q JOIN airlines ON code = q.customer_id) "
            "ON c.customer_id = q.customer_id",
            ["join c: members", "final: coordinator"],
            id="a join in parentheses",
        ),
        pytest.param(
            "SELECT o.id, m.value FROM orders o FULL JOIN metrics m ON o.customer_id = m.host",
            ["scan m: members, route", "join o: members", "final: coordinator"],
            id="an outer join that keeps the rows of both sides",
        ),
    ],
)
def test_stages(bench: Any, sql: str, stages: list[str]) -> None:
    plan = bench.select(sql).plan
    assert plan.strategy is Strategy.PLACED, plan.gather_reason
    shown = [
        f"{stage.name}: {'coordinator' if stage.at_coordinator else 'members'}{f', {stage.exchange.value}' if stage.exchange is not Exchange.GATHER else ''}"
        for stage in plan.stages
    ]
    assert shown == stages


def test_a_mention_that_renames_columns_moves_with_all_that_stand_before_them(bench: Any) -> None:
    plan = bench.select("SELECT o.id FROM orders o LEFT JOIN customers AS c(a, b) ON o.priority = c.b").plan
    assert plan.stages[0].fragment.sql == 'SELECT "customer_id", "name", "score" FROM s1'


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("((SELECT max(amount) AS m, priority FROM orders GROUP BY 2) x FULL JOIN orders y ON x.priority = y.priority)", id="a query first"),
        pytest.param("(orders y FULL JOIN (SELECT max(amount) AS m, priority FROM orders GROUP BY 2) x ON x.priority = y.priority)", id="a query second"),
    ],
)
def test_a_join_in_parentheses_is_no_query(bench: Any, source: str) -> None:
    plan = bench.select(f"SELECT c.name, x.m, y.id FROM customers c JOIN {source} ON c.name = x.priority").plan
    assert plan.strategy is Strategy.PLACED
    assert all(stage.fragment.sql.startswith("SELECT") for stage in plan.stages)


def test_a_key_by_which_rows_go_goes_along(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two equal columns of a scan the one names the other; what makes them equal is applied where the rows are, and leaves one of them unread."""
    monkeypatch.setattr(search, "_SHUFFLED_MIN", 0.0)
    monkeypatch.setattr(search, "_SHUFFLE_SHARE", 1e-6)
    plan = bench.select("SELECT p.amount FROM orders o JOIN orders p ON o.priority = p.priority WHERE p.customer_id = p.priority").plan
    shuffled = [stage for stage in plan.stages if stage.exchange is Exchange.SHUFFLE]
    assert shuffled
    assert all({*stage.columns} <= {*stage.fragment.schema.names} for stage in shuffled)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        pytest.param(
            "SELECT *\nFROM (SELECT o.id FROM orders o\n  POSITIONAL JOIN metrics m)",
            "o, m, for a POSITIONAL JOIN compares more than its condition names (line 2, column 14)",
            id="a join by positions",
        ),
        pytest.param(
            "SELECT priority, median(amount) FROM orders o JOIN customers c USING (customer_id) GROUP BY 1",
            "o, c, for median() over groups of several members (line 1, column 8)",
            id="an aggregate",
        ),
        pytest.param(
            "SELECT id, sum(amount) OVER (ORDER BY id) FROM orders",
            "orders, for a window that is not partitioned by the partitioning key (line 1, column 8)",
            id="a window",
        ),
        pytest.param(
            "WITH RECURSIVE r AS (SELECT 'a' AS k UNION SELECT c.name FROM customers c JOIN r ON c.customer_id = r.k) SELECT * FROM r",
            "c, for each step of the recursion r needs the rows of the step before (line 1, column 16)",
            id="a recursion",
        ),
        pytest.param("SELECT o.id FROM orders o JOIN customers c USING (customer_id) ORDER BY id LIMIT 3", None, id="nothing"),
    ],
)
def test_what_is_gathered_is_told_with_its_place(bench: Any, sql: str, reason: str | None) -> None:
    assert bench.select(sql).plan.gather_reason == reason
    assert ("gathered:" in bench.explain(sql).text) is (reason is not None)


def test_places_in_a_view_are_where_it_is_mentioned(bench: Any) -> None:
    bench.create_view("CREATE VIEW pairs AS SELECT o.id FROM orders o POSITIONAL JOIN metrics m")
    assert bench.select("SELECT id FROM pairs").plan.gather_reason.endswith("(line 1, column 16)")


@pytest.mark.parametrize(
    ("sql", "stages"),
    [
        pytest.param(
            "SELECT priority, median(amount) FROM orders GROUP BY 1 ORDER BY 2 LIMIT 3",
            ["scan orders: shuffle", "scan x0: gather", "final: gather"],
            id="an aggregate without parts",
        ),
        pytest.param(
            "SELECT id, rank() OVER (PARTITION BY priority ORDER BY id) FROM orders",
            ["scan orders: shuffle", "groups x0: gather", "final: gather"],
            id="a window",
        ),
        pytest.param(
            "SELECT DISTINCT day, count(*) OVER (PARTITION BY priority) FROM orders",
            ["scan orders: shuffle", "scan x0: gather", "final: gather"],
            id="DISTINCT of windows, which several members may have alike",
        ),
        pytest.param(
            "SELECT id, rank() OVER (PARTITION BY priority ORDER BY id), sum(id) OVER (PARTITION BY day) FROM orders",
            ["scan orders: gather", "final: gather"],
            id="windows that agree in nothing",
        ),
        pytest.param("SELECT sum(id), median(amount) FROM orders GROUP BY amount", ["scan orders: gather", "final: gather"], id="a decimal"),
        pytest.param("SELECT priority, median(amount) FROM orders GROUP BY ROLLUP (priority)", ["scan orders: gather", "final: gather"], id="sets"),
    ],
)
def test_many_rows_are_dealt_by_what_groups_and_windows_have_in_common(bench: Any, monkeypatch: pytest.MonkeyPatch, sql: str, stages: list[str]) -> None:
    monkeypatch.setattr(search, "_SHUFFLED_MIN", 0.0)
    assert [f"{stage.name}: {stage.exchange.value}" for stage in bench.select(sql).plan.stages] == stages
