from __future__ import annotations

from typing import Any

import pytest

from secateur.errors import ProgrammingError
from secateur.planner import CreateView, DropView
from secateur.planner.views import ViewRead


def test_a_view_remembers_its_query_and_what_it_reads(context: Any) -> None:
    made = context.prepare(
        'CREATE VIEW "Big" (who) AS SELECT customer_id, count(*) FROM orders WHERE amount > 3 GROUP BY ALL -- by'
        " customer"
    )
    assert isinstance(made, CreateView)
    view = made.view
    assert (view.name, view.view_id, view.renamed) == ("Big", 0, ("who",))
    assert view.query == "SELECT customer_id, count(*) FROM orders WHERE amount > 3 GROUP BY ALL"
    assert view.columns == (("who", "VARCHAR"), ("count_star()", "BIGINT"))
    assert view.reads == (ViewRead("orders", (("customer_id", "VARCHAR"), ("amount", "DECIMAL(10,2)"))),)
    assert view.sql == 'CREATE VIEW "Big" ("who") AS\n' + view.query
    assert (made.or_replace, made.if_not_exists) == (False, False)


@pytest.mark.parametrize(
    ("sql", "or_replace", "if_not_exists"),
    [
        ("CREATE OR REPLACE VIEW v AS FROM orders", True, False),
        ("create view if not exists main.v as from orders", False, True),
    ],
)
def test_what_happens_to_a_view_of_that_name(context: Any, sql: str, or_replace: bool, if_not_exists: bool) -> None:
    made = context.prepare(sql)
    assert (made.view.name, made.or_replace, made.if_not_exists) == ("v", or_replace, if_not_exists)


@pytest.mark.parametrize(("sql", "if_exists"), [("DROP VIEW v", False), ("DROP VIEW IF EXISTS main.v", True)])
def test_drop(context: Any, sql: str, if_exists: bool) -> None:
    assert context.prepare(sql) == DropView("v", if_exists)


def test_a_view_cannot_read_itself(context: Any) -> None:
    context.create_view("CREATE VIEW v AS SELECT id FROM orders")
    context.create_view("CREATE VIEW w AS SELECT id FROM v")
    with pytest.raises(ProgrammingError, match=r"view 'v' would read itself: .*column 43"):
        context.prepare("CREATE OR REPLACE VIEW v AS SELECT * FROM w")
