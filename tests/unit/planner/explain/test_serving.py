"""EXPLAIN says whether a short statement has a program at its member, and why not."""

from __future__ import annotations

from typing import Any

import pytest

NOT_SEARCHED = "it does not search orders by its key: compare the first columns of (customer_id, id) with values"
KERNEL = "its expressions, types or clauses need a kernel over whole columns"
CASES = {
    "SELECT * FROM orders WHERE customer_id = ? AND id = ?": None,
    "SELECT amount, id FROM orders WHERE customer_id = ?": None,
    "SELECT count(*), sum(amount) FROM orders WHERE customer_id IN (?, ?)": None,
    "SELECT priority, count(*) FROM orders WHERE customer_id = ? GROUP BY priority ORDER BY priority": None,
    "SELECT id FROM orders WHERE customer_id = ? AND priority > 'a'": None,
    "SELECT count(*) FROM orders": NOT_SEARCHED,
    "SELECT * FROM orders WHERE amount = ?": NOT_SEARCHED,
    "SELECT * FROM orders WHERE customer_id = ? AND id > ?": (
        "it reads a range of keys of orders, for which the native executor alone has a program"
    ),
    "SELECT id FROM orders WHERE customer_id = ? ORDER BY amount DESC, id LIMIT 3": None,
    "SELECT id FROM orders WHERE customer_id = ? ORDER BY amount + 1 LIMIT 3": KERNEL,
    "SELECT 1": "it reads no table",
    "SELECT * FROM secateur.members": (
        "it reads a system table or an external table, whose rows are fetched when it runs"
    ),
    "UPDATE orders SET amount = 1 WHERE customer_id = ? AND id = ?": None,
    "DELETE FROM orders WHERE customer_id = ? AND id = ?": None,
    "DELETE FROM orders WHERE customer_id = ?": (
        "it changes more than the row with one key: compare all columns of (customer_id, id) with values"
    ),
    "INSERT INTO orders (customer_id, id) SELECT customer_id, id FROM orders": "its rows are computed by a query",
}


@pytest.mark.parametrize("sql", CASES)
def test_the_document_and_the_text_say_whether_a_statement_is_served(context: Any, sql: str) -> None:
    explained = context.explain(sql, [f"C{number}" for number in range(sql.count("?"))] if "id = ?" not in sql else ())
    reason = CASES[sql]
    facts = explained.json["pruning"]
    assert (facts["serving"], facts["serving_reason"]) == (reason is None, reason)
    assert ("serving: yes" if reason is None else f"serving: no, {reason}") in explained.text.splitlines()
