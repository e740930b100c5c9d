"""Three-valued logic by enumeration: what a predicate asks of its parts is what makes it come out as asked."""

from __future__ import annotations

import itertools

import pytest

from secateur.engine.kernels.duckdb import default_kernel
from secateur.partitioning.types import parse_type
from secateur.planner.binding import BoundPlan, bind_to_plan
from secateur.planner.prune import PredicateReader, Truth, intersect
from secateur.planner.prune.scan_columns import ScanColumns
from secateur.planner.tree import relations as rel

TYPES = {"p": parse_type("BOOLEAN"), "q": parse_type("BOOLEAN")}


@pytest.mark.parametrize(
    "wanted", [Truth.TRUE, Truth.FALSE, Truth.NULL, Truth.NOT_TRUE, Truth.NOT_FALSE, Truth.NOT_NULL, Truth(0)], ids=str
)
def test_negation_swaps_true_and_false(wanted: Truth) -> None:
    assert wanted.negated.negated == wanted
    assert (Truth.NULL in wanted.negated) == (Truth.NULL in wanted)
    assert (Truth.TRUE in wanted.negated) == (Truth.FALSE in wanted)


PREDICATES = [
    "p",
    "NOT p",
    "p AND q",
    "p OR NOT q",
    "NOT (p AND q)",
    "(p AND NULL) OR q",
    "p OR NULL",
    "p AND (q OR FALSE)",
    "(p OR q) IS TRUE",
    "(p AND q) IS NOT TRUE",
    "(p AND NULL) IS NULL",
    "(p AND NULL) IS NOT NULL",
    "(p OR NULL) IS NOT FALSE",
    "NOT ((p AND NULL) IS FALSE)",
    "((p AND NULL) IS NULL) IS FALSE",
    "p = TRUE",
    "(p AND q) = FALSE",
    "(p OR q) <> TRUE",
    "p <> q",
    "p IS DISTINCT FROM TRUE",
    "p IS NOT DISTINCT FROM NULL",
    "p IN (TRUE, NULL)",
    "p NOT IN (TRUE, NULL)",
    "p NOT IN (FALSE)",
    "(p NOT IN (FALSE, NULL)) IS NULL",
    "p IS NULL",
    "p IS NOT NULL OR q",
    "p = p",
    "p <> p",
    "(p, q) = (TRUE, FALSE)",
    "(p, q) <> (TRUE, FALSE)",
    "(p, q) < (TRUE, FALSE)",
    "NOT ((p, q) <= (FALSE, TRUE))",
    "(p, q) BETWEEN (FALSE, TRUE) AND (TRUE, FALSE)",
    "(p, q) NOT IN ((TRUE, TRUE), (FALSE, FALSE))",
]

# Where columns are compared with each other, or a predicate is asked to be NULL that a NULL among its operands makes
# so.
LOOSER = {"p <> q", "(p NOT IN (FALSE, NULL)) IS NULL"}


@pytest.mark.parametrize("text", PREDICATES)
def test_no_row_that_passes_is_outside_of_the_boxes(text: str) -> None:
    plan = bind_to_plan(default_kernel(), f"SELECT * FROM t WHERE {text}", {"t": TYPES}, ())
    assert isinstance(plan, BoundPlan)
    (filtered,) = plan.root.children
    assert isinstance(filtered, rel.LogicalFilter)
    (scan,) = filtered.children
    assert isinstance(scan, rel.LogicalScan)
    names = [scan.names[column.index] for column in scan.column_indexes]
    reader = PredicateReader(TYPES, ScanColumns(names, TYPES, frozenset(TYPES)))
    boxes = intersect(*(reader.read(condition) for condition in filtered.expressions))
    held = {
        row
        for row in itertools.product((False, True), repeat=2)
        if any(_inside(box.resolve((), TYPES), row) for box in boxes)
    }
    passing = {row for row in itertools.product((False, True), repeat=2) if _passes(text, row)}
    assert held >= passing
    assert held == passing or text in LOOSER


def _inside(domains: dict[str, object], row: tuple[bool, ...]) -> bool:
    return all(value in domains[name] for name, value in zip("pq", row, strict=True) if name in domains)  # type: ignore[operator]


def _passes(text: str, row: tuple[bool, ...]) -> bool:
    p, q = map(str, row)
    return bool(
        default_kernel()
        .run(f"SELECT count(*) AS n FROM (SELECT {p} AS p, {q} AS q) WHERE {text}", {})
        .column("n")[0]
        .as_py()
    )
