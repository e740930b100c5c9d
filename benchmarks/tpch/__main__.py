"""Run the suite: ``python -m benchmarks.tpch``."""

from __future__ import annotations

import sys

from benchmarks.tpc.suite import run_suite
from benchmarks.tpch.tables import TABLES

if __name__ == "__main__":
    sys.exit(run_suite("tpch", TABLES))
