"""Databases of DuckDB in memory, opened while the process is not forked; rows that are others in each call."""

from __future__ import annotations

import threading
from typing import Final

import duckdb
import pyarrow as pa

from secateur.forks import forks_wait_for

_opening: Final = forks_wait_for(threading.Lock())
_DEFECTIVE_OPTIMIZERS: Final = {"2.0.0": "statistics_propagation"}
"""Rules of DuckDB's optimizer that give wrong answers, by its version. That one takes the sum above ``k < (SELECT
max(...))``, ANY or ALL for one of few rows, and decides conditions on it. TPC-H and TPC-DS take as long without it.
"""


def open_database(**config: str) -> duckdb.DuckDBPyConnection:
    """A new database that loads no extension by itself.

    DuckDB holds a lock of the whole process while it opens one, some milliseconds. In a process that was forked
    meanwhile, no thread would ever release it.

    Args:
        config: Further settings of DuckDB.
    """
    with _opening:
        return duckdb.connect(
            ":memory:",
            config={
                "autoload_known_extensions": "false",
                "autoinstall_known_extensions": "false",
                "disabled_optimizers": _DEFECTIVE_OPTIMIZERS.get(duckdb.__version__, ""),
                **config,
            },
        )


class ExchangeableRows:
    """An Arrow stream whose content is set before each call; the schema stays.

    Attributes:
        schema: That of all content.
        rows: What is read; None between calls, since rows of a partition must not outlive the call that reads them.
    """

    __slots__ = ("rows", "schema")

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.rows: pa.Table | None = None

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        assert self.rows is not None
        return self.rows.__arrow_c_stream__(requested_schema)
