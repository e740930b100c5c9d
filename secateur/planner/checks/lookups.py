"""Checks look-ups by key, which replace correlated subqueries: ``(SELECT v FROM rows WHERE k0 = o.k)``."""

from __future__ import annotations

from typing import Protocol

from secateur.planner.checks.conjuncts import leaves
from secateur.planner.checks.scope import Scope
from secateur.planner.checks.select_node import BEHIND_WHERE, Node, is_bare
from secateur.planner.text.parse_tree import flat_and


class TextComparison(Protocol):
    """Compares parts of the user's text with parts of the texts of stages."""

    def is_same(self, was: object, now: object, scope: Scope) -> bool: ...

    def is_from(self, was: Node, now: Node, scope: Scope) -> bool: ...


def is_lookup(check: TextComparison, was: Node, now: Node, rows: Node, scope: Scope) -> bool:
    """Whether a subquery that looks up rows by key is equivalent to a correlated one.

    Args:
        check: How parts are compared.
        was: The user's subquery.
        now: The one that replaces it.
        rows: The query of the rows, over the scans themselves: keys ``k0``, ``k1``, ..., and for a value ``v``.
        scope: The scope of the subquery.
    """
    inside, asked = was["subquery"]["node"], now["subquery"]["node"]
    is_value = was["subquery_type"] == "SCALAR"
    if (
        was["subquery_type"] not in ("SCALAR", "EXISTS")
        or inside.get("type") != "SELECT_NODE"
        or any(was[key] != now[key] for key in was if key != "subquery")
        # What a WITH of the subquery defines is compared where it is read.
        or not (is_bare({**inside, "cte_map": asked["cte_map"]}) and is_bare(asked))
        or len(asked["select_list"]) != 1
    ):
        return False
    items = [{**item, "alias": ""} for item in rows["select_list"]]
    keys = items[: len(items) - is_value]
    names = [f"k{number}" for number in range(len(keys))]
    if [item["alias"] for item in rows["select_list"]] != [*names, *(["v"] if is_value else [])]:
        return False
    reached, shown = scope.inside(inside), asked["select_list"][0]
    if is_value:
        is_shown = shown.get("column_names") == ["v"] and check.is_same(
            {**inside["select_list"][0], "alias": ""}, items[-1], reached
        )
    else:
        is_shown = shown.get("literal") == {"kind": "INTEGER", "text": "1"}
    conditions = list(flat_and(asked["where_clause"]))
    by_name = [
        condition["left"].get("column_names") if condition.get("type") == "COMPARE_EQUAL" else None
        for condition in conditions
    ]
    if (
        not is_shown
        or not _is_one_row_each(rows, len(keys), is_value=is_value)
        or by_name != [[name] for name in names]
    ):
        return False
    asked_keys = list(zip(keys, (condition["right"] for condition in conditions), strict=True))
    if not check.is_from(inside["from_table"], rows["from_table"], reached):
        return False
    own, pairs = list(flat_and(rows["where_clause"])), list(asked_keys)
    for conjunct in flat_and(inside["where_clause"]):
        if pairs and conjunct.get("type") == "COMPARE_EQUAL" and _sides(conjunct) in (pairs[0], pairs[0][::-1]):
            pairs.pop(0)
        elif own and check.is_same(conjunct, own[0], reached):
            own.pop(0)
        else:
            return False
    return not pairs and all(
        any(_is_asked(check, conjunct, key, value, scope) for key, value in asked_keys) for conjunct in own
    )


def _sides(comparison: Node) -> tuple[Node, Node]:
    return comparison["left"], comparison["right"]


def _is_one_row_each(rows: Node, count: int, *, is_value: bool) -> bool:
    """Whether a query has one row for each of its keys: groups for a value, no duplicates for EXISTS."""
    if is_value:
        groups = [(node.get("literal") or {}).get("text") for node in rows["group_expressions"]]
        numbered = groups == [str(number + 1) for number in range(count)] and rows["group_sets"] == [[*range(count)]]
        return numbered and not (rows["modifiers"] or any(rows[key] for key in ("having", "sample", "qualify")))
    return _is_distinct(rows) and not any(rows[clause] for clause in BEHIND_WHERE)


def _is_distinct(select: Node) -> bool:
    kinds = [(modifier["type"], modifier.get("distinct_on_targets")) for modifier in select["modifiers"]]
    return kinds == [("DISTINCT_MODIFIER", [])]


def _is_asked(check: TextComparison, conjunct: Node, key: Node, outer: Node, scope: Scope) -> bool:
    """Whether a condition on a key leaves out only keys that no outer row has."""
    select = scope.select
    if select is None:
        return False
    conditions = list(flat_and(select["where_clause"]))
    met = (of_key for condition in conditions if (of_key := _about(condition, outer, key)) is not None)
    if any(check.is_same(of_key, conjunct, scope) for of_key in met):
        return True
    if (conjunct.get("subquery_type"), conjunct.get("comparison_type")) != ("ANY", "COMPARE_EQUAL") or conjunct[
        "child"
    ] != key:
        return False
    query = conjunct["subquery"]["node"]
    if (
        query.get("type") != "SELECT_NODE"
        or query["select_list"] != [outer]
        or not _is_distinct(query)
        or any(query[clause] for clause in BEHIND_WHERE)
    ):
        return False
    return any(check.is_from(table, query["from_table"], scope) for table in leaves(select["from_table"])) and all(
        any(check.is_same(condition, met, scope) for condition in conditions) for met in flat_and(query["where_clause"])
    )


def _about(condition: Node, outer: Node, key: Node) -> Node | None:
    """Apply a membership condition on one value to another value; None for any other condition."""
    if condition.get("subquery_type") == "ANY" and condition["child"] == outer:
        return {**condition, "child": key}
    if str(condition.get("type")).startswith("COMPARE_IN") and condition["children"][0] == outer:
        return {**condition, "children": [key, *condition["children"][1:]]}
    return None
