"""No row is lost whose key is the least, the greatest or a special value of its type, however the key is written.

Infinite days and instants, those that Python has no object for, the ends of integers and decimals, texts with NUL and
of the last code points: each in every spelling, in comparisons, rows, lists, expressions and as parameters, over keys
that are hashed, ranged and both. ``SECATEUR_SEED`` sets which spelling meets which comparison.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from datetime import UTC
from decimal import Decimal
from typing import Any

import duckdb
import pytest

import secateur
from extremes import EXTREMES, TEMPORAL, is_number, literal, spellings
from secateur.errors import DuplicateKeyError
from worlds import World, check, sorted_rows

SEED = int(os.environ.get("SECATEUR_SEED", "29"))
CONDITIONS = int(16 * float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))
BRANCHES_PER_STATEMENT = 20
CHANGES_PER_TABLE = min(CONDITIONS // 6, 9)
FORMS = (
    *("{k} = {x}", "{x} = {k}", "{k} <> {x}", "{k} < {x}", "{k} <= {x}", "{k} > {x}", "{k} >= {x}", "{x} <= {k}"),
    *("{k} IN ({x}, {y})", "{k} NOT IN ({x})", "{k} BETWEEN {x} AND {y}", "{k} NOT BETWEEN {y} AND {x}"),
    *("{k} IS NOT DISTINCT FROM {x}", "{k} IS DISTINCT FROM {x}", "NOT ({k} = {x})", "NOT ({k} < {x})"),
    *("(k, id) = ({x}, 1)", "(k, id) >= ({x}, 1)", "(k, id) < ({x}, 2)", "(k, id) IN (({x}, 1), ({y}, 2))"),
    *("{k} = ANY([{x}, {y}])", "list_contains([{x}, {y}], {k})", "{k} IN (SELECT {x})", "{k} > {x} AND {k} < {y}"),
    *("{k} = {x} OR {k} >= {y}", "CASE WHEN id > 3 THEN {k} = {x} ELSE {k} < {x} END", "coalesce({k}, {y}) = {x}"),
    *("CASE WHEN {k} = {x} THEN 1 ELSE 0 END = 1", "({k} = {x}) IS TRUE", "({k} < {x}) IS NOT FALSE"),
    *("{k} IN (SELECT v FROM u WHERE v >= {x})", "{k} = (SELECT max(v) FROM u WHERE v <= {x})", "v = {x} AND {k} = v"),
)
KEYS = {
    **dict.fromkeys(TEMPORAL, ("k + INTERVAL 0 DAY", "date_trunc('day', k)", "date_trunc('year', k)", "k::DATE")),
    "BOOLEAN": ("k::VARCHAR",),
    "VARCHAR": ("k || ''", "lower(k)"),
    "BLOB": ("k || ''::BLOB",),
    "UUID": ("k::VARCHAR",),
}
NUMBERS = ("k + 1", "-k", "k - 1", "k * 2", "abs(k)", "k::BIGINT", "k::DOUBLE", "k::HUGEINT", "k::VARCHAR")
LAYOUTS = {
    "hashed": "HASH (k) PARTITIONS 16",
    "hashed with another": "HASH (id, k) PARTITIONS 11",
    "ranged": "RANGE (k) SPLIT AT ({splits})",
    "hashed and ranged": "HASH (k) PARTITIONS 5, RANGE (k, id) SPLIT AT ({pairs})",
}
SPLITS = {
    **{type_: sorted(texts, key=Decimal) for type_, texts in EXTREMES.items() if is_number(type_)},
    **{type_: [f"{type_} '{day}'" for day in ("0001-01-01", "1970-01-01", "9999-12-31")] for type_ in TEMPORAL},
    "BOOLEAN": ["true"],
    "VARCHAR": ["''", "'a'", "'é'"],
    "UUID": [f"UUID '{text}'" for text in sorted(EXTREMES["UUID"])],
}
NOT_RANGED = "HASH (k) PARTITIONS 5, HASH (id) PARTITIONS 3"


def world_of(type_: str, layout: str) -> World:
    """A world of one table ``t`` whose key has the values, and another one with them, ``u``."""
    ends = SPLITS.get(type_, [])
    by = LAYOUTS[layout] if ends else NOT_RANGED
    by = by.format(splits=", ".join(ends), pairs=", ".join(f"({end}, 2)" for end in ends))
    world = World()
    values = [f"{literal(text)}::{type_}" for text in EXTREMES[type_]]
    rows = [
        f"({value}, {number}, {'NULL' if number == 2 else values[-1 - at]})"
        for at, value in enumerate(values)
        for number in (1, 2, 3 + at)
    ]
    for name, placed in (("t", by), ("u", "HASH (id) PARTITIONS 3")):
        ddl = f"CREATE TABLE {name} (k {type_}, id INTEGER, v {type_}, PRIMARY KEY (k, id)) PARTITION BY {placed}"
        world.fill(ddl, f"SELECT * FROM (VALUES {', '.join(rows)})")
    return world


CHANGES = (
    "DELETE FROM {t} WHERE k = {x}",
    "DELETE FROM {t} WHERE k IN ({x}, {y}) AND id > 1",
    "UPDATE {t} SET v = {y} WHERE k >= {x} AND id = 2",
    "UPDATE {t} SET v = k WHERE (k, id) = ({x}, 1)",
    "INSERT INTO {t} VALUES ({x}, 1, {y}) ON CONFLICT (k, id) DO UPDATE SET v = excluded.v",
    "INSERT OR REPLACE INTO {t} VALUES ({x}, 2, {y}), ({y}, 9, {x})",
    "INSERT INTO {t} SELECT k, id + 100, v FROM {t} WHERE k <= {x} ON CONFLICT DO NOTHING",
    "UPDATE {t} SET v = (SELECT max(k) FROM {t}) WHERE k = {x}",
    "DELETE FROM {t} WHERE k < {x} AND id <> 1",
)
CONDITIONS_OF_PARAMETERS = (
    *("k = ?", "k = $key", "k = $1::{type}", "k IN ($1, NULL)", "k = ANY([$1])", "k <= $1", "k > $1::{type}"),
    *("k BETWEEN $key AND $key", "(k, n) >= ($1, 0)", "k = coalesce($1, $1)", "k IS NOT DISTINCT FROM $1::{type}"),
)
READS = (
    "SELECT id, k::VARCHAR FROM {t} WHERE k = {x}",
    "SELECT min(k)::VARCHAR, max(k)::VARCHAR, count(*) FROM {t} WHERE k <= {x} AND id = 1",
    "SELECT k::VARCHAR, id FROM {t} WHERE v >= {x} ORDER BY k DESC, id LIMIT 3",
    "SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.k = b.v WHERE a.k = {x}",
    "SELECT id FROM {t} WHERE k IN ({x}, {more})",
    "SELECT v::VARCHAR, count(*) FROM {t} WHERE k <> {x} GROUP BY v",
)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("k = TIMESTAMPTZ 'infinity'", [2]),
        ("k = TIMESTAMPTZ '-infinity'", [1]),
        ("k = '-infinity'::TIMESTAMPTZ", [1]),
        ("k <= CAST('-infinity' AS TIMESTAMPTZ)", [1]),
        ("k >= greatest(TIMESTAMPTZ 'infinity', TIMESTAMPTZ '2020-01-01')", [2]),
        ("k = coalesce(NULL, TIMESTAMPTZ 'infinity')", [2]),
        ("k IS NOT DISTINCT FROM TIMESTAMPTZ 'infinity'", [2]),
        ("(k, id) = (nullif(TIMESTAMPTZ 'infinity', NULL), 2)", [2]),
        ("k < date_trunc('day', TIMESTAMPTZ 'infinity')", [1, 3]),
        ("k = NULL::TIMESTAMPTZ", []),
    ],
)
@pytest.mark.parametrize("by", ["HASH (k) PARTITIONS 16", "RANGE (k) SPLIT AT (TIMESTAMPTZ '2000-01-01')"])
def test_infinite_instants_are_found(by: str, condition: str, expected: list[int]) -> None:
    world = World()
    rows = "(VALUES ('-infinity', 1), ('infinity', 2), ('2020-01-01 00:00:00+00', 3)) AS x(k, id)"
    ddl = f"CREATE TABLE t (k TIMESTAMPTZ, id INTEGER, PRIMARY KEY (k, id)) PARTITION BY {by}"
    world.fill(ddl, f"SELECT k::TIMESTAMPTZ, id FROM {rows}")
    assert found(world, condition) == expected


@pytest.mark.parametrize("condition", ["k = DATE '10000-01-01'", "k IN (DATE '10000-01-01')", "k = $1::DATE + 0"])
def test_a_text_equals_every_day_that_it_spells(condition: str) -> None:
    world = World()
    ddl = "CREATE TABLE t (k VARCHAR, id INTEGER, PRIMARY KEY (k, id)) PARTITION BY HASH (k) PARTITIONS 16"
    world.fill(ddl, "SELECT * FROM (VALUES ('10000-01-01', 1), ('10000-1-1', 2), (' 10000-01-01', 3), ('1-1-1', 4))")
    assert found(world, condition, ["10000-01-01"] if "$1" in condition else []) == [1, 2, 3]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("DATE", "DATE '9999-12-31'"),
        ("DATE", "'0001-01-01'::DATE"),
        ("TIMESTAMP", "TIMESTAMP '9999-12-31 23:59:59.999999'"),
        ("TIMESTAMPTZ", "TIMESTAMPTZ '0001-01-01 00:00:00+00'"),
    ],
)
def test_the_ends_of_pythons_calendar_are_in_one_partition(type_: str, value: str) -> None:
    world = World()
    ddl = f"CREATE TABLE t (k {type_}, id INTEGER, PRIMARY KEY (k, id)) PARTITION BY HASH (k) PARTITIONS 16"
    world.fill(ddl, f"SELECT unnest([{value}, '-infinity'::{type_}, 'infinity'::{type_}]), unnest([1, 2, 3])")
    (kept,) = world.kept(world.prepare(f"SELECT id FROM t WHERE k = {value}", ()).plan, ())
    assert len(kept) == 1
    assert found(world, f"k = {value}") == [1]
    assert found(world, f"k IN ({value}, 'infinity'::{type_})") == [1, 3]


def found(world: World, condition: str, params: Sequence[Any] = ()) -> list[int]:
    """The rows that pass, of those that are read."""
    plan = world.prepare(f"SELECT id FROM t WHERE {condition}", params).plan
    return sorted(world.local(plan, params, world.kept(plan, params))["id"].to_pylist())


@pytest.mark.sampled(one_in=9)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("type_", EXTREMES)
def test_every_spelling_finds_the_rows_that_duckdb_finds(type_: str, layout: str) -> None:
    rng = random.Random(f"{SEED} {type_} {layout}")
    world = world_of(type_, layout)
    keys = ("k", "k", "k", *(NUMBERS if is_number(type_) else KEYS[type_]))
    written = [spelling for text in EXTREMES[type_] for spelling in spellings(type_, text)]
    conditions = []
    for spelling in rng.sample(written, min(CONDITIONS, len(written))):
        other = rng.choice([spelling, rng.choice(written)])
        condition = rng.choice(FORMS).format(k=rng.choice(keys), x=spelling, y=other)
        if accepted(world, condition):
            conditions.append(condition)
    assert len(conditions) >= CONDITIONS // 4, "DuckDB refused too many conditions for the test to mean anything"
    for start in range(0, len(conditions), BRANCHES_PER_STATEMENT):
        compared(world, conditions[start : start + BRANCHES_PER_STATEMENT], rng)


def accepted(world: World, condition: str) -> bool:
    try:
        world.oracle(f"SELECT id FROM t WHERE {condition}", ())
    except duckdb.Error:
        return False
    return True


def compared(world: World, conditions: list[str], rng: random.Random) -> None:
    """Compare the rows of all conditions at once, and each alone if an error hides the others' rows."""
    branches = [f"SELECT {number} AS condition, id FROM t WHERE {text}" for number, text in enumerate(conditions)]
    if not check(world, " UNION ALL ".join(branches), (), rng) and len(branches) > 1:
        for condition in conditions:
            compared(world, [condition], rng)


