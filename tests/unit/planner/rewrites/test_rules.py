"""Each rule before and after, as trees; and that no rule breaks a tree."""

from __future__ import annotations

import random
from typing import Any

import pytest

from secateur.planner.binding import bind_query
from secateur.planner.relations import (
    Attribute,
    Join,
    Project,
    Relation,
    Scan,
    SetOperation,
    build_relations,
    owners,
    postorder,
    relation_text,
)
from secateur.planner.rewrites import RULES, rewritten, rule_names
from secateur.planner.text import read_parameters, tokenize


def relations_of(context: Any, sql: str) -> tuple[Relation, ...]:
    tokens, parameters = read_parameters(sql, tokenize(sql))
    return build_relations(bind_query(sql, tokens, parameters, context.table))


def only(*names: str) -> list[str]:
    return [name for name in rule_names() if name not in names]


def validate(root: Relation) -> None:
    """Every attribute that a relation takes from an input is one of those that the input has."""
    for relation in postorder(root):
        match relation:
            case Project(input, _, sources):
                _check(sources, input)
            case SetOperation(_, inputs, attributes, sources):
                for input, given in zip(inputs, sources, strict=True):
                    assert len(given) == len(attributes)
                    _check(given, input)
            case Join(_, left, right):
                assert not owners(left) & owners(right)
            case Scan(scan, attributes):
                assert [attribute.name for attribute in attributes] == [column.name for column in scan.table.columns]
            case _:
                pass


def _check(sources: tuple[Attribute | None, ...], input: Relation) -> None:
    known = owners(input)
    # A correlated subquery may show a column of the rows around it.
    assert all(source is None or source.owner in known or source.owner < min(known, default=0) for source in sources)


