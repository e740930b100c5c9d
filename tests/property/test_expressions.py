"""Expressions of parameters: what a client computes when it binds a plan is what DuckDB computes, or is not known."""

from __future__ import annotations

import os
import random
import string
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import pytest
from msgspec.structs import replace

from bound_plans import BoundPlans, NotPlainError
from secateur.duckdb_expressions import complete
from secateur.partitioning.pruning import UNKNOWN, Evaluated, Operand
from secateur.partitioning.pruning.operand import resolve_operand
from secateur.partitioning.types import SqlType, parse_type
from secateur.planner.prune.operands import operand_of, sql_as_bound
from secateur.planner.tree import Unprintable
from secateur.planner.tree import relations as rel
from secateur.protocol import decode, encode

WORLDS = int(os.environ.get("SECATEUR_PRUNING_WORLDS", "1"))
EXPRESSIONS_PER_WORLD = 60
BINDINGS = 6

TYPES = [
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UBIGINT",
    "VARCHAR",
    "DATE",
    "TIMESTAMP",
    "BOOLEAN",
    "UUID",
    "DECIMAL(10, 2)",
    "DOUBLE",
]
UNITS = ["microsecond", "second", "minute", "hour", "day", "days", "week", "month", "months", "quarter", "year"]
EDGES = [
    0,
    1,
    -1,
    9,
    10,
    127,
    128,
    -128,
    255,
    256,
    32767,
    2**31 - 1,
    -(2**31),
    2**31,
    2**53,
    2**63 - 1,
    -(2**63),
    2**63,
    10**18,
]
TEXTS = [
    *[
        "",
        " ",
        "a",
        "Ab",
        " pad ",
        "\tx",
        "C2",
        "ß",
        "é",
        "İ",
        "12",
        "-7",
        "+5",
        " 12",
        "1.5",
        "007",
        "1e3",
        "true",
        "TRUE",
        "f",
        "x\x00y",
        str(UUID(int=77)),
    ],
    *[
        "2024-02-29",
        "2024-2-9",
        "2023-02-29",
        "2024-01-31 12:30:00",
        "2024-01-31T00:00:00",
        "2024-01-31 24:00:00",
        "infinity",
        "0001-01-01",
        "9999-12-31",
    ],
]
DAYS = [date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29), date(2024, 1, 31), date(1969, 12, 31), date(2023, 11, 30)]
LITERALS = {
    "int": ["1", "3", "-5", "NULL"],
    "text": ["'x'", "'ab'", "upper('q')"],
    "day": ["DATE '2024-01-31'", "TIMESTAMP '2024-02-29 12:00:00'"],
}
ONE = {
    "int": ["abs", "length", "len", "coalesce", "-"],
    "text": ["upper", "lower", "ucase", "lcase", "trim", "ltrim", "rtrim", "reverse"],
    "day": ["coalesce"],
}


def value(rng: random.Random, kind: str) -> Any:
    """Mostly of the kind that is wanted, so that something comes out, and sometimes of any other."""
    if rng.random() < 0.15:
        kind = rng.choice(["int", "text", "day", "bool", "none", "decimal", "float", "uuid", "bytes"])
    match kind:
        case "int":
            return rng.choice([rng.randint(-20, 40), rng.randint(0, 5), rng.choice(EDGES)])
        case "text":
            return rng.choice(
                [rng.choice(TEXTS), "".join(rng.choice(string.printable[:95]) for _ in range(rng.randint(0, 6)))]
            )
        case "day":
            moment = datetime(2024, 1, 31, 23, 59, 59, rng.choice([0, 0, 500000, 123456])) + timedelta(
                days=rng.randint(-500, 500), seconds=rng.randint(0, 86399)
            )
            return rng.choice([rng.choice(DAYS), moment.date(), moment])
        case "bool":
            return rng.random() < 0.5
        case "decimal":
            return rng.choice([Decimal("1.50"), Decimal("2"), Decimal("-7.25"), Decimal("12345678901234567890.5")])
        case "float":
            return rng.choice([1.0, 2.5, -3.0, 1e300, 0.1])
        case "uuid":
            return UUID(int=rng.getrandbits(128))
        case "bytes":
            return b"\x00a"
        case _:
            return None


