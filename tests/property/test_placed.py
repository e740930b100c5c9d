"""Statements of :mod:`placed` give the rows that DuckDB gives: taken apart over one to four members that are played,
and on clusters of one and of three.

``SECATEUR_PRUNING_WORLDS`` sets how many random worlds are tried, ``SECATEUR_SEED`` where they begin; a failure names
its seed. There is the beginning of one world in ``make test``: ``make generated`` has 250 whole ones, on all cores, and
continuous integration runs it.
"""

from __future__ import annotations

import os

import pytest

from placed_run import compare_changes, compare_on_cluster, compare_world, gathers_small
from secateur.engine.sql import Strategy

WORLDS = int(os.environ.get("SECATEUR_PRUNING_WORLDS", "1"))
FIRST_SEED = int(os.environ.get("SECATEUR_SEED", "0"))
STATEMENTS = 16
STATEMENTS_ON_CLUSTER = 10


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + WORLDS))
def test_placed_answers_equal_duckdb(seed: int) -> None:
    compared = compare_world(seed, STATEMENTS)
    assert compared.statements >= 0.5 * STATEMENTS, (
        f"seed {seed}: DuckDB's database ended too early for the test to mean anything"
    )
    assert not compared.mismatches
    if gathers_small(seed):
        return
    gathered = compared.strategies[Strategy.GATHER]
    assert gathered <= 0.3 * compared.strategies.total(), f"seed {seed}: too many statements are gathered"


@pytest.mark.parametrize("members", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_members_answer_as_duckdb(members: int) -> None:
    assert compare_on_cluster(FIRST_SEED, members, STATEMENTS_ON_CLUSTER) >= 0.8 * STATEMENTS_ON_CLUSTER


@pytest.mark.parametrize("members", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_changes_leave_the_rows_that_duckdb_has(members: int) -> None:
    assert compare_changes(FIRST_SEED, members, STATEMENTS_ON_CLUSTER) >= 0.6 * STATEMENTS_ON_CLUSTER