@pytest.mark.sampled(one_in=14)
@pytest.mark.parametrize("layout", ["hashed", "ranged"])
@pytest.mark.parametrize("type_", EXTREMES)
def test_changes_and_reads_by_extreme_keys_are_those_of_duckdb(
    conn: secateur.Connection, table_name: str, type_: str, layout: str
) -> None:
    rng = random.Random(f"{SEED} {type_} {layout} changes")
    values = [f"{literal(text)}::{type_}" for text in EXTREMES[type_]]
    by = (LAYOUTS[layout] if type_ in SPLITS else NOT_RANGED).format(splits=", ".join(SPLITS.get(type_, [])))
    create = f"CREATE TABLE {table_name} (k {type_}, id INTEGER, v {type_}, PRIMARY KEY (k, id))"
    rows = ", ".join(f"({value}, {id_}, {rng.choice(values)})" for value in values for id_ in (1, 2, 3))
    with duckdb.connect() as duck:
        duck.execute("SET TimeZone = 'UTC'")
        duck.execute(create)
        conn.execute(f"{create} PARTITION BY {by}")
        for change in (f"INSERT INTO {table_name} VALUES {rows}", *rng.sample(CHANGES, CHANGES_PER_TABLE)):
            x, y = rng.sample(values, 2)
            more = ", ".join(rng.choice(values) for _ in range(80))
            change, read = (text.format(t=table_name, x=x, y=y, more=more) for text in (change, rng.choice(READS)))
            ((changed,),) = duck.execute(change).fetchall()
            assert conn.execute(change).rowcount == changed, change
            for sql in (f"SELECT k::VARCHAR, id, v::VARCHAR FROM {table_name}", read):
                assert sorted_rows(conn.execute(sql).fetchall()) == sorted_rows(duck.execute(sql).fetchall()), sql


