"""Clusters that many tests share. Every table belongs to one test: take its name from ``table_name``."""

from __future__ import annotations

import decimal
import itertools
from collections.abc import Iterator

import pytest

import secateur
from secateur.cluster import Cluster

_numbers = itertools.count(1)

# Nothing that secateur does may depend on the decimal context of a thread: all tests run in one in which what is
# rounded to five digits raises.
decimal.DefaultContext.prec = 5
decimal.DefaultContext.traps[decimal.Inexact] = True
decimal.setcontext(decimal.DefaultContext.copy())


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Three members in this process."""
    with secateur.start(members=3, runtime="embedded") as running:
        yield running


@pytest.fixture(scope="session")
def lone_cluster() -> Iterator[Cluster]:
    """One member in this process."""
    with secateur.start(members=1, runtime="embedded") as running:
        yield running


@pytest.fixture
def conn(cluster: Cluster) -> Iterator[secateur.Connection]:
    with cluster.connect() as connection:
        yield connection


@pytest.fixture
def table_name() -> str:
    """A name that no other test uses."""
    return f"t{next(_numbers)}"
