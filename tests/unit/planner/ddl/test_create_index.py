from __future__ import annotations

from typing import Any

from msgspec import structs

from secateur.partitioning.tables import IndexDef
from secateur.planner import CreateIndex, DropIndex


def test_an_index_is_read(context: Any) -> None:
    statement = context.prepare("CREATE INDEX IF NOT EXISTS by_priority ON Orders (PRIORITY, day)")
    assert isinstance(statement, CreateIndex)
    assert (statement.table.name, statement.index, statement.if_not_exists) == (
        "orders",
        IndexDef("by_priority", ("priority", "day")),
        True,
    )
    assert context.prepare("DROP INDEX by_priority") == DropIndex("by_priority", if_exists=False)
    assert context.prepare("DROP INDEX IF EXISTS by_priority") == DropIndex("by_priority", if_exists=True)


def with_indexes(context: Any, *columns: tuple[str, ...]) -> None:
    indexes = tuple(IndexDef(f"i{number}", names) for number, names in enumerate(columns))
    context.known["orders"] = structs.replace(context.table("orders"), indexes=indexes)
    context.version += 1


def test_explain_names_the_index_for_programs(context: Any) -> None:
    with_indexes(context, ("amount",))
    (scan,) = context.explain("SELECT * FROM orders WHERE amount = 5").json["pruning"]["scans"]
    assert scan["index"] == "i0"
    assert scan["primary_key_bounds"] == {"lower": None, "upper": None}