CASES = [
    pytest.param(
        "derived_table_to_join",
        "SELECT o.id FROM orders o, (SELECT * FROM customers WHERE name = 'Ada') c WHERE o.customer_id = c.customer_id",
        """
project id
  filter customer_id = customer_id
    inner join
      scan orders AS o
      project customer_id, name, score
        filter name = 'Ada'
          scan customers
""",
        id="derived table",
    ),
    pytest.param(
        "in_pull_out",
        "SELECT id FROM orders o WHERE customer_id IN (SELECT customer_id FROM customers WHERE name = 'Ada')",
        """
project id
  filter customer_id IN (SELECT customer_id FROM s1 AS "customers" WHERE name = 'Ada')
    inner join customer_id = customer_id
      scan orders AS o
      project customer_id
        filter name = 'Ada'
          scan customers
""",
        id="IN over a primary key is an inner join",
    ),
    pytest.param(
        "in_pull_out",
        "SELECT name FROM customers WHERE customer_id IN (SELECT customer_id FROM orders)",
        """
project name
  filter customer_id IN (SELECT customer_id FROM s1 AS "orders")
    semi join customer_id = customer_id
      scan customers
      project customer_id
        scan orders
""",
        id="IN over values that repeat is a semi-join",
    ),
    pytest.param(
        "in_group_by_to_join",
        "SELECT name FROM customers WHERE customer_id IN (SELECT customer_id FROM orders GROUP BY customer_id HAVING"
        " count(*) > 10)",
        """
project name
  filter customer_id IN (SELECT customer_id FROM s1 AS "orders" GROUP BY customer_id HAVING COUNT(*) > 10)
    inner join customer_id = customer_id
      scan customers
      project customer_id
        filter COUNT(*) > 10
          aggregate customer_id
            scan orders
""",
        id="IN over groups",
    ),
    pytest.param(
        "in_to_exists",
        "SELECT name FROM customers c WHERE customer_id IN (SELECT customer_id FROM orders o WHERE o.id > c.score)",
        """
project name
  filter customer_id IN (SELECT customer_id FROM s1 AS o WHERE o.id > c.score)
    apply exists
      scan customers AS c
      filter customer_id = customer_id
        project customer_id
          filter id > score
            scan orders AS o
""",
        id="correlated IN",
    ),
    pytest.param(
        "in_to_exists",
        "SELECT name FROM customers c WHERE customer_id NOT IN (SELECT customer_id FROM orders)",
        """
project name
  filter NOT customer_id IN (SELECT customer_id FROM s1 AS "orders")
    apply not exists
      scan customers AS c
      filter customer_id = customer_id
        project customer_id
          scan orders
""",
        id="NOT IN of keys",
    ),
    pytest.param(
        "in_to_exists",
        "SELECT name FROM customers c WHERE customer_id NOT IN (SELECT priority FROM orders)",
        None,
        id="NOT IN of what may be NULL stays",
    ),
    pytest.param(
        "exists_to_semi_join",
        "SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id AND id"
        " > 3)",
        """
project name
  filter EXISTS(SELECT 1 FROM s1 AS o WHERE o.customer_id = c.customer_id AND id > 3)
    semi join
      scan customers AS c
      project 1
        filter customer_id = customer_id AND id > 3
          scan orders AS o
""",
        id="EXISTS",
    ),
    pytest.param(
        "exists_to_semi_join",
        "SELECT name FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id)",
        """
project name
  filter NOT EXISTS(SELECT 1 FROM s1 AS o WHERE o.customer_id = c.customer_id)
    anti join
      scan customers AS c
      project 1
        filter customer_id = customer_id
          scan orders AS o
""",
        id="NOT EXISTS",
    ),
    pytest.param(
        "exists_to_semi_join",
        "SELECT name FROM customers WHERE EXISTS (SELECT 1 FROM orders)",
        None,
        id="EXISTS without correlation stays",
    ),
    pytest.param(
        "scalar_subquery_to_left_join",
        "SELECT id, (SELECT name FROM customers c WHERE c.customer_id = o.customer_id) FROM orders o",
        """
project id
  left join
    scan orders AS o
    project name
      filter customer_id = customer_id
        scan customers AS c
""",
        id="scalar subquery: a left join, not the inner join of the seed",
    ),
    pytest.param(
        "scalar_subquery_to_left_join",
        "SELECT id, (SELECT max(name) FROM customers) FROM orders",
        None,
        id="a scalar subquery of its own stays",
    ),
    pytest.param(
        "constant_propagation",
        "SELECT id FROM orders WHERE customer_id = priority AND priority = 'C2'",
        """
project id
  filter customer_id = priority AND priority = 'C2' AND customer_id = 'C2'
    scan orders
""",
        id="a constant for two columns",
    ),
    pytest.param(
        "constant_propagation",
        "SELECT id FROM orders WHERE customer_id = priority AND amount = 5",
        None,
        id="nothing is known of either column",
    ),
]


@pytest.mark.parametrize(("rule", "sql", "expected"), CASES)
def test_rule(context: Any, rule: str, sql: str, expected: str | None) -> None:
    before = relations_of(context, sql)
    (after, *_), applied = rewritten(before, only(rule))
    assert applied == (() if expected is None else (rule,))
    text = relation_text(before[0]) if expected is None else expected.strip("\n")
    assert relation_text(after) == text


@pytest.mark.parametrize(("rule", "sql", "expected"), CASES)
def test_trees_stay_valid_and_a_rule_that_is_off_changes_nothing(
    context: Any, rule: str, sql: str, expected: str | None
) -> None:
    before = relations_of(context, sql)
    for disabled in ([], [rule], only(rule), rule_names()):
        after, applied = rewritten(before, disabled)
        assert not set(applied) & set(disabled)
        for relation in after:
            validate(relation)
        if len(disabled) == len(RULES):
            assert [*map(id, after)] == [*map(id, before)]


def test_the_order_of_rules_is_the_one_that_is_documented() -> None:
    assert rule_names() == (
        "derived_table_to_join",
        "in_group_by_to_join",
        "in_pull_out",
        "in_to_exists",
        "exists_to_semi_join",
        "scalar_subquery_to_left_join",
        "constant_propagation",
    )


def test_rules_are_stable(context: Any) -> None:
    """Applied to what they have made they find nothing more to do, in whatever order the statements come."""
    statements = [str(case.values[1]) for case in CASES]
    random.Random(1).shuffle(statements)
    for sql in statements:
        once, _ = rewritten(relations_of(context, sql), ["constant_propagation"])
        assert rewritten(once, ["constant_propagation"])[1] == ()
