"""Values inside of values: what is loaded, inserted, restored or read after a failure is what was given, as in DuckDB.

The types and the values are drawn by chance, with NULLs at every level.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import secateur
from nested import arrow_column, python_form, random_type, random_value
from secateur.cluster import Cluster
from secateur.partitioning.types import SqlType, TypeKind
from secateur.partitioning.types.sql_text import quoted

ROWS = 30
COLUMNS = 4
SEED = int(os.environ.get("SECATEUR_SEED", "20261123"))
TURNS = int(float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))


@dataclass
class World:
    """A table of random columns, and the same in DuckDB."""

    name: str
    types: list[SqlType]
    rows: list[tuple[Any, ...]]
    oracle: duckdb.DuckDBPyConnection

    @classmethod
    def drawn(cls, rng: random.Random, name: str) -> World:
        types = [random_type(rng) for _ in range(COLUMNS - 1)]
        types.append(SqlType.map_of(SqlType(TypeKind.VARCHAR), random_type(rng, 2)))
        rows = [(number, *(random_value(rng, type_) for type_ in types)) for number in range(ROWS)]
        oracle = duckdb.connect()
        oracle.execute("SET TimeZone = 'UTC'")
        return cls(name, types, rows, oracle)

    @property
    def declared(self) -> str:
        return "k INTEGER PRIMARY KEY, " + ", ".join(f"c{number} {type_}" for number, type_ in enumerate(self.types))

    @property
    def expected(self) -> list[tuple[Any, ...]]:
        return [(k, *map(python_form, values, self.types)) for k, *values in self.rows]

    def arrow(self, rows: list[tuple[Any, ...]]) -> pa.Table:
        columns = {"k": pa.array([row[0] for row in rows], pa.int32())}
        for number, type_ in enumerate(self.types):
            columns[f"c{number}"] = arrow_column([row[number + 1] for row in rows], type_)
        return pa.table(columns)

    def create(self, conn: secateur.Connection) -> None:
        """Both tables; a third of the rows is loaded, a third inserted as parameters, and the rest by a query."""
        conn.execute(f"CREATE TABLE {self.name} ({self.declared}) PARTITION BY HASH (k) PARTITIONS 5")
        self.oracle.execute(f"CREATE TABLE {self.name} ({self.declared})")
        given = self.arrow(self.rows)
        casts = ", ".join(f"CAST(c{number} AS {type_})" for number, type_ in enumerate(self.types))
        self.oracle.execute(f"INSERT INTO {self.name} SELECT k, {casts} FROM given")
        third = ROWS // 3
        conn.table(self.name).load(given.slice(0, third), mode="append")
        conn.table(self.name).load(given.slice(2 * third), mode="append")
        for row in self.rows[third : 2 * third]:
            conn.execute(f"INSERT INTO {self.name} (k) VALUES (?)", [row[0]])
            for number, type_ in enumerate(self.types):
                values = _parameter(row[number + 1], type_)
                conn.execute(f"UPDATE {self.name} SET c{number} = ? WHERE k = ?", [values, row[0]])

    def statements(self, rng: random.Random) -> list[str]:
        last = len(self.types) - 1
        found = [
            f"SELECT * FROM {self.name} ORDER BY k",
            f"SELECT k, c{last}['a'], c{last}['?'], map_keys(c{last}) FROM {self.name} ORDER BY k",
            f"SELECT count(*), {', '.join(f'count(c{number})' for number in range(last + 1))} FROM {self.name}",
            f"SELECT k, cardinality(c{last}) FROM {self.name} WHERE k < {rng.randrange(ROWS)} ORDER BY k",
        ]
        for number, type_ in enumerate(self.types):
            found.append(f"SELECT max(n) FROM (SELECT count(*) AS n FROM {self.name} GROUP BY c{number})")
            if type_.kind is TypeKind.STRUCT:
                paths = ", ".join(f"c{number}.{quoted(field.name)}" for field in type_.fields)
                found.append(f"SELECT k, {paths} FROM {self.name} WHERE k % 3 = 1 ORDER BY k")
            if type_.kind is TypeKind.LIST:
                found.append(f"SELECT k, c{number}[1], len(c{number}) FROM {self.name} ORDER BY k")
        return found

    def check(self, conn: secateur.Connection, rng: random.Random) -> None:
        assert conn.execute(f"SELECT * FROM {self.name} ORDER BY k").fetchall() == self.expected
        for sql in self.statements(rng):
            cursor = conn.execute(sql)
            theirs = self.oracle.execute(sql)
            assert [column[1] for column in cursor.description or ()] == [
                str(column[1]) for column in theirs.description
            ]
            assert cursor.fetchall() == [tuple(map(_with_lists, row)) for row in theirs.fetchall()], sql


def _with_lists(value: Any) -> Any:
    """A value of DuckDB's client, which has tuples for lists of a fixed length."""
    match value:
        case list() | tuple():
            return list(map(_with_lists, value))
        case dict():
            return {key: _with_lists(item) for key, item in value.items()}
        case _:
            return value


def _parameter(value: Any, type_: SqlType) -> Any:
    """A value as a parameter: a MAP is two lists, which DuckDB tells from a STRUCT."""
    if value is None:
        return None
    match type_.kind:
        case TypeKind.LIST | TypeKind.ARRAY:
            return [_parameter(item, type_.parts[0]) for item in value]
        case TypeKind.STRUCT:
            return {field.name: _parameter(value[field.name], field.type) for field in type_.fields}
        case TypeKind.MAP:
            key, item = type_.parts
            return {"key": [_parameter(k, key) for k, _ in value], "value": [_parameter(v, item) for _, v in value]}
        case _:
            return value


@pytest.mark.parametrize("turn", range(TURNS))
def test_nested_values_are_unchanged(conn: secateur.Connection, table_name: str, turn: int) -> None:
    rng = random.Random(f"{SEED} {turn}")
    world = World.drawn(rng, table_name)
    world.create(conn)
    world.check(conn, rng)
    read = conn.execute(f"SELECT * FROM {world.name} ORDER BY k").fetch_arrow_table()
    assert [field.type for field in read.schema] == [pa.int32(), *(type_.arrow for type_ in world.types)]
    conn.execute(f"TRUNCATE {world.name}")
    conn.table(world.name).load(read, mode="append")  # its own results go back in
    assert conn.execute(f"SELECT * FROM {world.name} ORDER BY k").fetchall() == world.expected
    conn.execute(f"DROP TABLE {world.name}")


def test_nested_values_survive_losses_backups_and_restarts(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    world = World.drawn(rng, "nested")

    def start() -> Cluster:
        return secateur.start(members=3, runtime="embedded", data_directory=tmp_path / "data", fsync="always")

    with start() as cluster, cluster.connect() as conn:
        world.create(conn)
        cluster.kill_member(cluster.members()[0].id)
        world.check(conn, rng)
        conn.execute(f"BACKUP TO '{tmp_path / 'backup'}'")
        conn.execute(f"UPDATE {world.name} SET c{len(world.types) - 1} = MAP {{}}")
        conn.execute(f"RESTORE OR REPLACE FROM '{tmp_path / 'backup'}'")
        world.check(conn, rng)
    with start() as cluster, cluster.connect() as conn:
        world.check(conn, rng)
