"""A statement over views is planned as if their queries stood in it."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.errors import LimitExceededError, ProgrammingError, UnknownTableError


@pytest.fixture
def viewed(context: Any) -> Any:
    context.create_view("CREATE VIEW big AS SELECT customer_id, id, amount FROM orders WHERE amount > 100")
    context.create_view("CREATE VIEW known (who, name) AS SELECT customer_id, name FROM customers")
    context.create_view(
        "CREATE VIEW both_ AS SELECT b.id, k.who AS customer FROM big b JOIN known k ON b.customer_id = k.who"
    )
    return context


def test_a_plan_says_of_which_views_it_was_made(viewed: Any) -> None:
    ids = {name: viewed.views[name].view_id for name in ("big", "known", "both_")}
    assert viewed.select("SELECT 1 FROM orders").plan.views == ()
    assert viewed.select("SELECT 1 FROM both_").plan.views == tuple(sorted(ids.values()))
    assert viewed.select("SELECT 1 FROM big WHERE false").plan.empty is None


def test_what_a_view_reads_may_be_gone(viewed: Any) -> None:
    del viewed.known["customers"]
    with pytest.raises(
        UnknownTableError,
        match=(
            r"view 'both_' cannot be read: view 'known' cannot be read: table 'customers' does not exist \(line 1,"
            r" column 15\)"
        ),
    ):
        viewed.prepare("SELECT * FROM both_")
    viewed.create("CREATE TABLE customers (customer_id BIGINT PRIMARY KEY, name VARCHAR)")
    with pytest.raises(
        ProgrammingError, match="view 'known' cannot be read: table 'customers' has other columns than when it was made"
    ):
        viewed.prepare("SELECT * FROM both_")


def test_views_of_views_do_not_grow_without_bound(context: Any) -> None:
    context.create_view("CREATE VIEW v0 AS SELECT 1 AS x")
    for number in range(1, 8):
        context.create_view(
            f"CREATE VIEW v{number} AS SELECT * FROM v{number - 1} UNION ALL SELECT * FROM v{number - 1}"
        )
    with pytest.raises(LimitExceededError, match="more than 500 views"):
        context.create_view("CREATE VIEW v8 AS SELECT * FROM v7 UNION ALL SELECT * FROM v7")
