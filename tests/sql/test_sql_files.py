"""SQL test files: each runs on one member, on three members and on DuckDB, and all have to answer what the file says.

The format is sqllogictest's: records apart by blank lines, ``#`` for comments.

``statement ok`` / ``statement error <part of the message>``
    a statement on the following lines; errors are not asked of DuckDB, which has other rules
``query [rowsort]``
    a query, ``----``, and the rows: values apart by tabs, NULL for a null; ``rowsort`` where the statement leaves the
    order open

``__TMP__`` in a statement is a directory of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

import secateur
from secateur.cluster import Cluster

FILES = sorted(Path(__file__).parent.glob("*.test"))

# What CREATE TABLE says beyond DuckDB's dialect.
OWN_CLAUSES = re.compile(r"\)\s*(PARTITION BY .*|BACKUPS .*|REPLICATED\s*)$", re.DOTALL | re.IGNORECASE)
OWN_KEY = re.compile(
    r"^(CREATE (?:OR REPLACE )?TABLE (?:IF NOT EXISTS )?\w+(?: \(.*?\))?) PRIMARY KEY"
    r" .*? (AS (?:SELECT|WITH|FROM|VALUES))",
    re.DOTALL,
)


@dataclass(frozen=True)
class Record:
    line: int
    kind: str
    option: str
    sql: str
    expected: tuple[str, ...]


def records(path: Path) -> Iterator[Record]:
    number = 1
    for block in re.split(r"\n[ \t]*\n", path.read_text(encoding="utf-8")):
        lines = [(number + offset, line) for offset, line in enumerate(block.split("\n"))]
        number += len(lines) + 1
        lines = [(at, line) for at, line in lines if line.strip() and not line.startswith("#")]
        if not lines:
            continue
        (at, head), body = lines[0], [line for _, line in lines[1:]]
        kind, _, option = head.partition(" ")
        split = body.index("----") if "----" in body else len(body)
        yield Record(at, kind, option.strip(), "\n".join(body[:split]), tuple(body[split + 1 :]))


def shown(rows: list[Any], *, sort: bool) -> list[str]:
    lines = ["\t".join("NULL" if value is None else str(value) for value in row) for row in rows]
    return sorted(lines) if sort else lines


def plain(sql: str) -> str:
    """A statement without what is said beyond DuckDB's dialect."""
    return OWN_CLAUSES.sub(")", OWN_KEY.sub(r"\1 \2", sql.rstrip().rstrip(";")))


def run(path: Path, connection: Any, directory: Path, *, oracle: bool) -> None:
    for record in (replace(record, sql=record.sql.replace("__TMP__", str(directory))) for record in records(path)):
        where = f"{path.name}:{record.line}: {record.sql}"
        if record.kind == "query":
            rows = connection.execute(record.sql).fetchall()
            sort = record.option == "rowsort"
            assert shown(rows, sort=sort) == (sorted(record.expected) if sort else list(record.expected)), where
        elif record.option == "ok":
            connection.execute(plain(record.sql) if oracle else record.sql)
        elif not oracle:
            with pytest.raises(secateur.Error) as caught:
                connection.execute(record.sql)
            assert record.option.removeprefix("error").strip() in str(caught.value), where


@contextmanager
def connected(cluster: Cluster) -> Iterator[secateur.Connection]:
    """A connection to a cluster that others use as well, on which nothing stays that was made."""
    relations = "SELECT table_id, table_type, table_name FROM secateur.tables"
    with cluster.connect() as connection:
        before = set(connection.execute(relations).fetchall())
        yield connection
        for _, kind, name in sorted(set(connection.execute(relations).fetchall()) - before, reverse=True):
            connection.execute(f'DROP {"VIEW" if kind == "VIEW" else "TABLE"} "{name}"')


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.sampled(one_in=6)
def test_three_members(path: Path, cluster: Cluster, tmp_path: Path) -> None:
    with connected(cluster) as connection:
        run(path, connection, tmp_path, oracle=False)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.sampled(one_in=12)
def test_one_member(path: Path, lone_cluster: Cluster, tmp_path: Path) -> None:
    with connected(lone_cluster) as connection:
        run(path, connection, tmp_path, oracle=False)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.sampled(one_in=4)
def test_duckdb_agrees(path: Path, tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        run(path, connection, tmp_path, oracle=True)
