"""Databases of DuckDB in memory, which are opened while the process is not forked."""

from __future__ import annotations

import threading
from typing import Final

import duckdb

from secateur.forks import forks_wait_for

_opening: Final = forks_wait_for(threading.Lock())


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
            config={"autoload_known_extensions": "false", "autoinstall_known_extensions": "false", **config},
        )
