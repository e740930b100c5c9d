"""SQLAlchemy's own suite of tests for dialects, in a process of its own: its plugin of pytest changes a whole run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parent / "sqlalchemy_suite" / "run_suite.py"
PASSED_MIN = 700
"""How many tests of the suite pass at least: one that is skipped by mistake passes no more."""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_suite_of_sqlalchemy() -> None:
    done = subprocess.run([sys.executable, str(RUN), "-q", "--tb=short"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= PASSED_MIN
