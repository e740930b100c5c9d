"""The queries of the SQL test files with DuckDB's bound plans of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from secateur.engine.kernels.duckdb import default_kernel
from secateur.planner.binding import BoundPlan, bind_to_plan
from secateur.planner.tree import AnyRelation
from secateur.planner.tree.rewriting import over_all_columns
from secateur.protocol import json_decoder

FILES = sorted((Path(__file__).parents[2] / "sql").glob("*.test"))
_OPTIONS = "skip_null := true, skip_empty := true, skip_default := true, optimize := false"
_OWN_CLAUSES = re.compile(r"\)\s*(PARTITION BY .*|BACKUPS .*|REPLICATED\s*)$", re.DOTALL | re.IGNORECASE)


class _Plans(msgspec.Struct):
    error: bool
    plans: tuple[AnyRelation, ...] = ()


_decode = json_decoder(_Plans).decode


def bound(duck: Any, sql: str) -> AnyRelation | None:
    """DuckDB's plan of a query; None where it shows none, or one that is not known here."""
    ((plan,),) = duck.execute(f"SELECT json_serialize_plan($1, {_OPTIONS})", [sql]).fetchall()
    try:
        found = _decode(plan.encode())
    except msgspec.ValidationError:
        return None
    return over_all_columns(found.plans[0]) if len(found.plans) == 1 else None


COLUMNS = {"a": "BIGINT", "b": "VARCHAR", "z": "TIMESTAMP WITH TIME ZONE"}
"""Those of the tables t and u of :func:`root`."""


def root(sql: str) -> AnyRelation:
    """The plan of a query over t and u, with an integer for each of two parameters."""
    plan = bind_to_plan(default_kernel(), sql, {"t": COLUMNS, "u": COLUMNS}, [1, 1])
    assert isinstance(plan, BoundPlan), plan
    return plan.root


def queries(path: Path) -> Iterator[tuple[Any, str]]:
    """The queries of a file, each with a DuckDB in which the statements before it have run."""
    duck = duckdb.connect(config={"threads": 1})
    for block in re.split(r"\n[ \t]*\n", path.read_text(encoding="utf-8")):
        lines = [line for line in block.split("\n") if line.strip() and not line.startswith("#")]
        if not lines:
            continue
        sql = "\n".join(lines[1 : lines.index("----") if "----" in lines else len(lines)])
        if lines[0] == "statement ok":
            try:
                duck.execute(_OWN_CLAUSES.sub(")", sql.rstrip().rstrip(";")))
            except duckdb.Error:  # a statement of the dialect alone
                continue
        elif lines[0].startswith("query") and re.match(r"\(*\s*(SELECT|WITH|FROM|VALUES)\b", sql, re.IGNORECASE):
            yield duck, sql


def rows_of(duck: Any, sql: str) -> tuple[list[str], list[str]]:
    """The rows of a query in no order, and the types of its columns."""
    answer = duck.execute(sql)
    types = [str(column[1]) for column in answer.description]
    return sorted(map(repr, answer.fetchall())), types
