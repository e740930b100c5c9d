"""UPDATE with arithmetic of integers and doubles, mostly computed without DuckDB, leaves the rows that DuckDB leaves,
and fails where DuckDB fails.

Every failure names its seed.
"""

from __future__ import annotations

import os
import random
from typing import Any

import duckdb
import pytest

import secateur

SEED = int(os.environ.get("SECATEUR_SEED", "1"))
SEEDS = range(SEED, SEED + int(float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1"))))
STATEMENTS = 30
COLUMNS = {
    "t": ("TINYINT", -(2**7), 2**7 - 1),
    "s": ("SMALLINT", -(2**15), 2**15 - 1),
    "i": ("INTEGER", -(2**31), 2**31 - 1),
    "b": ("BIGINT", -(2**63), 2**63 - 1),
    "u": ("UINTEGER", 0, 2**32 - 1),
    "w": ("UBIGINT", 0, 2**64 - 1),
    "d": ("DECIMAL(8, 2)", -100, 100),
    "f": ("DOUBLE", -(2**70), 2**70),
}
VALUES = [
    "{c} + ?",
    "? + {c}",
    "{c} - ?",
    "? - {c}",
    "{c} * ?",
    "({c} + ?) * 2",
    "({c} + 1) - ?",
    "-{c} + ?",
    "{c} + {o}",
]


def given(rng: random.Random) -> Any:
    if rng.random() < 0.3:
        return rng.choice([0.1, -0.0, 1.5, 2.0, 1e308, 5e-324, float("inf"), rng.uniform(-9, 9)])
    return rng.choice([0, 1, -1, rng.randrange(-300, 300), 2**31 - 1, -(2**31), 2**40, 2**63 - 1, None, True])


@pytest.mark.parametrize("seed", SEEDS)
def test_number_updates(conn: secateur.Connection, table_name: str, seed: int) -> None:
    rng = random.Random(seed)
    columns = ", ".join(f"{name} {text}" for name, (text, _, _) in COLUMNS.items())
    with duckdb.connect() as oracle:
        for execute in (conn.execute, oracle.execute):
            execute(f"CREATE TABLE {table_name} (id INTEGER PRIMARY KEY, {columns})")
        for key in range(6):
            row = [
                rng.choice([None, low, high, 0, 1, low + 1, high - 1, rng.randrange(max(low, -50), 50)])
                for _, low, high in COLUMNS.values()
            ]
            for execute in (conn.execute, oracle.execute):
                execute(f"INSERT INTO {table_name} VALUES (?, {', '.join('?' * len(row))})", [key, *row])
        for _ in range(STATEMENTS):
            column, other = rng.choice(list(COLUMNS)), rng.choice(list(COLUMNS))
            value = rng.choice(VALUES).format(c=column, o=other)
            sql = f"UPDATE {table_name} SET {rng.choice(list(COLUMNS))} = {value} WHERE id = ?"
            params = [given(rng) for _ in range(value.count("?"))] + [rng.randrange(7)]
            said = []
            for execute in (conn.execute, oracle.execute):
                try:
                    execute(sql, params)
                    said.append("done")
                except (secateur.Error, duckdb.Error):
                    said.append("refused")
            read = f"SELECT * FROM {table_name} ORDER BY id"
            assert said[0] == said[1], f"seed {seed}: {sql} with {params}: {said}"
            left, expected = conn.execute(read).fetchall(), oracle.execute(read).fetchall()
            assert repr(left) == repr(expected), f"seed {seed}: {sql} with {params}"  # which tells NaN and -0.0
