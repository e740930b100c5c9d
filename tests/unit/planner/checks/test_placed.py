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
from secateur.planner.checks import PlacedText, Source, placed_difference
from secateur.planner.fragments.qualified import DIFFERS
from secateur.planner.placement import correlated, ctes, place, placement_context, scan_rows
from secateur.planner.text import parse_query, read_statement, to_sql, tokenize

METRICS: Final = "SELECT count(*), sum(o.amount) FROM metrics m,"
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
        "WITH RECURSIVE v(n) AS (SELECT priority FROM orders WHERE id > 3 UNION ALL SELECT DISTINCT name FROM customers"
        " UNION ALL SELECT host FROM metrics) SELECT n, day FROM v, orders WHERE n = priority",
        id="a UNION of WITH RECURSIVE that does not refer to itself",
    ),
    pytest.param(
        "SELECT v.b, c.name FROM customers c LEFT JOIN orders v(a, b, id) ON b = c.customer_id AND v.a <> 3",
        id="a condition on a column that an alias names",
    ),
    pytest.param(
        "SELECT name, ARRAY((SELECT priority FROM orders WHERE id > 3) INTERSECT (SELECT host FROM metrics)) AS a FROM"
        " customers WHERE score > 3",
        id="a set operation in an array",
    ),
    pytest.param(
        "SELECT name FROM customers WHERE score > 3 AND name = list_first(ARRAY(SELECT n FROM (SELECT priority AS n,"
        " max(day) AS d FROM orders WHERE id > 3 GROUP BY 1) ORDER BY n DESC, d LIMIT 3))",
        id="an order in an array",
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
    pytest.param(
        "SELECT name FROM customers c WHERE name LIKE 'a%' AND EXISTS (WITH w AS (SELECT host FROM metrics) SELECT *"
        " FROM orders o, w WHERE o.priority = c.name AND o.id > 7 AND w.host = o.priority)",
        id="a look-up of EXISTS with a WITH of its own",
    ),
    pytest.param(
        "SELECT name FROM customers c WHERE score > (WITH w AS (SELECT host FROM metrics) SELECT 0.5 * sum(amount) FROM"
        " orders o WHERE o.priority = c.name AND o.id > 7)",
        id="a look-up of a value, with a WITH that is not read",
    ),
    pytest.param(
        f"{METRICS} orders o, customers c WHERE o.customer_id = c.customer_id AND c.name = 'a' AND m.host = o.priority",
        id="a semi-join",
    ),
    pytest.param(
        f"{METRICS} orders o JOIN customers c USING (customer_id) WHERE c.name = 'a' AND m.host = o.priority",
        id="a semi-join by USING",
    ),
    pytest.param(
        f"{METRICS} orders o(n1, n2), customers c(n3) WHERE n2 = n3 AND c.name = 'a' AND m.host = o.priority",
        id="a semi-join by names of aliases",
    ),
    pytest.param(
        f"{METRICS} orders o, (SELECT DISTINCT name FROM customers) v, airlines a WHERE o.priority = v.name AND v.name"
        " = a.code AND a.name = 'a' AND m.host = o.priority",
        id="a semi-join by way of a subquery",
    ),
    pytest.param(
        "SELECT priority FROM orders WHERE id > 7 UNION ALL SELECT name FROM customers UNION ALL SELECT host FROM"
        " metrics ORDER BY 1 DESC LIMIT 5",
        id="a set operation",
    ),
    pytest.param(
        "SELECT q.a, count(*) FROM (SELECT priority AS a, max(day) AS b FROM orders GROUP BY 1 ORDER BY 2 LIMIT 9) q"
        " JOIN customers ON a = name GROUP BY q.a",
        id="a subquery that is computed",
    ),
    pytest.param(
        "SELECT c.name, sum(o.amount), avg(o.id) FROM customers c JOIN orders o USING (customer_id) GROUP BY 1"
        " HAVING count(*) > 1 ORDER BY 2 DESC LIMIT 7",
        id="groups",
    ),
    pytest.param(
        "SELECT c.name, o.day FROM customers c JOIN orders o USING (customer_id) ORDER BY o.day DESC, 1",
        id="an order",
    ),
    pytest.param(
        "SELECT c.name AS n, o.id FROM orders o JOIN customers c ON o.priority = c.name WHERE n > 'b' AND c.score > 1",
        id="a condition on an alias of the SELECT list",
    ),
    pytest.param(
        "SELECT o.id, v.score FROM (SELECT name AS score FROM customers WHERE customer_id > 'c') v JOIN orders o ON"
        " o.priority = v.score WHERE v.score > 'b'",
        id="a column of a subquery that is named as another one of its table",
    ),
    pytest.param(
        "SELECT m.host, o.day FROM orders o, metrics m JOIN customers c ON m.host = c.name AND o.id > 7 WHERE o.day >"
        " '2024-01-01' AND o.priority = c.name",
        id="ON about an item in front of a comma",
    ),
    pytest.param(
        "SELECT name FROM customers c WHERE name = list_first(ARRAY(SELECT priority FROM orders ORDER BY ALL LIMIT 3))",
        id="ORDER BY ALL in an array",
    ),
    pytest.param(
        "SELECT c.name, now() AS n FROM customers c JOIN orders o ON o.priority = c.name WHERE o.day < current_date",
        id="a clock",
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
                # A semi-join leaves out rows that a join behind it drops as well: with more keys it only saves less.
                is_fault = clause != "where" or not _is_in_semi_join(node)
                if node.args.get(clause) and is_fault:
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


def _is_in_semi_join(node: exp.Select) -> bool:
    join = node.find_ancestor(exp.Join)
    return join is not None and str(join.args.get("kind") or "").upper() == "SEMI"


@pytest.mark.parametrize("sql", STATEMENTS)
@pytest.mark.sampled(one_in=3)
def test_each_fault_in_a_text_is_found(checked: Callable[[str], list[tuple[Any, ...]]], sql: str) -> None:
    ((user, texts, sources),) = checked(sql)
    assert placed_difference(user, texts, sources) is None
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
            if placed_difference(user, changed, sources) is None:
                missed.append(f"x{number}, {what}: {faulty}")
    assert tried > 5
    assert not missed, "\n".join(missed)


@pytest.mark.parametrize(("join", "difference"), [("CROSS JOIN", None), ("LEFT JOIN", "ON"), ("RIGHT JOIN", "ON")])
def test_a_condition_on_a_scan_outside_of_a_join_is_left_out_only_where_all_joins_are_inner(
    join: str, difference: str | None
) -> None:
    on = "" if join == "CROSS JOIN" else " ON TRUE"
    text = f"SELECT c.k FROM {{}} AS a {join} (s1 AS b JOIN s2 AS c ON b.k = c.k AND {{}}){on}"
    user = read_statement(text.format("s0", "a.k = 3"))
    assert user is not None
    sources = {relation: Source(("k",), frozenset(), relation) for relation in ("s0", "s1", "s2")}
    texts = [
        PlacedText("SELECT k FROM s0 WHERE k = 3", ("k",), scans=True),
        PlacedText(text.format("x0", "TRUE"), ("k",)),
    ]
    assert placed_difference(user, texts, sources) == difference


def test_a_condition_for_the_optimizer_is_on_a_column_that_is_never_null(
    checked: Callable[[str], list[tuple[Any, ...]]],
) -> None:
    # The alias calls the name, which may be NULL, as the table calls its key.
    ((user, texts, sources),) = checked(
        f"{METRICS} orders o, customers c(n, customer_id) WHERE o.customer_id = n AND m.host = o.priority AND"
        " c.customer_id LIKE 'a%'"
    )
    (number,) = (number for number, text in enumerate(texts) if '"c"."n" IS NULL' in text.sql)
    other = replace(texts[number], sql=texts[number].sql.replace('"c"."n" IS', '"c"."customer_id" IS'))
    found = placed_difference(user, [*texts[:number], other, *texts[number + 1 :]], sources)
    assert found is not None


@pytest.mark.parametrize(
    ("on", "hint", "difference"),
    [
        ("c.j = a.j", "NOT s0.k IS NULL", None),
        ("c.k = a.j", "NOT s0.k IS NULL", "which columns it looks at"),
        ("c.j = a.j", "NOT s0.j IS NULL", "WHERE"),
    ],
)
def test_a_hint_needs_no_column_of_another_scan_if_a_query_that_is_computed_before_mentions_its_name(
    on: str, hint: str, difference: str | None
) -> None:
    user = read_statement(
        f"SELECT c.j FROM (SELECT max(k) AS n FROM s2) q JOIN (SELECT * FROM s0) a ON q.n = a.j JOIN s1 c ON {on}"
    )
    assert user is not None
    sources = {relation: Source(("k", "j"), frozenset({"k"}), relation) for relation in ("s0", "s1", "s2")}
    texts = [
        PlacedText("SELECT max(k) AS n FROM s2", ("n",)),
        PlacedText("SELECT k, j FROM s0", ("k", "j"), scans=True),
        PlacedText("SELECT j FROM s1", ("j",), scans=True),
        PlacedText(
            f"SELECT c.j FROM x0 AS q JOIN (SELECT * FROM x1 AS s0 WHERE {hint}) AS a ON q.n = a.j"
            f" JOIN x2 AS c ON {on}",
            ("j",),
        ),
    ]
    assert placed_difference(user, texts, sources) == difference


@pytest.mark.parametrize(
    ("where", "difference"), [("k = 3", None), ("j = 3", "the rows of a scan"), ("k = 4", "the rows of a scan")]
)
def test_a_filter_is_on_the_column_that_a_query_has_renamed(where: str, difference: str | None) -> None:
    text = "SELECT v.j FROM (SELECT k AS j FROM {} AS a) v WHERE v.j = 3"
    user = read_statement(text.format("s0"))
    assert user is not None
    texts = [PlacedText(f"SELECT k FROM s0 WHERE {where}", ("k",), scans=True), PlacedText(text.format("x0"), ("j",))]
    sources = {"s0": Source(("k", "j"), frozenset(), "s0")}
    assert placed_difference(user, texts, sources) == difference


def test_keys_for_a_look_up_need_not_all_columns_of_a_star(checked: Callable[[str], list[tuple[Any, ...]]]) -> None:
    ((user, texts, sources),) = checked(
        "SELECT c.*, m.host FROM customers c, metrics m WHERE c.name LIKE 'a%' AND m.host = c.name AND EXISTS (SELECT *"
        " FROM orders o WHERE o.priority = c.name AND o.id > 7)"
    )
    assert placed_difference(user, texts, sources) is None
    # The star does need them.
    (number,) = (number for number, text in enumerate(texts) if text.columns == ("customer_id", "name", "score"))
    fewer = replace(texts[number], sql=texts[number].sql.replace(', "score"', ""), columns=("customer_id", "name"))
    assert placed_difference(user, [*texts[:number], fewer, *texts[number + 1 :]], sources) is not None


def test_a_semi_join_by_the_columns_of_a_natural_join_is_said(
    checked: Callable[[str], list[tuple[Any, ...]]],
) -> None:
    sql = f"{METRICS} orders o NATURAL JOIN customers c WHERE c.name = 'a' AND m.host = o.priority"
    ((user, texts, sources),) = checked(sql)
    reduced = [text for text in texts if "SEMI JOIN" in text.sql]
    assert reduced
    assert placed_difference(user, texts, sources) is None
    for text in reduced:
        other = text.sql.replace('"customer_id" = ', '"id" = ')
        faulty = [replace(each, sql=other) if each is text else each for each in texts]
        assert placed_difference(user, faulty, sources) == "a semi-join"


_OTHERS: Final = "the rows of a scan"


@pytest.mark.parametrize(
    ("sql", "where", "difference"),
    [
        ("SELECT k FROM {0} INTERSECT SELECT j FROM {1} WHERE j < 3", "k < 3", None),
        ("SELECT j FROM {1} WHERE j < 3 INTERSECT ALL SELECT k FROM {0}", "k < 3", None),
        ("SELECT j FROM {1} WHERE j < 3 EXCEPT SELECT k FROM {0}", "k < 3", None),
        ("SELECT * FROM {1}(x, k) WHERE x < 3 INTERSECT SELECT * FROM {0}", "k < 3", None),
        ("SELECT v.y FROM (SELECT j AS y FROM {1} WHERE j < 3) v EXCEPT SELECT k FROM {0}", "k < 3", None),
        ("(SELECT j FROM {1} WHERE j < 3 EXCEPT SELECT i FROM s2) INTERSECT SELECT k FROM {0}", "k < 3", None),
        ("SELECT k FROM {0} INTERSECT SELECT j FROM {1} WHERE j < 3", "j < 3", _OTHERS),
        ("SELECT k FROM {0} INTERSECT SELECT j FROM {1} WHERE j < 3", "k < 4", _OTHERS),
        ("SELECT k, j FROM {0} INTERSECT SELECT j, k FROM {1} WHERE j < 3", "j < 3", _OTHERS),
        ("SELECT k FROM {0} INTERSECT SELECT j FROM {1} WHERE j < i", "k < i", _OTHERS),
        ("SELECT k FROM {0} UNION SELECT j FROM {1} WHERE j < 3", "k < 3", _OTHERS),
        ("SELECT k FROM {0} UNION ALL SELECT j FROM {1} WHERE j < 3", "k < 3", _OTHERS),
        ("SELECT k FROM {0} EXCEPT SELECT j FROM {1} WHERE j < 3", "k < 3", _OTHERS),
        ("SELECT i FROM s2 EXCEPT SELECT j FROM {1} WHERE j < 3 EXCEPT SELECT k FROM {0}", "k < 3", _OTHERS),
        ("(SELECT j FROM {1} WHERE j < 3 UNION SELECT i FROM s2) INTERSECT SELECT k FROM {0}", "k < 3", _OTHERS),
        ("(SELECT i FROM s2 EXCEPT SELECT j FROM {1} WHERE j < 3) INTERSECT SELECT k FROM {0}", "k < 3", _OTHERS),
        ("SELECT b.j FROM s2 LEFT JOIN {1} ON b.j < 3 INTERSECT SELECT k FROM {0}", "k < 3", _OTHERS),
        ("SELECT max(j) FROM {1} WHERE j < 3 INTERSECT SELECT k FROM {0}", "k < 3", _OTHERS),
    ],
)
def test_a_filter_is_carried_between_branches_of_intersect_and_from_the_left_of_except_to_the_right(
    sql: str, where: str, difference: str | None
) -> None:
    user = read_statement(sql.format("s0 AS a", "s1 AS b"))
    assert user is not None
    columns = ("k", "j", "i")
    sources = {relation: Source(columns, frozenset(), relation) for relation in ("s0", "s1", "s2")}
    texts = [
        PlacedText(f"SELECT k, j, i FROM s0 WHERE {where}", columns, scans=True),
        PlacedText(sql.format("x0 AS a", "s1 AS b"), ("k",)),
    ]
    assert placed_difference(user, texts, sources) == difference


@pytest.mark.parametrize("kind", ["INTERSECT", "EXCEPT"])
def test_a_moved_scan_may_have_the_filter_of_another_branch(
    checked: Callable[[str], list[tuple[Any, ...]]], kind: str
) -> None:
    ((user, texts, sources),) = checked(
        f"SELECT name FROM customers WHERE name < 'c' {kind} SELECT o.priority FROM metrics m JOIN orders o ON m.value"
        " = o.amount"
    )
    (moved,) = (text for text in texts if text.scans and '"priority"' in text.sql)
    assert "'c'" in moved.sql
    assert placed_difference(user, texts, sources) is None
    faulty = [replace(text, sql=text.sql.replace("'c'", "'b'")) if text is moved else text for text in texts]
    assert placed_difference(user, faulty, sources) is not None


@pytest.mark.parametrize(
    ("items", "on", "difference"),
    [
        ("(SELECT * FROM s2) v JOIN s1 b ON v.k = b.k", "k", None),
        ("LATERAL (SELECT s2.*, 1 AS z FROM s2 WHERE s2.j = a.j) v JOIN s1 b ON v.k = b.k", "k", None),
        ("(SELECT * FROM s2) v JOIN s1 b ON v.k = b.k", "j", "a semi-join"),
        ("(SELECT * FROM s2) v JOIN s1 b ON v.j = b.k", "k", "a semi-join"),
        ("(SELECT * FROM s2) v JOIN s1 b ON v.k <= b.k", "k", "a semi-join"),
        ("(SELECT * FROM s2) v JOIN (SELECT * FROM s2) w ON v.j = w.j JOIN s1 b ON w.k = b.k", "k", "a semi-join"),
        ("(SELECT * FROM s2) v LEFT JOIN s1 b ON v.k = b.k", "k", "a semi-join"),
    ],
)
def test_a_semi_join_may_be_by_way_of_a_column_of_a_subquery(items: str, on: str, difference: str | None) -> None:
    sql = f"SELECT a.i FROM {{}} AS a, {items} WHERE a.k = v.k"
    user = read_statement(sql.format("s0"))
    assert user is not None
    sources = {relation: Source(("k", "j", "i"), frozenset(), relation) for relation in ("s0", "s1", "s2")}
    reduced = f"SELECT k, j, i FROM s0 SEMI JOIN (SELECT k, j FROM s1) AS s0_0 ON s0.{on} = s0_0.k"
    texts = [PlacedText(reduced, ("k", "j", "i"), scans=True), PlacedText(sql.format("x0"), ("i",))]
    assert placed_difference(user, texts, sources) == difference


@pytest.mark.parametrize("sql", STATEMENTS)
def test_rows_that_have_lost_a_column_or_its_name_are_found(
    checked: Callable[[str], list[tuple[Any, ...]]], sql: str
) -> None:
    ((user, texts, sources),) = checked(sql)
    for number, text in enumerate(texts[:-1]):
        faulty: list[PlacedText] = [*texts]
        faulty[number] = replace(text, columns=("other", *text.columns[1:]))
        is_seen = text.scans or text.cutting is None
        assert placed_difference(user, faulty, sources) is not None or not is_seen, text


def _without_where(rows: scan_rows.ScanRows, source: str, columns: Sequence[str]) -> str:
    return f"SELECT {', '.join(columns)} FROM {source}"


def _settled_everywhere(reference: exp.Table, relation: str) -> None:
    select = reference.parent_select
    where = None if select is None else select.args.get("where")
    if isinstance(where, exp.Where):
        where.set("this", exp.true())


_OVER: Final = correlated.Lookup.over
_HINT: Final = scan_rows.hint_selection


def _with_any_key(lookup: correlated.Lookup, relation: str) -> exp.Select:
    select = _OVER(lookup, relation)
    return select.where(exp.false(), append=False, copy=False)


def _hinted_by_more(reference: exp.Table, scan: Any, columns: Sequence[str]) -> None:
    _HINT(reference, scan, columns)
    select = reference.parent_select
    if select is not None:
        select.where(exp.column(columns[-1], table=scan.alias).is_(exp.null()), copy=False)


def _without_names(node: exp.Table, cte: exp.CTE) -> exp.TableAlias:
    return exp.TableAlias(this=node.this.copy())


def _text(name: str) -> str:
    (found,) = (str(param.values[0]) for param in STATEMENTS if param.id == name)
    return found


@pytest.mark.parametrize(
    ("holder", "name", "fault", "sql"),
    [
        pytest.param(
            scan_rows.ScanRows, "sql", _without_where, _text("a scan that moves"), id="rows of a scan are not filtered"
        ),
        pytest.param(
            placement_context,
            "settle_applied",
            _settled_everywhere,
            _text("a scan that moves") + " AND o.id > 7",
            id="a condition is taken for applied",
        ),
        pytest.param(
            placement_context,
            "hint_selection",
            _hinted_by_more,
            _text("a scan that moves"),
            id="a condition for the optimizer leaves out rows",
        ),
        pytest.param(correlated.Lookup, "over", _with_any_key, _text("a look-up of a value"), id="a look-up by no key"),
        pytest.param(
            ctes, "_alias", _without_names, _text("one that is mentioned twice").replace("n = m", "TRUE"), id="names"
        ),
    ],
)
def test_a_defect_of_what_prints_texts_gathers_the_statement(
    context: Any, monkeypatch: pytest.MonkeyPatch, holder: Any, name: str, fault: Callable[..., Any], sql: str
) -> None:
    monkeypatch.setattr(holder, name, fault)
    plan = context.select(sql).plan
    assert plan.strategy is Strategy.GATHER
    assert (plan.gather_reason or "").startswith((DIFFERS, "its stages do not bind"))
    assert plan.stages[-1].fragment.sql.startswith(sql[:6])
