"""Law: whatever join the arrow kernel answers, DuckDB answers the same: values, types, column names.

Relations have keys of every kind with NULLs and duplicates, few rows or some hundred, so that each way to leave out
rows of a side has its turn: none, the scan of a key, and the binary search in a relation that is in order of it. A
failure prints the seed and the statement. Sizes grow with ``SECATEUR_PROPERTY_FACTOR``, and ``SECATEUR_SEED`` says
where the seeds begin.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from secateur.engine.kernels import Fragment
from secateur.engine.kernels.arrow import ArrowFragment
from secateur.engine.kernels.arrow import kernel as arrow_kernel
from secateur.engine.kernels.duckdb import DuckDBKernel
from secateur.errors import Error
from secateur.partitioning.types import parse_type
from secateur.planner.arrow import JoinInput, arrow_form
from secateur.planner.binding import Unreadable, bind_to_plan
from secateur.protocol import decode, encode

STATEMENTS = int(10 * float(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1")))
FIRST_SEED = int(os.environ.get("SECATEUR_SEED", "0"))
TYPES = {
    "i": "INTEGER",
    "b": "BIGINT",
    "h": "HUGEINT",
    "ub": "UBIGINT",
    "k": "VARCHAR",
    "m": "DECIMAL(10,2)",
    "day": "DATE",
    "clock": "TIME",
    "ts": "TIMESTAMP",
    "atz": "TIMESTAMP WITH TIME ZONE",
    "raw": "BLOB",
    "u": "UUID",
    "flag": "BOOLEAN",
    "d": "DOUBLE",
    "v": "INTEGER",
}
SCHEMA = {name: parse_type(text) for name, text in TYPES.items()}
KEYS = ["i", "b", "h", "ub", "k", "m", "day", "clock", "ts", "atz", "raw", "u", "flag"]
ORDERS = ["i", "b", "ub", "k", "day", "ts", "atz"]
NAMES = ["x", "y", "z"]


@pytest.fixture(scope="module")
def duckdb_kernel() -> Iterator[DuckDBKernel]:
    kernel = DuckDBKernel(threads=2)
    yield kernel
    kernel.close()


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + 4))
def test_both_kernels_join_alike(duckdb_kernel: DuckDBKernel, seed: int) -> None:
    rng = random.Random(seed)
    answered = 0
    for number in range(STATEMENTS):
        statement = JoinStatement(rng)
        spread = rng.choice([3, 12, 12, 40, 400])
        relations = {f"s{n}": relation(rng, statement.orders.get(f"s{n}"), spread) for n in range(statement.relations)}
        case = f"seed {seed}, statement {number}: {statement.sql} {statement.params!r} {statement.orders}"
        schemas = dict.fromkeys(relations, SCHEMA)
        try:
            columns = duckdb_kernel.describe(statement.sql, schemas, statement.params)
        except Error:
            continue  # what was drawn has no meaning
        fragment = compiled(duckdb_kernel, statement, columns)
        if fragment is None:
            continue
        assert decode(encode(fragment), ArrowFragment) == fragment, case
        answer = arrow_kernel.run(fragment, relations, statement.params)
        if answer is None:
            continue
        answered += 1
        whole = Fragment.over(statement.sql, schemas, columns)
        expected = duckdb_kernel.run(
            whole.sql, relations, statement.params, names=whole.column_names, casts=whole.casts
        )
        answer.validate(full=True)
        assert answer.schema.equals(expected.schema), case
        assert rows_of(answer) == rows_of(expected), case
    assert answered > STATEMENTS / 3, "too few statements reach the arrow kernel for this test to say anything"


def compiled(
    kernel: DuckDBKernel, statement: JoinStatement, columns: tuple[tuple[str, str], ...]
) -> ArrowFragment | None:
    relations = [f"s{number}" for number in range(statement.relations)]
    plan = bind_to_plan(kernel, statement.sql, dict.fromkeys(relations, SCHEMA), statement.params)
    if isinstance(plan, Unreadable):
        return None
    inputs = {name: JoinInput(statement.orders.get(name), name == statement.restricted) for name in relations}
    form = arrow_form(plan.root, plan.text, columns, inputs)
    return form if isinstance(form, ArrowFragment) else None


def rows_of(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True)))


def relation(rng: random.Random, order: str | None, spread: int) -> pa.Table:
    """Some rows with so many different keys at most; perhaps in chunks that are each in order of one column."""
    count = rng.choice([0, 1, 5, 20, 40, 90, 300, 3_000 if spread == 400 else 200])
    rows = [
        {name: None if name != order and rng.random() < 0.1 else value(name, rng.randrange(spread)) for name in TYPES}
        for _ in range(count)
    ]
    cuts = sorted(rng.randrange(count + 1) for _ in range(rng.choice([0, 0, 1, 3])))
    chunks = []
    for start, stop in zip([0, *cuts], [*cuts, count], strict=True):
        part = rows[start:stop]
        if order is not None:
            part.sort(key=lambda row: row[order].encode() if order == "k" else row[order])
        chunks.append(pa.table({name: column(name, [row[name] for row in part]) for name in TYPES}))
    return pa.concat_tables(chunks)


def column(name: str, values: list[Any]) -> pa.Array:
    type_ = SCHEMA[name].arrow
    if name == "u":
        return pa.ExtensionArray.from_storage(type_, pa.array(values, pa.binary(16)))
    return pa.array(values, type_)


def value(name: str, number: int) -> Any:
    match name:
        case "k":
            return ["", "a", "A", "é", "z\U0001f600", "a\x00"][number] if number < 6 else f"k{number}"
        case "m":
            return Decimal(number - 20) / 4
        case "h":
            return Decimal(number) * (10**20 if number % 2 else 1)
        case "ub":
            return number + (2**63 if number % 3 else 0)
        case "day":
            return dt.date(1969, 12, 1) + dt.timedelta(days=number)
        case "clock":
            return dt.time(number % 24, 0, 0, number // 24)
        case "ts":
            return dt.datetime(1969, 12, 31) + dt.timedelta(hours=number)
        case "atz":
            return dt.datetime(1969, 12, 31, tzinfo=dt.UTC) + dt.timedelta(hours=number)
        case "raw":
            return bytes([number % 256, number // 256])
        case "u":
            return uuid.UUID(int=number << 64).bytes
        case "flag":
            return number % 2 == 0
        case "d":
            return number / 4
        case _:
            return number - 2


class JoinStatement:
    """A random SELECT over two or three relations, or one relation twice, with its parameters."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.params: list[Any] = []
        self.relations = rng.choice([2, 2, 3])
        self.orders: Mapping[str, str] = {
            f"s{n}": rng.choice(ORDERS) for n in range(self.relations) if rng.random() < 0.6
        }
        self.restricted = rng.choice(["", "s0", "s1"])
        self.sql = self._select()

    def _select(self) -> str:
        rng, visible = self.rng, [0]
        text, where = "s0 AS x", []
        if rng.random() < 0.6:
            where.append(self._condition(0))
        for number in range(1, self.relations):
            kind = rng.choice(["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN", ",", "exists", "in"])
            keys = [self._equality(rng.choice(visible), number) for _ in range(rng.choice([1, 1, 1, 2]))]
            others = [self._condition(number)] if rng.random() < 0.4 else []
            if rng.random() < 0.25:
                others.append(self._between(rng.choice(visible), number))
            conditions = " AND ".join([*keys, *others])
            name = NAMES[number]
            if kind in ("exists", "in"):
                negated = "NOT " if kind == "exists" and rng.random() < 0.4 else ""
                if kind == "exists":
                    where.append(f"{negated}EXISTS (SELECT 1 FROM s{number} AS {name} WHERE {conditions})")
                else:
                    key = rng.choice(KEYS)
                    rest = f" WHERE {' AND '.join(others)}" if others else ""
                    where.append(f"{NAMES[visible[0]]}.{key} IN (SELECT {name}.{key} FROM s{number} AS {name}{rest})")
                continue
            if kind == ",":
                text += f", s{number} AS {name}"
                where.append(conditions)
            elif rng.random() < 0.15 and visible == [0]:
                text += f" {kind} s{number} AS {name} USING ({rng.choice(KEYS)})"
            else:
                text += f" {kind} s{number} AS {name} ON {conditions}"
            if kind in ("JOIN", "LEFT JOIN", ","):
                visible.append(number)
                if rng.random() < 0.2:
                    where.append(rng.choice([self._condition(number), f"{name}.v IS NULL"]))
        filtered = f" WHERE {' AND '.join(where)}" if where else ""
        return self._outputs(visible, f" FROM {text}{filtered}")

    def _outputs(self, visible: list[int], rest: str) -> str:
        rng = self.rng
        columns = [f"{NAMES[rng.choice(visible)]}.{rng.choice(list(TYPES))}" for _ in range(rng.randint(1, 4))]
        named = [f"{text} AS c{position}" for position, text in enumerate(columns)]
        draw = rng.random()
        if draw < 0.25:
            aggregates = [
                "count(*)",
                f"sum({NAMES[visible[-1]]}.v)",
                f"min({NAMES[visible[-1]]}.k)",
                f"count({columns[0]})",
            ]
            chosen = ", ".join(rng.sample(aggregates, rng.randint(1, 3)))
            key = f"x.{rng.choice(KEYS)}"
            return rng.choice([f"SELECT {chosen}{rest}", f"SELECT {key}, {chosen}{rest} GROUP BY {key}"])
        if draw < 0.4:
            return f"SELECT DISTINCT {', '.join(named)}{rest}"
        ordered = f" ORDER BY {', '.join(columns)} LIMIT {rng.randint(0, 9)}" if draw > 0.85 else ""
        return f"SELECT {', '.join(named)}{rest}{ordered}"

    def _equality(self, left: int, right: int) -> str:
        rng = self.rng
        if rng.random() < 0.15:
            return f"{NAMES[left]}.i = {NAMES[right]}.b"
        ordered = self.orders.get(f"s{right}")
        key = ordered if ordered is not None and rng.random() < 0.5 else rng.choice(KEYS)
        sides = [f"{NAMES[left]}.{key}", f"{NAMES[right]}.{key}"]
        rng.shuffle(sides)
        return " = ".join(sides)

    def _between(self, left: int, right: int) -> str:
        return f"{NAMES[left]}.v {self.rng.choice(['<', '>=', '<>'])} {NAMES[right]}.v"

    def _condition(self, number: int) -> str:
        rng, name = self.rng, NAMES[number]
        if rng.random() < 0.3:
            self.params.append(rng.randrange(40))
            return f"{name}.v {rng.choice(['=', '<', '>'])} ${len(self.params)}"
        return rng.choice(
            [
                f"{name}.k LIKE 'k%'",
                f"{name}.flag",
                f"{name}.b < 20",
                f"{name}.day IS NOT NULL",
                f"{name}.i IN (1, 2, 3)",
            ]
        )
