"""Daft on Ray: SQL over DataFrames that are partitioned by customer and collected into the object store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import daft
import ray

from benchmarks.peers.adapters.inlined import inlined
from benchmarks.peers.caller import Call, CannotAnswerError, serve_calls
from benchmarks.peers.statements import Statement

_WORKERS = 3


class _Caller:
    def connect(self, service: dict[str, Any]) -> None:
        # As many processors as the others have members: Ray then runs that many tasks side by side.
        ray.init(num_cpus=_WORKERS, include_dashboard=False, log_to_driver=False, configure_logging=False)
        daft.set_runner_ray()
        folder = Path(service["data"])
        frames = {
            name: daft.read_parquet(str(folder / f"{name}.parquet")) for name in ("orders", "customers", "product")
        }
        frames["orders"] = frames["orders"].repartition(_WORKERS, "customer_id")
        self._frames = {name: frame.collect() for name, frame in frames.items()}

    def bound(self, statement: Statement, values: Sequence[Any]) -> Any:
        """Daft has no parameters, so the values are written into the text."""
        return inlined(statement.sql, values)

    def call(self, statement: Statement) -> Call:
        if statement.writes:
            raise CannotAnswerError("Daft's frames do not change")
        return self._rows

    def close(self) -> None:
        ray.shutdown()

    def _rows(self, sql: str) -> list[list[Any]]:
        columns = daft.sql(sql, **self._frames).to_pydict()
        return [list(row) for row in zip(*columns.values(), strict=True)]


if __name__ == "__main__":
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    serve_calls(_Caller())
