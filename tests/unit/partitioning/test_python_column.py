"""Python values that an INSERT takes without a cast by DuckDB are what DuckDB's cast makes of them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest

from secateur.errors import DataError
from secateur.partitioning.types import as_they_stand, canonical_as_it_stands, parse_type

INTEGERS = (0, 1, -1, 2**24, 2**24 + 1, -(2**53), 2**53 + 1, 10**8, 99_999_999, 2**63 - 1, -(2**63), 10**30)
REALS = (0.0, -0.0, 0.1, 3.4028235e38, 3.4028236e38, 1e39, 1e-46, float("inf"))


def integer(draw: random.Random) -> int:
    return draw.choice(INTEGERS) + (draw.randrange(-3, 4) if draw.random() < 0.5 else 0)


def real(draw: random.Random) -> float:
    bits: float = struct.unpack("d", struct.pack("Q", draw.getrandbits(64)))[0]
    return draw.choice((*REALS, bits, draw.gauss(0, 1e6)))


def instant(draw: random.Random) -> datetime:
    zone = draw.choice((UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-11)), None))
    return datetime(draw.randrange(2, 9999), 3, 31, draw.randrange(24), 59, 59, draw.randrange(10**6), tzinfo=zone)


def text(draw: random.Random) -> str:
    """A text of a day, a time or an instant: most are valid, and some are written as few would."""

    def number(least: int, most: int, width: int = 2) -> str:
        return f"{draw.randrange(least, most + 1):0{draw.choice([width] * 12 + [1, width + 1])}}"

    day = f"{number(0, 9999, 4)}-{number(1, 12)}-{number(1, 31)}"
    fraction = draw.choice(["", "", f".{number(0, 999, 3)}", ".5", ".000001", ".123456789", ".", ",5"])
    clock = f"{number(0, 24)}:{number(0, 59)}:{number(0, 60)}{fraction}"
    zone = draw.choice(["", "", "Z", "+00", "-07", "+05:30", "+0530", " UTC", "+14:00", "-23:59", "+25", "z"])
    usual = [day, clock, f"{day} {clock}", f"{day}T{clock}", f"{day} {clock}{zone}", f"{day}T{clock}{zone}"]
    others = [f" {day}", f"{day} ", "infinity", "epoch", "", f"{day} (BC)", f"{day} {clock[:5]}", day.replace("-", "/")]
    return draw.choice([*usual, *others])


def uuid_text(draw: random.Random) -> str:
    made = str(UUID(int=draw.getrandbits(128)))
    return draw.choice([made, made.upper(), made.replace("-", ""), f"{{{made}}}", made[1:], f" {made}", "g" + made[1:]])


VALUES: dict[str, Callable[[random.Random], Any]] = {
    "FLOAT": lambda draw: draw.choice((real, integer))(draw),
    "DOUBLE": lambda draw: draw.choice((real, integer))(draw),
    "DECIMAL(10,2)": integer,
    "DECIMAL(38,0)": integer,
    "HUGEINT": integer,
    "UUID": lambda draw: UUID(int=draw.getrandbits(128)),
    "TIME": lambda draw: time(draw.randrange(24), 0, 59, draw.randrange(10**6)),
    "TIMESTAMP WITH TIME ZONE": instant,
    "BIGINT": integer,
    "VARCHAR": lambda draw: draw.choice(("", "ü", "5")),
    "TIMESTAMP": instant,
    "INTEGER": lambda draw: draw.choice((True, 1.0, Decimal(1), "1", 2**31)),
}


TEXTS = {
    **{f"text as {kind}": (kind, text) for kind in ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")},
    "text as UUID": ("UUID", uuid_text),
}


@pytest.mark.parametrize(("text", "value_of"), [*VALUES.items(), *TEXTS.values()], ids=[*VALUES, *TEXTS])
def test_what_is_taken_is_what_a_cast_makes(text: str, value_of: Callable[[random.Random], Any]) -> None:
    draw, type_, taken = random.Random(text), parse_type(text), 0
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for _ in range(1000 if value_of is text else 300):
        value = value_of(draw)
        column = as_they_stand([value, None], type_)
        try:
            canonical = canonical_as_it_stands(value, type_)
        except DataError:
            assert column is None, value
            continue
        taken += 1
        assert column is not None, value
        assert column.type == type_.arrow
        connection.register("given", pa.table({"v": column}))
        query = f"SELECT CAST(CAST(? AS {text}) AS VARCHAR), (SELECT CAST(v AS {text})::VARCHAR FROM given LIMIT 1)"
        expected, found = connection.execute(query, [value]).fetchall()[0]
        assert found == expected, (value, canonical)
        connection.unregister("given")
    assert taken or text == "INTEGER"