class Expressions:
    """Random expressions, and values for their parameters."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.kinds: list[str] = []

    def params(self) -> list[Any]:
        return [value(self.rng, kind) for kind in self.kinds]

    def expression(self, depth: int, kind: str) -> str:
        rng = self.rng
        if rng.random() < 0.05:
            kind = rng.choice(["int", "text", "day"])
        if depth == 0:
            if rng.random() < 0.7:
                self.kinds.append(kind)
                return "?"
            return rng.choice(
                {
                    "int": ["1", "3", "-5", "NULL"],
                    "text": ["'x'", "'ab'", "upper('q')"],
                    "day": ["DATE '2024-01-31'", "TIMESTAMP '2024-02-29 12:00:00'"],
                }[kind]
            )

        def part(kind: str) -> str:
            return self.expression(depth - 1, kind)

        form = rng.choice(["cast", "one", "one", "two", "two", "three"])
        if form == "cast":
            wanted = (
                {"int": TYPES[:5], "text": ["VARCHAR"], "day": ["DATE", "TIMESTAMP"]}[kind]
                if rng.random() < 0.8
                else TYPES
            )
            return (
                f"{rng.choice(['CAST', 'CAST', 'TRY_CAST'])}({part(rng.choice(['int', 'text', 'text', kind]))} AS"
                f" {rng.choice(wanted)})"
            )
        if form == "one":
            name = rng.choice(ONE[kind])
            return f"{name}({part('text' if name.startswith('len') else kind)})"
        if form == "two":
            either = f"{rng.choice(['coalesce', 'ifnull', 'nullif'])}({part(kind)}, {part(kind)})"
            match kind:
                case "int":
                    return rng.choice([either, f"({part('int')} {rng.choice('+-*%')} {part('int')})"])
                case "text":
                    function = f"{rng.choice(['left', 'right', 'substring', 'substr'])}({part('text')}, {part('int')})"
                    return rng.choice(
                        [
                            either,
                            function,
                            f"({part('text')} || {part(rng.choice(['text', 'int', 'day']))})",
                            f"concat({part('int')}, {part('text')})",
                        ]
                    )
                case _:
                    amount = rng.choice(["1", "13", "-2", f"({part('int')})"])
                    moved = [
                        f"INTERVAL {amount} {rng.choice(UNITS)}",
                        f"INTERVAL '{rng.randint(-3, 20)} {rng.choice(UNITS)}'",
                        part("int"),
                    ]
                    return rng.choice(
                        [
                            either,
                            f"date_trunc('{rng.choice(UNITS)}', {part('day')})",
                            f"({part('day')} {rng.choice('+-')} {rng.choice(moved)})",
                        ]
                    )
        match kind:
            case "int":
                return f"coalesce({part('int')}, {part('int')}, {part('int')})"
            case "text":
                return rng.choice(
                    [
                        f"substring({part('text')}, {part('int')}, {part('int')})",
                        f"replace({part('text')}, {part('text')}, {part('text')})",
                        f"lpad({part('text')}, {part('int')}, {part('text')})",
                    ]
                )
            case _:
                return f"make_date({part('int')}, {part('int')}, {part('int')})"


def type_of(found: Any) -> SqlType:
    """A column type beside which a value of this class is compared as it is."""
    if isinstance(found, Decimal):
        return parse_type(f"DECIMAL(38, {-int(found.as_tuple().exponent)})")
    return parse_type(
        {bool: "BOOLEAN", int: "BIGINT", str: "VARCHAR", date: "DATE", datetime: "TIMESTAMP", UUID: "UUID"}.get(
            type(found), "VARCHAR"
        )
    )


@pytest.mark.parametrize("seed", range(WORLDS))
def test_what_is_known_is_what_duckdb_says(seed: int) -> None:
    rng = random.Random(seed)
    duck, plans = duckdb.connect(), BoundPlans()
    duck.execute("SET TimeZone = 'UTC'")
    known = 0
    for _ in range(EXPRESSIONS_PER_WORLD):
        expressions = Expressions(rng)
        text = expressions.expression(rng.randint(1, 3), rng.choice(["int", "text", "day"]))
        # A branch that was tried and not taken has left its parameters behind.
        del expressions.kinds[text.count("?") :]
        sample = expressions.params()
        try:
            plan = plans.plan(f"SELECT {text}", sample)
            assert isinstance(plan, rel.LogicalProject)
            (expression,) = plan.expressions
            operand, sql = operand_of(expression), sql_as_bound(expression)
        except (NotPlainError, Unprintable):
            continue
        if not isinstance(operand, Evaluated):
            continue
        operand = replace(decode(encode(operand), Operand), index=len(sample))
        for params in [sample, *(expressions.params() for _ in range(BINDINGS))]:
            if any(type(value) is not type(own) for value, own in zip(params, sample, strict=True)):
                continue
            given = {str(index + 1): params[index] for index in operand.parameters}
            try:
                ((expected,),) = duck.execute(f"SELECT {sql}", given).fetchall()
            except (duckdb.Error, OverflowError, ValueError):
                # An error is not compared: the statement itself will raise it, wherever it runs.
                continue
            for found in (
                resolve_operand(replace(operand, index=-1), params, type_of(expected)),
                resolve_operand(operand, complete(params, [operand]), type_of(expected)),
            ):
                if found is not UNKNOWN:
                    known += 1
                    shown = f"seed {seed}: {sql} of {params!r} is {expected!r}, computed {found!r}"
                    assert found == expected, shown
                    assert type(found) is type(expected), shown
    assert known >= EXPRESSIONS_PER_WORLD // 2, "too little was computed for the test to mean anything"
