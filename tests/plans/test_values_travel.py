"""What partitioning sends for the statements of the ``.sql`` files: schemes, trees, key bounds, tables, owners.

Each value comes back equal, and has the same bytes in every process, whose sets have other orders.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from answers import described_tables
from plan_files import read_all
from secateur.errors import Error, LimitExceededError, NotSupportedError, ProtocolError, TopologyChangedError
from secateur.partitioning.pruning import Box, Choice, Constraint, points
from secateur.partitioning.tables import TableDefinition
from secateur.planner import PlannedSelect
from secateur.protocol import decode, encode

DAMAGED = 40
"""Damaged copies of each value."""
CASES = 3
"""One in so many: those of a file are plans of one kind, and each of them takes its time."""


def planned_values(folder: str) -> Iterator[Any]:
    """The values that travel for the cases of some files, in a fixed order."""
    for file in sorted(read_all(), key=lambda file: file.name):
        if file.has_rows or not file.name.startswith(folder):
            continue
        tables = described_tables(file)
        yield tables.topology
        for table in tables.tables():
            yield table.scheme
            yield TableDefinition.of(table)
        yield from tables.statistics_snapshot.tables.values()
        for case in file.cases[::CASES]:
            try:
                statement = tables.prepare(case.sql, case.parameters or (), case.settings)
            except Error:
                continue
            if isinstance(statement, PlannedSelect):
                for scan in statement.plan.scans:
                    yield scan.tree
                    if scan.keys.bounds is not None:
                        yield scan.keys.bounds


@pytest.fixture(scope="module")
def values() -> list[Any]:
    found = list(planned_values("pruning/"))
    assert len({type(value) for value in found}) >= 5
    return found


def digest() -> str:
    texts = Box.of({"a": Constraint((Choice(points(["one", "two", "three", "four", "five"])),))})
    return hashlib.sha256(b"".join(map(encode, [texts, *planned_values("pruning/membership")]))).hexdigest()


def test_every_value_comes_back_equal_and_its_copy_has_the_same_bytes(values: list[Any]) -> None:
    for value in values:
        again = decode(encode(value), type(value))
        assert again == value
        assert encode(again) == encode(value)


def test_equal_values_have_equal_bytes_in_processes_with_other_orders_of_sets() -> None:
    code = "import test_values_travel; print(test_values_travel.digest())"
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    assert run.stdout.strip() == digest()


@pytest.mark.parametrize("seed", range(3))
def test_damaged_bytes_are_another_value_or_a_clear_error(values: list[Any], seed: int) -> None:
    rng = random.Random(seed)
    refused = 0
    for value in values:
        whole = encode(value)
        for _ in range(DAMAGED):
            data = bytearray(whole)
            for _ in range(rng.randint(1, 3)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            try:
                decode(bytes(data[: rng.choice([len(data), rng.randrange(len(data))])]), type(value))
            except (ProtocolError, LimitExceededError, TopologyChangedError, NotSupportedError):
                refused += 1
    assert refused > len(values)
