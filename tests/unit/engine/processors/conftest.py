"""Tables for jobs of processors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import small_jobs
from secateur.engine.kernels import fragment
from secateur.engine.kernels.duckdb import Cancellation
from secateur.engine.processors import AggregateExpression, Kernel, grouping
from secateur.partitioning.tables import TableDef


@pytest.fixture
def table_of() -> Callable[[pa.Table, str], TableDef]:
    return small_jobs.table_of


@pytest.fixture
def grouped_twice(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[pa.Table], list[bool]]]:
    """Groups a table in one of the ways that may decline, then by DuckDB.

    Called with the name of the way, the keys, the aggregates and the table, it returns the partial results and their
    combination with themselves, each first one way and then the other; and whether the first way answered.
    """

    def run(
        way: str, keys: tuple[str, ...], aggregates: dict[str, AggregateExpression], table: pa.Table
    ) -> tuple[list[pa.Table], list[bool]]:
        kernel, made, answered = Kernel(fragment.run, Cancellation()), grouping.KernelGrouping(keys, aggregates), []
        tried = getattr(grouping, way)

        def noted(*args: Any) -> list[Any] | None:
            found: list[Any] | None = tried(*args)
            answered.append(found is not None)
            return found

        tables = []
        for choices in ({way: noted}, {}):
            for name in ("grouped_densely", "grouped_by_arrow"):
                monkeypatch.setattr(grouping, name, choices.get(name, lambda *_: None))
            partials = made.accumulate(kernel, table)
            tables += [partials, made.combine(kernel, pa.concat_tables([partials, partials]))]
        return tables, answered

    return run