@pytest.mark.sampled(one_in=5)
@pytest.mark.parametrize("type_", EXTREMES)
def test_extreme_values_are_parameters_and_keys(conn: secateur.Connection, table_name: str, type_: str) -> None:
    """Each as a text and, where Python has an object for it, as that."""
    rng = random.Random(f"{SEED} {type_} parameters")
    with duckdb.connect() as duck:
        duck.execute("SET TimeZone = 'UTC'")
        create = f"CREATE TABLE {table_name} (k {type_} PRIMARY KEY, n INTEGER)"
        duck.execute(create)
        conn.execute(f"{create} PARTITION BY HASH (k) PARTITIONS 16")
        rows = ", ".join(f"({literal(text)}::{type_}, {number})" for number, text in enumerate(EXTREMES[type_]))
        for each in (conn, duck):
            each.execute(f"INSERT INTO {table_name} VALUES {rows}")
        for number, text in enumerate(EXTREMES[type_]):
            ((value, shown),) = duck.execute(
                f"SELECT k, k::VARCHAR FROM {table_name} WHERE k = {literal(text)}::{type_}"
            ).fetchall()
            has_object = (type(value) is not str or type_ == "VARCHAR") and "infinity" not in text
            if has_object:
                key = value.astimezone(UTC) if type_ == "TIMESTAMPTZ" else value
                conn.table(table_name).put((value, number))
                assert conn.table(table_name).get(value) == (key, number)
            for given in (shown, value) if has_object else (shown,):
                for condition in rng.sample(CONDITIONS_OF_PARAMETERS, 3):
                    sql = f"SELECT n FROM {table_name} WHERE {condition.format(type=type_)}"
                    params = {"key": given} if "$key" in sql else [given]
                    try:
                        expected = sorted_rows(duck.execute(sql, params).fetchall())
                    except duckdb.Error:
                        continue
                    assert sorted_rows(conn.execute(sql, params).fetchall()) == expected, f"{sql} with {given!r}"
        assert "partitions" in str(conn.explain(f"SELECT n FROM {table_name} WHERE k = $1::{type_}"))


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("DATE", "infinity"),
        ("DATE", "0044-03-15 (BC)"),
        ("TIMESTAMP", "10000-01-01"),
        ("TIMESTAMP", "-infinity"),
        ("TIMESTAMPTZ", "infinity"),
    ],
)
def test_days_and_instants_beyond_python_are_written_in_every_form(
    conn: secateur.Connection, table_name: str, type_: str, text: str
) -> None:
    columns = f"k {type_}, id INTEGER, v {type_}[], PRIMARY KEY (k, id)"
    conn.execute(f"CREATE TABLE {table_name} ({columns}) PARTITION BY HASH (k) PARTITIONS 8")
    insert = f"INSERT INTO {table_name} VALUES ({type_} '{text}', ?, ['{text}'])"
    assert "execution: local" in str(conn.explain(insert, [0]))
    conn.cursor().executemany(insert, [[number] for number in range(5)])
    conn.execute(insert, [5])
    conn.execute(f"INSERT INTO {table_name} VALUES ('2024-01-01', 6, ['{text}'])")
    with pytest.raises(DuplicateKeyError, match=r"k=-?(infinity|004[34]|10000)"):
        conn.execute(insert, [5])
    conn.execute("SET pruning = verify")  # which compares rows in any order
    assert conn.execute(f"UPDATE {table_name} SET v = [k] WHERE k = {type_} '{text}'").rowcount == 6
    assert conn.execute(f"SELECT k, id, v FROM {table_name}").fetch_arrow_table().num_rows == 7
