from __future__ import annotations

import pytest

import small_jobs
from secateur.partitioning.tables import TableDef


@pytest.fixture
def orders() -> TableDef:
    return small_jobs.orders_table()
