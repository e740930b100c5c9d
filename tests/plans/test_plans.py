"""Plans as text: for each statement of the ``.sql`` files what EXPLAIN answers, and what it touches when it runs (see
``plan_files.py``).

Statements over tables with rows are executed as well, on three members, pruned and unpruned, and compared with DuckDB
over the same rows.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import duckdb
import pytest

import secateur
from answers import answer, define, described_answer, described_tables
from described_tables import DescribedTables
from plan_files import Case, PlanFile, read_all
from secateur.cluster import Cluster

FILES = read_all()


def cases_of(*, with_rows: bool) -> list[Any]:
    return [
        pytest.param(file, case, id=f"{file.name}: {case.title}")
        for file in FILES
        if file.has_rows is with_rows
        for case in file.cases
    ]


@cache
def tables_of(file: PlanFile) -> DescribedTables:
    return described_tables(file)


def check(found: str, file: PlanFile, case: Case) -> None:
    if found != case.expected:
        difference = difflib.unified_diff(
            (case.expected or "").splitlines(), found.splitlines(), "expected", "found", lineterm=""
        )
        pytest.fail(
            "\n".join(
                [f"{file.path}: {case.title}", case.sql, *difference, "`make plans` writes the expected text anew"]
            ),
            pytrace=False,
        )


@pytest.mark.parametrize(("file", "case"), cases_of(with_rows=False))
def test_plan(file: PlanFile, case: Case) -> None:
    check(described_answer(tables_of(file), case), file, case)


@pytest.fixture(scope="module")
def running(cluster: Cluster) -> Iterator[tuple[secateur.Connection, duckdb.DuckDBPyConnection]]:
    """The tables that have rows, on the cluster and in DuckDB."""
    oracle = duckdb.connect()
    with cluster.connect() as conn:
        for file in FILES:
            if file.has_rows:
                define(conn, file)
                for statement in file.definitions:
                    oracle.execute(
                        re.sub(r"\)\s+(PARTITION BY|REPLICATED|BACKUPS)[^;]*$", ")", statement, flags=re.DOTALL)
                    )
        yield conn, oracle
    oracle.close()


@pytest.mark.parametrize(("file", "case"), cases_of(with_rows=True))
def test_plan_and_answer(
    file: PlanFile, case: Case, running: tuple[secateur.Connection, duckdb.DuckDBPyConnection]
) -> None:
    conn, oracle = running
    check(answer(conn, case), file, case)
    result = conn.execute(case.sql, case.parameters or ())
    stats = result.stats
    found = {"partitions": stats.partitions_read, "members": stats.members_touched, "execution": str(stats.execution)}
    assert {name: str(found[name]) for name in case.touched} == case.touched
    expected = comparable(oracle.execute(case.sql, case.parameters or []).fetchall(), case)
    assert comparable(result.fetchall(), case) == expected
    conn.execute("SET pruning = off")
    try:
        assert comparable(conn.execute(case.sql, case.parameters or ()).fetchall(), case) == expected
    finally:
        conn.execute("SET pruning = on")


def comparable(rows: list[tuple[Any, ...]], case: Case) -> list[str]:
    texts = [repr([float(value) if isinstance(value, float) else value for value in row]) for row in rows]
    return texts if "ORDER BY" in case.sql else sorted(texts)
