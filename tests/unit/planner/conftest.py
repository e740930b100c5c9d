"""A catalog for the planner's tests: some tables, three members, no cluster."""

from __future__ import annotations

import pytest

from described_tables import DescribedTables
from plan_files import read_tables


@pytest.fixture
def context() -> DescribedTables:
    return DescribedTables.of(read_tables("shop"))
