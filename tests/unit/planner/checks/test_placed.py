"""Stages that are put together again: those of a placed statement pass, and whatever is changed in the text of one is
found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from sqlglot import exp

from secateur.engine.sql import Strategy
from secateur.partitioning.tables import ColumnStatistics, StatisticsSnapshot, TableStatistics
from secateur.planner import CostModel, Planner
from secateur.planner.checks import placed_difference
from secateur.planner.placement import place
from secateur.planner.text import parse_query, read_statement, to_sql, tokenize

STATEMENTS: Final = (
    pytest.param(
        "SELECT c.name, o.id FROM customers c JOIN orders o ON o.priority = c.name AND o.amount > 3 WHERE c.score > 1",
        id="a scan that moves",
    ),
    pytest.param(
        "SELECT c.name, o.* FROM customers c LEFT JOIN orders o ON o.priority = c.name AND o.amount > 3",
        id="an outer join, a star",
    ),
    pytest.param(
        "WITH v(n, a) AS (SELECT priority, sum(amount) FROM orders WHERE id > 7 GROUP BY priority) SELECT c.name, v.a"
        " FROM customers c, v WHERE c.name = n",
        id="a common table expression that is mentioned once",
    ),
    pytest.param(
        "WITH v(n, a) AS (SELECT DISTINCT priority, day FROM orders) SELECT v.n, w.b FROM v JOIN v AS w(m, b) ON n = m"
        " WHERE w.b > v.a",
        id="one that is mentioned twice",
    ),
    pytest.param(
        "WITH RECURSIVE v(n) AS (SELECT id FROM orders WHERE id > 3 UNION SELECT n + 1 FROM v WHERE n < 9) SELECT name"
        " FROM v, customers WHERE n = score",
        id="a recursion",
    ),
    pytest.param(
        "SELECT name FROM customers c WHERE score > (SELECT 0.5 * sum(amount) FROM orders o WHERE o.priority = c.name"
        " AND o.id > 7)",
        id="a look-up of a value",
    ),
    pytest.param(
        "SELECT name FROM customers c WHERE name LIKE 'a%' AND EXISTS (SELECT * FROM orders o WHERE o.priority = c.name"
        " AND o.id > 7)",
        id="a look-up of EXISTS",
    ),
)


@pytest.fixture(autouse=True)
def sizes(context: Any) -> None:
    """Metrics are what stays, and everything is worth its price."""
    model = CostModel(semi_join_saved_bytes_min=0, routed_bytes_min=0, merged_bytes_min=0)
    context.planner = Planner(cost_model=model)
    rows = {"metrics": 10_000_000, "orders": 10_000, "customers": 1000, "airlines": 100}
    tables = {
        table.table_id: TableStatistics(
            table.table_id,
            rows[name],
            {column.name: ColumnStatistics(8 * rows[name], 0, rows[name] // 10) for column in table.columns},
        )
        for name, table in context.known.items()
    }
    context.statistics_snapshot = StatisticsSnapshot(1, tables)


@pytest.fixture
def checked(context: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[tuple[Any, ...]]]:
    """What is checked of a statement when it is placed."""

    def check(sql: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []

        def remembered(*given: Any) -> str | None:
            found.append(given)
            return placed_difference(*given)

        with monkeypatch.context() as patch:
            patch.setattr(place, "placed_difference", remembered)
            plan = context.select(sql).plan
        assert plan.strategy is Strategy.PLACED, plan.gather_reason
        return found

    return check


def changes(tree: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """A text with one fault each: what a defect of whatever prints it might make of it."""
    nodes = list(tree.walk())
    columns = list(
        dict.fromkeys(
            node.name for node in nodes if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)
        )
    )
    for number, node in enumerate(nodes):
        for what, change in _changes_of(node, columns):
            copy = tree.copy()
            target = list(copy.walk())[number]
            change(target)
            yield what, copy


def _changes_of(node: exp.Expr, columns: Sequence[str]) -> Iterator[tuple[str, Callable[[exp.Expr], object]]]:
    match node:
        case exp.And():
            yield "a conjunct is dropped", lambda at: at.replace(at.this)
            yield "another conjunct is dropped", lambda at: at.replace(at.expression)
            yield "AND becomes OR", lambda at: at.replace(exp.Or(this=at.this, expression=at.expression))
        case exp.Literal() if not isinstance(node.parent, exp.DataTypeParam):  # types are compared when a text is bound
            yield (
                "another literal",
                lambda at: at.set("this", f"{at.this}9" if at.is_string else str(int(float(at.this)) + 3)),
            )
        case exp.GT() | exp.LT() | exp.EQ():
            yield "another comparison", lambda at: at.replace(exp.GTE(this=at.this, expression=at.expression))
        case exp.Column() if not isinstance(node.this, exp.Star):
            for name in columns:
                if name != node.name:
                    yield (
                        f"{node.name} becomes {name}",
                        lambda at, name=name: at.set("this", exp.to_identifier(name, quoted=True)),
                    )  # type: ignore[misc]
        case exp.TableAlias() if node.columns:
            yield "names of columns are forgotten", lambda at: at.set("columns", [])
            if len(node.columns) > 1:
                yield (
                    "names of columns are exchanged",
                    lambda at: at.set("columns", [column.copy() for column in reversed(at.columns)]),
                )
        case exp.Join():
            kind = str(node.args.get("kind") or "").upper()
            yield (
                "another join",
                lambda at: (
                    at.set("kind", "ANTI") if kind == "SEMI" else at.set("side", "" if at.args.get("side") else "LEFT")
                ),
            )
        case exp.Union():
            yield "ALL of a UNION", lambda at: at.set("distinct", not at.args.get("distinct"))
        case exp.Ordered():
            yield "another direction", lambda at: at.set("desc", not at.args.get("desc"))
        case exp.Exists():
            yield "NOT EXISTS", lambda at: at.replace(exp.Not(this=at.copy()))
        case exp.Select():
            for clause in ("where", "distinct", "group", "having", "order", "limit"):
                if node.args.get(clause):
                    yield f"{clause.upper()} is dropped", lambda at, clause=clause: at.set(clause, None)  # type: ignore[misc]
            if not node.args.get("distinct") and not (isinstance(node.parent, exp.Exists)):
                yield "DISTINCT is added", lambda at: at.set("distinct", exp.Distinct())
            if not node.args.get("limit"):
                yield "LIMIT is added", lambda at: at.set("limit", exp.Limit(expression=exp.Literal.number(1)))
            yield "WHERE is added", lambda at: at.set("where", exp.Where(this=exp.false()))
            if len(node.expressions) > 1:
                yield (
                    "columns are exchanged",
                    lambda at: at.set("expressions", [item.copy() for item in reversed(at.expressions)]),
                )
        case _:
            pass


@pytest.mark.parametrize("sql", STATEMENTS)
def test_each_fault_in_a_text_is_found(checked: Callable[[str], list[tuple[Any, ...]]], sql: str) -> None:
    ((user, texts, sources, clock),) = checked(sql)
    assert placed_difference(user, texts, sources, clock) is None
    missed, tried = [], 0
    for number, text in enumerate(texts):
        for what, tree in changes(parse_query(text.sql, tokenize(text.sql))):
            faulty = to_sql(tree)
            # What the first part of a SELECT leaves to the second, which does it once more, is no fault.
            is_done_again = text.cutting is not None and what in ("DISTINCT is dropped", "LIMIT is dropped")
            if is_done_again or read_statement(faulty) in (None, read_statement(text.sql)):
                continue
            tried += 1
            changed = [
                replace(other, sql=faulty) if position == number else other for position, other in enumerate(texts)
            ]
            if placed_difference(user, changed, sources, clock) is None:
                missed.append(f"x{number}, {what}: {faulty}")
    assert tried > 5
    assert not missed, "\n".join(missed)
