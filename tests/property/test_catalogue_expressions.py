"""Deterministic scalar functions of DuckDB's own catalogue: ``key = f(...)`` keeps the partition of DuckDB's value.

Calls are drawn from ``duckdb_functions()``, with literals and parameters of fitting types, and with any number of them
where it takes that. Where DuckDB raises an error, the statement is refused or keeps what it likes: its rows raise the
error.

``SECATEUR_CATALOGUE_EXPRESSIONS`` sets how many calls are tried, ``SECATEUR_SEED`` where the seeds begin; a failure
names its seed.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from datetime import date, datetime
from typing import Any

import duckdb
import pytest

from secateur.errors import DatabaseError
from secateur.partitioning.schemes import PartitionScheme
from worlds import World

FACTOR = float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1"))
EXPRESSIONS = int(os.environ.get("SECATEUR_CATALOGUE_EXPRESSIONS", int(100 * FACTOR)))
EXPRESSIONS_PER_SEED = 300
FIRST_SEED = int(os.environ.get("SECATEUR_SEED", "0"))
VALUES: dict[str, list[Any]] = {
    "VARCHAR": ["a", "", "Ab c", "2024-02-29", "12", "it's", "é", "%Y-%m-%d", "day"],
    "BIGINT": [0, 1, 3, -2, 12],
    "INTEGER": [0, 1, 3, -2, 12],
    "DOUBLE": [0.0, 1.5, -2.25, 100.0],
    "BOOLEAN": [True, False],
    "DATE": [date(2024, 2, 29), date(1999, 12, 31)],
    "TIMESTAMP": [datetime(2024, 2, 29, 13, 45, 1), datetime(1970, 1, 1)],
}
KEYS = {"VARCHAR": "s", "BIGINT": "n", "INTEGER": "n", "HUGEINT": "n", "DATE": "d", "TIMESTAMP": "ts"}
"""The table whose key has the type of a value; each table has the name of its key."""
ANY = frozenset({"ANY", "T"})
"""How the catalogue writes that an argument may have any type, or that of the others."""
ENDLESS = (date.min, datetime.min)
"""The Python values that infinite dates and timestamps have as well."""
LEFT_OUT = frozenset({"sleep_ms", "write_log", "__internal_barrier", "alias", "constant_or_null"})
"""Functions that take their time, write or are refused, and one with a parameter of which DuckDB shows no plan."""
LARGE = frozenset({"bar", "format", "printf", "cast_to_type", "replace_type", "to_base"})
"""Functions with values as long as an argument says, which are not computed before the partitions are selected, or
only with a format that is written out; and two that DuckDB writes for itself.
"""
NOT_EVALUATED = ("json", "icu_")
"""The beginnings of the names of functions of extensions, and of collations, which are not evaluated either."""


def _calls() -> list[tuple[str, list[str]]]:
    """The functions of the catalogue, with the types of their arguments."""
    rows = duckdb.execute(
        "SELECT DISTINCT function_name, parameter_types, coalesce(varargs, '') FROM duckdb_functions() WHERE"
        " function_type = 'scalar' AND stability = 'CONSISTENT' AND len(parameter_types) <= 4 ORDER BY ALL"
    ).fetchall()
    calls = [
        (name, [*types, *[more] * count])
        for name, types, more in rows
        for count in (range(4) if more else [0])
        if name.replace("_", "").isalnum() and name not in LEFT_OUT
    ]
    return [(name, types) for name, types in calls if types and all(type_ in {*VALUES, *ANY} for type_ in types)]


CALLS = _calls()
COLLATING = [(name, types) for name, types in CALLS if name.startswith("icu_")]
OF_ANY = [(name, types) for name, types in CALLS if not ANY.isdisjoint(types)]
GROUPS = [CALLS] * 8 + [COLLATING, OF_ANY, OF_ANY]
"""A call in eleven is one of collations, of which there are many, and two take arguments of any type."""


class _Catalogue(World):
    def __init__(self) -> None:
        super().__init__()
        for name, type_ in (("s", "VARCHAR"), ("n", "BIGINT"), ("d", "DATE"), ("ts", "TIMESTAMP")):
            self.create(
                f"CREATE TABLE {name} (k {type_} PRIMARY KEY, v INTEGER) PARTITION BY HASH (k) PARTITIONS 101",
                lambda table: [],
            )


def _expression(rng: random.Random, params: list[Any]) -> str:
    group = rng.choice(GROUPS)
    name, types = rng.choice(group)
    one = rng.choice(list(VALUES))  # mostly, as few functions take arguments of several types
    return f"{name}({', '.join(_argument(rng, _of_some_type(rng, type_, one), params) for type_ in types)})"


def _of_some_type(rng: random.Random, type_: str, one: str) -> str:
    if type_ not in ANY:
        return type_
    return one if type_ == "T" or rng.random() < 0.7 else rng.choice(list(VALUES))


def _argument(rng: random.Random, type_: str, params: list[Any]) -> str:
    value = rng.choice(VALUES[type_])
    if rng.random() < 0.4:
        params.append(value)
        return f"CAST(${len(params)} AS {type_})"
    text = str(value).replace("'", "''")
    return f"{text}::{type_}" if isinstance(value, (int, float)) else f"'{text}'::{type_}"


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + -(-EXPRESSIONS // EXPRESSIONS_PER_SEED)))
def test_a_key_that_equals_a_call_is_in_the_partition_of_duckdbs_value(seed: int) -> None:
    rng = random.Random(seed)
    world = _Catalogue()
    world.duck.execute("SET TimeZone = 'UTC'")
    met: Counter[str] = Counter()
    for _ in range(EXPRESSIONS_PER_SEED):
        params: list[Any] = []
        sql = _expression(rng, params)
        told = f"seed {seed}: {sql} with {params!r}"
        try:
            ((value, type_),) = world.duck.execute(f"SELECT x, typeof(x) FROM (SELECT {sql} AS x)", params).fetchall()
        except (duckdb.Error, UnicodeDecodeError):  # an error whose message ends within a character
            value, type_, valid = None, "VARCHAR", False
        else:
            valid = True
        table = KEYS.get(type_)
        if table is None:
            met["a value of no key's type"] += 1
            continue
        try:
            statement = world.prepare(f"SELECT * FROM {table} WHERE k = {sql}", params)
        except DatabaseError as error:
            if valid:
                raise AssertionError(f"{told} is {value!r}, but refused") from error
            met["refused"] += 1
            continue
        (kept,) = world.kept(statement.plan, statement.params or ())
        if not valid:
            met["an error"] += 1
            continue
        if type_ in ("DATE", "TIMESTAMP") and isinstance(value, str):
            met["a year before the first one of Python"] += 1
            continue
        wanted = _partition(world.tables[table].scheme, value)
        if sql.startswith(NOT_EVALUATED) or sql.partition("(")[0] in LARGE or value in ENDLESS:
            assert set(wanted) <= set(kept), f"rows are lost: {told} is {value!r}"
            continue
        assert list(kept) == wanted, f"{told} is {value!r}: kept {list(kept)[:9]}, needed {wanted}"
        met["pruned"] += 1
    assert met["pruned"] > EXPRESSIONS_PER_SEED // 7, f"too few calls have values of a key's type: {met}"


def _partition(scheme: PartitionScheme, value: Any) -> list[int]:
    if value is None or (isinstance(value, int) and not -(2**63) <= value < 2**63):
        return []
    return [scheme.partition_of({"k": value})]
