"""Run the suite: ``python -m benchmarks.tpcds``."""

from __future__ import annotations

import sys

from benchmarks.tpc.suite import run_suite
from benchmarks.tpcds.tables import TABLES

if __name__ == "__main__":
    sys.exit(run_suite("tpcds", TABLES))
