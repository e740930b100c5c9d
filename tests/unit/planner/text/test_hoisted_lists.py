"""Long lists of literals: taken out of the text where that is certainly the same, and nowhere else."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from secateur.errors import SqlSyntaxError, UnknownColumnError
from secateur.planner.text import hoist_lists

COUNT = 70
NUMBERS = ", ".join(map(str, range(COUNT)))
TEXTS = ",\n".join(f"'C{number}'" for number in range(COUNT))


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        pytest.param(f"SELECT 1 FROM t WHERE a IN ({NUMBERS})", "SELECT 1 FROM t WHERE (a = ANY(?))", id="integers"),
        pytest.param(
            f"SELECT 1 FROM t WHERE t.a in ( {TEXTS} ) OR b",
            "SELECT 1 FROM t WHERE (t.a = ANY(?)) OR b",
            id="strings and a qualified name",
        ),
        pytest.param(
            f'SELECT 1 FROM t WHERE NOT "a b" IN({NUMBERS})',
            'SELECT 1 FROM t WHERE NOT ("a b" = ANY(?))',
            id="a quoted name",
        ),
        pytest.param(
            f"SELECT 1 FROM t JOIN u ON t.a IN ({NUMBERS}) AND u.b IN ({TEXTS})",
            "SELECT 1 FROM t JOIN u ON (t.a = ANY(?)) AND (u.b = ANY(?))",
            id="two",
        ),
        pytest.param(
            f"SELECT 'x' -- it's\nFROM t WHERE a IN ({NUMBERS})",
            "SELECT 'x' -- it's\nFROM t WHERE (a = ANY(?))",
            id="behind a comment",
        ),
    ],
)
def test_lists_are_lifted(sql: str, text: str) -> None:
    hoisted = hoist_lists(sql)
    assert hoisted is not None
    assert hoisted[0].text == text
    assert [text[offset] for offset in hoisted[0].offsets] == ["?"] * text.count("?")
    assert all(values in (list(range(COUNT)), [f"C{number}" for number in range(COUNT)]) for values in hoisted[1])


def test_quotes_in_strings_are_unescaped() -> None:
    listed = ", ".join(["'it''s'", "'--'", "''", "'),('", *["'a'"] * COUNT])
    hoisted = hoist_lists(f"SELECT 1 FROM t WHERE a IN ({listed}) AND b = 'x'")
    assert hoisted is not None
    assert hoisted[0].text == "SELECT 1 FROM t WHERE (a = ANY(?)) AND b = 'x'"
    assert hoisted[1][0][:5] == ["it's", "--", "", "),(", "a"]


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT 1 FROM t WHERE a IN (1, 2)", id="a short list"),
        pytest.param(f"SELECT 1 FROM t WHERE a IN ({NUMBERS}, NULL)", id="NULL"),
        pytest.param(f"SELECT 1 FROM t WHERE a IN ({NUMBERS}, 1.5)", id="a decimal"),
        pytest.param(f"SELECT 1 FROM t WHERE a IN ({NUMBERS}, '1')", id="mixed"),
        pytest.param(f"SELECT 1 FROM t WHERE a IN ({NUMBERS}, 9999999999999999999)", id="more than 64 bits"),
        pytest.param(f"SELECT 1 FROM t WHERE a NOT IN ({NUMBERS})", id="not in"),
        pytest.param(f"SELECT 1 FROM t WHERE b + a IN ({NUMBERS})", id="an operator before"),
        pytest.param(f"SELECT 1 FROM t WHERE lower(a) IN ({TEXTS})", id="a function"),
        pytest.param(f"SELECT 'WHERE a IN ({NUMBERS})'", id="inside a string"),
        pytest.param(f'SELECT "WHERE a IN ({NUMBERS})" FROM t', id="inside a name"),
        pytest.param(f"SELECT 1 -- WHERE a IN ({NUMBERS})", id="inside a comment"),
        pytest.param(f"SELECT 1 /* */ FROM t WHERE a IN ({NUMBERS})", id="a block comment"),
        pytest.param(f"SELECT $$ $$ FROM t WHERE a IN ({NUMBERS})", id="a dollar string"),
        pytest.param(f"SELECT $x$ $x$ FROM t WHERE a IN ({NUMBERS})", id="a tagged dollar string"),
        pytest.param(f"SELECT E'\\'' FROM t WHERE a IN ({NUMBERS})", id="an escape"),
        pytest.param(f"SELECT 1 -- \r FROM t WHERE a IN ({NUMBERS})", id="a carriage return alone"),
    ],
)
def test_what_is_not_certain_stays(sql: str) -> None:
    assert hoist_lists(sql) is None


def keys(context: Any, count: int) -> list[int]:
    return sorted({context.partition("orders", customer_id=f"C{number}") for number in range(count)})


def test_a_long_list_prunes_as_its_elements_do(context: Any) -> None:
    statement = context.select(f"SELECT * FROM orders WHERE customer_id IN ({TEXTS})")
    assert statement.hidden == ([f"C{number}" for number in range(COUNT)],)
    assert statement.params == statement.hidden
    (scan,) = statement.plan.scans
    assert list(scan.tree.bind(statement.params).ids) == keys(context, COUNT)
    assert statement.plan.strategy.value == "two_stage"
    assert statement.plan.local.arrow is not None


@pytest.mark.parametrize("literal", ["'{}'", "DATE '{}'", "date'{}'"], ids=["a string", "typed", "without a space"])
def test_days_are_lists_of_dates_beside_a_date_column(context: Any, literal: str) -> None:
    context.create("CREATE TABLE days (day DATE PRIMARY KEY) PARTITION BY HASH (day) PARTITIONS 97")
    days = [date(2024, 1, 1) + timedelta(days=offset) for offset in range(COUNT)]
    statement = context.select(f"SELECT * FROM days WHERE day IN ({', '.join(map(literal.format, days))})")
    assert statement.hidden == (days,)
    assert list(statement.plan.scans[0].tree.bind(statement.params).ids) == sorted(
        {context.partition("days", day=day) for day in days}
    )


def test_strings_that_spell_days_are_strings_beside_a_varchar_column(context: Any) -> None:
    days = [str(date(2024, 1, 1) + timedelta(days=offset)) for offset in range(COUNT)]
    statement = context.select(f"SELECT * FROM orders WHERE customer_id IN ({', '.join(map(repr, days))})")
    assert statement.hidden == (days,)


def test_days_that_the_calendar_does_not_have_are_left_to_duckdb() -> None:
    listed = ", ".join([*["DATE '2024-01-01'"] * COUNT, "DATE '2024-02-30'"])
    assert hoist_lists(f"SELECT * FROM orders WHERE day IN ({listed})") is None


def test_statements_that_differ_in_the_list_share_a_plan(context: Any) -> None:
    other = ", ".join(f"'D{number}'" for number in range(COUNT + 1))
    first, second = (
        context.select(f"SELECT * FROM orders WHERE customer_id IN ({listed}) AND id = ?", [5])
        for listed in (TEXTS, other)
    )
    assert first.plan is second.plan
    assert (first.params[0], len(first.params[1]), second.params[0], len(second.params[1])) == (5, COUNT, 5, COUNT + 1)


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        pytest.param(
            "SELECT * FROM orders WHERE id > ? AND customer_id IN ({}) AND id < ?", [1, 9], id="question marks"
        ),
        pytest.param("SELECT * FROM orders WHERE id > $2 AND customer_id IN ({}) AND id < $1", [9, 1], id="numbers"),
        pytest.param(
            "SELECT * FROM orders WHERE id > $low AND customer_id IN ({}) AND id < $high",
            {"low": 1, "high": 9},
            id="names",
        ),
    ],
)
def test_hidden_parameters_follow_those_of_the_user(context: Any, sql: str, params: Any) -> None:
    statement = context.select(sql.format(TEXTS), params)
    assert statement.plan.parameter_count == 3
    assert statement.params[2] == [f"C{number}" for number in range(COUNT)]
    assert sorted(statement.params[:2]) == [1, 9]
    assert "$3" in statement.plan.local.sql


def test_the_same_text_written_by_the_user_is_another_plan(context: Any) -> None:
    hoisted = context.select(f"SELECT * FROM orders WHERE (customer_id IN ({TEXTS})) AND id = ?", [5])
    written = context.select("SELECT * FROM orders WHERE ((customer_id = ANY(?))) AND id = ?", [["C1"], 5])
    assert hoisted.plan.plan_id != written.plan.plan_id
    assert written.params == (["C1"], 5)
    assert written.hidden == ()


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(f"SELECT * FROM orders WHERE amount IN ({NUMBERS})", id="a DECIMAL column"),
        pytest.param(f"SELECT * FROM orders WHERE (id IN ({NUMBERS})) IS NOT NULL", id="inside another predicate"),
        pytest.param(
            f"SELECT * FROM orders WHERE id BETWEEN 1 AND id OR (id IN ({NUMBERS})) = TRUE", id="inside a comparison"
        ),
        pytest.param(f"SELECT (id IN ({NUMBERS})) FROM orders", id="the name of a result column"),
        pytest.param(f"SELECT count(*) FILTER (WHERE id IN ({NUMBERS})) FROM orders", id="in a FILTER"),
        pytest.param(
            f"SELECT (SELECT max(id) FROM customers c, orders o WHERE o.id IN ({NUMBERS})) FROM orders",
            id="in a subquery of the SELECT list",
        ),
        pytest.param(
            f"SELECT * FROM (SELECT id AS n FROM orders) x WHERE n IN ({NUMBERS})", id="a column of a derived table"
        ),
        pytest.param(f"INSERT INTO orders SELECT * FROM orders WHERE id IN ({NUMBERS})", id="an INSERT"),
    ],
)
def test_what_turns_out_otherwise_is_planned_as_written(context: Any, sql: str) -> None:
    assert hoist_lists(sql) is not None
    statement = context.prepare(sql)
    statement = getattr(statement, "select", statement)
    assert statement.hidden == ()
    assert str(COUNT - 1) in statement.plan.local.sql


def test_explain_shows_the_constants(context: Any) -> None:
    sql = f"SELECT * FROM orders WHERE customer_id IN ({TEXTS})"
    pruning = context.explain(sql).json["pruning"]
    assert pruning["scans"][0]["partitions"] == keys(context, COUNT)
    assert pruning["tree"].startswith(f"orders: (p{keys(context, COUNT)[0]} | ")
    assert context.explain(f"EXPLAIN {sql}").json["pruning"] == pruning


def test_explain_says_when_the_list_is_too_long(context: Any) -> None:
    listed = ", ".join(f"'C{number}'" for number in range(3000))
    pruning = context.explain(f"SELECT * FROM orders WHERE customer_id IN ({listed})").json["pruning"]
    assert pruning["tree"] == "orders: all"
    assert "2,168" in pruning["scans"][0]["reason"]


def test_errors_have_positions_in_the_users_text(context: Any) -> None:
    sql = f"SELECT * FROM orders WHERE customer_id IN ({TEXTS}) AND nothing = 1"
    with pytest.raises(UnknownColumnError) as unknown:
        context.prepare(sql)
    line = sql.count("\n") + 1
    assert unknown.value.details["line"] == line
    with pytest.raises(SqlSyntaxError) as syntax:
        context.prepare(sql.replace("nothing = 1", "= 1"))
    assert syntax.value.details["line"] == line


def test_explain_knows_the_list_also_where_parameters_are_open(context: Any) -> None:
    sql = f"SELECT * FROM orders WHERE customer_id IN ({TEXTS}) AND id = ?"
    (scan,) = context.explain(sql).json["pruning"]["scans"]
    assert scan["partitions"] == keys(context, COUNT)
    pruning = context.explain(sql.replace("AND id", "OR customer_id")).json["pruning"]
    assert pruning["scans"][0]["partitions"] is None
    assert "not bound" in pruning["scans"][0]["reason"]
    assert "$2" not in pruning["tree"]
