"""One conversion: a value is stored as the same value, whatever carries it in, or refused, and never as another one.

Each value comes as a Python object and in every layout of Arrow, of pandas and of polars; DuckDB converts the Python
object, bound as a parameter, on its own. ``SECATEUR_SEED`` draws other values, ``SECATEUR_PROPERTY_FACTOR`` more.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from secateur.client.loads import as_table
from secateur.errors import DataError, NotSupportedError
from secateur.partitioning.types import array_of, cast_column, cast_to_arrow, column_of, parse_type

SEED = int(os.environ.get("SECATEUR_SEED", "20261127"))
DRAWS = 60 * int(os.environ.get("SECATEUR_PROPERTY_FACTOR", "1"))

TYPES = [
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    *("FLOAT", "DOUBLE", "DECIMAL(4,1)", "DECIMAL(10,2)", "DECIMAL(18,6)", "DECIMAL(38,0)", "DECIMAL(38,10)"),
    *("VARCHAR", "BLOB", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "INTERVAL", "UUID"),
    *("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
]
BERLIN = timezone(timedelta(hours=2))


def _integer(chance: random.Random) -> int:
    width = chance.choice([1, 7, 8, 15, 16, 31, 32, 53, 54, 63, 64, 100])
    return chance.choice([1, -1]) * (2**width + chance.choice([-1, 0, 1]))


def _decimal(chance: random.Random) -> Decimal:
    digits = chance.choice([1, 3, 4, 9, 15, 17, 30])
    sign, scale = chance.choice([1, -1]), chance.choice([0, 1, 2, 6, 8])
    return Decimal(f"{sign * chance.randrange(10**digits)}E-{scale}")


def _float(chance: random.Random) -> float:
    return chance.choice(
        [
            *(0.0, -0.0, 0.1, 19.99, 0.57, 1.115, 1e22, 1e23, 2.0**53, 2.0**63, 1e300, float("inf"), float("nan")),
            chance.randrange(10**6) / 100,
            float(chance.randrange(10**9)),
            chance.random(),
        ]
    )


def _moment(chance: random.Random) -> datetime:
    found = datetime(1970, 1, 1) + timedelta(
        days=chance.randrange(-(10**5), 10**5), microseconds=chance.choice([0, 0, 1, 5 * 3600 * 10**6])
    )
    return found.replace(tzinfo=chance.choice([None, UTC, BERLIN]))


DRAWN: dict[str, Callable[[random.Random], Any]] = {
    "bool": lambda chance: chance.random() < 0.5,
    "int": _integer,
    "small int": lambda chance: chance.randrange(-2, 3),
    "Decimal": _decimal,
    "float": _float,
    "number text": lambda chance: str(chance.choice([_integer, _decimal])(chance)),
    "text": lambda chance: chance.choice(["", " ", "a", "ä\U0001f600", "true", "f", "1e3", "1.10", "NaN", "infinity"]),
    "bytes": lambda chance: chance.choice([b"", b"\x00\xff", bytes(16)]),
    "date": lambda chance: _moment(chance).date(),
    "date text": lambda chance: _moment(chance).date().isoformat(),
    "datetime": _moment,
    "datetime text": lambda chance: _moment(chance).replace(tzinfo=None).isoformat(" "),
    "time": lambda chance: chance.choice([time(), time(23, 59, 59, 999999), time(5, 6, 7)]),
    "timedelta": lambda chance: timedelta(days=chance.randrange(-5, 5), microseconds=chance.randrange(10**9)),
    "UUID": lambda chance: UUID(int=chance.getrandbits(128)),
}


def layouts(value: Any) -> dict[str, Any]:
    """Columns of Arrow, pandas and polars whose only value is this one, as far as they can hold it."""
    found: dict[str, Any] = {}

    def add(name: str, make: Callable[[], Any]) -> None:
        try:
            column = make()
        except Exception:  # the library has no column of such values
            return
        found[name] = column

    add("arrow", lambda: pa.chunked_array([pa.array([value])]))
    plain = found.get("arrow")
    if plain is not None:
        add("slice", lambda: pa.chunked_array([pa.concat_arrays([*plain.chunks, *plain.chunks]).slice(1)]))
        add("dictionary", lambda: plain.dictionary_encode())
        add("run ends", lambda: pa.chunked_array([pc.run_end_encode(plain.chunk(0))]))
    match value:
        case str():
            add("large", lambda: pa.chunked_array([pa.array([value], pa.large_string())]))
            add("view", lambda: pa.chunked_array([pa.array([value], pa.string_view())]))
            views = pa.array([value], pa.string_view())
            add("view dictionary", lambda: pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array([0]), views)]))
            add("category", lambda: as_table(pd.DataFrame({"v": pd.Series([value], dtype="category")})).column(0))
            add(
                "categorical", lambda: as_table(pl.DataFrame({"v": pl.Series([value], dtype=pl.Categorical)})).column(0)
            )
        case bytes():
            add("large", lambda: pa.chunked_array([pa.array([value], pa.large_binary())]))
            add("view", lambda: pa.chunked_array([pa.array([value], pa.binary_view())]))
        case float():
            add("numpy", lambda: as_table({"v": np.array([value])}).column(0))
        case Decimal():
            add("wide", lambda: pa.chunked_array([pa.array([value], pa.decimal256(70, 20))]))
        case datetime():
            add("nanoseconds", lambda: pa.chunked_array([pa.array([value], pa.timestamp("ns"))]))
    if not (isinstance(value, float) and value != value):  # NULL for pandas
        add("pandas", lambda: as_table(pd.DataFrame({"v": [value]})).column(0))
        add("objects", lambda: as_table(pd.DataFrame({"v": pd.Series([value], dtype=object)})).column(0))
    add("polars", lambda: as_table(pl.DataFrame({"v": [value]}, strict=True)).column(0))
    return found


def outcome(make: Callable[[], Any]) -> Any:
    """What is stored, as Arrow's scalar; None for a value that is refused."""
    try:
        made = make()
    except DataError:
        return None
    (chunk,) = made.chunks if isinstance(made, pa.ChunkedArray) else (made,)
    chunk.validate(full=True)
    return chunk[0]


def is_same(left: Any, right: Any) -> bool:
    """Bit for bit, with NaN equal to NaN."""
    return bool(left.type == right.type and pa.array([left]).equals(pa.array([right]))) or repr(left) == repr(right)


@pytest.fixture(scope="module")
def duck() -> Any:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@pytest.mark.parametrize("source", DRAWN)
def test_each_carrier_stores_the_same_value_or_none(duck: Any, source: str) -> None:
    chance = random.Random(f"{SEED} {source}")
    stored: list[tuple[str, Any, Any]] = []
    for number in range(DRAWS):
        value, type_ = DRAWN[source](chance), TYPES[number % len(TYPES)]
        kind = parse_type(type_)
        expected = outcome(lambda value=value, kind=kind: column_of([value], kind, name="v"))
        if expected is not None:
            stored.append((type_, value, expected))
        for layout, column in layouts(value).items():
            found = outcome(lambda column=column, kind=kind: cast_column(column, kind, name="v"))
            where = f"SECATEUR_SEED={SEED}: {value!r} as {layout} ({column.type}) for {type_}"
            if (found is None) != (expected is None):
                assert _may_differ(value, column.type, kind), f"{where}: {found} instead of {expected}"
                continue
            assert found is None or is_same(found, expected), f"{where}: {found} instead of {expected}"
    _compare(duck, stored)


def _may_differ(value: Any, given: pa.DataType, wanted: Any) -> bool:
    """Whether a library has made another kind of value of it: decimals round to floats, whole numbers do not."""
    return isinstance(value, int) and pa.types.is_decimal(given) and wanted.is_float


def _compare(duck: Any, stored: list[tuple[str, Any, Any]]) -> None:
    """What is stored is what DuckDB makes of the same Python value, exactly."""
    for type_, value, found in stored:
        text = f"SELECT CAST(? AS {type_}) AS v"
        # DuckDB takes a Python float for a DOUBLE and an int for the narrowest integer, as the dialect does.
        (theirs,) = duck.execute(text, [value]).fetchone()
        ours = found.as_py()
        if isinstance(theirs, float) and isinstance(ours, float):
            # A decimal beyond 2^53 is DuckDB's to round, and it rounds twice.
            assert ours == pytest.approx(theirs, rel=1e-15, nan_ok=True), (type_, value, ours, theirs)
        elif type_ == "INTERVAL":
            assert theirs == value
        elif isinstance(theirs, datetime) and theirs.tzinfo is not None:
            assert ours == theirs.astimezone(UTC), (type_, value, ours, theirs)
        elif isinstance(value, float) and abs(value) >= 2**53 and isinstance(ours, Decimal):
            assert float(ours) == value  # DuckDB scales in floats, and rounds on the way
        else:
            assert ours == theirs, (type_, value, ours, theirs)


FORMS = [
    *(pa.int64(), pa.int16(), pa.uint8(), pa.float64(), pa.float32(), pa.float16(), pa.decimal128(10, 2)),
    *(pa.decimal256(60, 5), pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()),
    *(pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC")),
    *(pa.time32("s"), pa.time64("us"), pa.time64("ns"), pa.bool_(), pa.duration("us"), pa.uuid()),
    *(pa.dictionary(pa.int32(), pa.string()), pa.list_(pa.int64()), pa.null()),
]


@pytest.mark.parametrize("source", DRAWN)
def test_a_type_of_the_users_own_holds_the_value_or_refuses_it(source: str) -> None:
    chance = random.Random(f"{SEED} {source} form")
    for number in range(DRAWS):
        value, form = DRAWN[source](chance), FORMS[number % len(FORMS)]
        where = f"SECATEUR_SEED={SEED}: {value!r} as {form}"
        made = outcome(lambda value=value, form=form: array_of([value], form, name="v"))
        if made is not None:
            assert made.type == form, where
            assert _is_value(made.as_py(), value), f"{where}: {made}"
        try:
            column = pa.array([value])
        except (pa.ArrowException, OverflowError):
            continue
        cast = outcome(lambda column=column, form=form: cast_to_arrow(column, form, name="v"))
        assert cast is None or _is_value(cast.as_py(), value), f"{where}: {cast}"


def _is_value(found: Any, value: Any) -> bool:
    """Whether a value that was read back says no less than the one that was given."""
    if isinstance(value, str) or isinstance(found, (str, list)):
        return isinstance(value, str)  # what a text spells is the other test's matter
    if isinstance(value, float) and value != value:
        return bool(found != found)
    if isinstance(found, (float, np.floating)):  # a FLOAT or DOUBLE is the nearest one
        return float(found) == pytest.approx(float(value), rel=1e-3, abs=1e-7)
    if isinstance(value, float) and isinstance(found, Decimal):
        return float(found) == value
    if isinstance(found, UUID):
        return found.bytes == value if isinstance(value, bytes) else found == value
    if isinstance(value, date) and isinstance(found, date):
        return _in_utc(found) == _in_utc(value)
    return bool(found == value)


def _in_utc(value: date) -> datetime:
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def test_rows_of_values_of_several_types_keep_each() -> None:
    """What nobody has said the type of is of a type that holds all of it, or refused."""
    chance = random.Random(SEED)
    for _ in range(DRAWS):
        values = [DRAWN[chance.choice(list(DRAWN))](chance) for _ in range(chance.choice([1, 2, 3]))]
        try:
            column = as_table([{"v": value} for value in values]).column(0)
        except (DataError, NotSupportedError):
            continue
        for found, value in zip(column.to_pylist(), values, strict=True):
            assert _is_value(found, value), f"SECATEUR_SEED={SEED}: {values} became {column.to_pylist()}"


def test_dates_beside_points_in_time_keep_the_time(duck: Any) -> None:
    rows = [{"ts": date(2024, 1, 1)}, {"ts": datetime(2024, 1, 2, 5)}]
    assert as_table(rows).column("ts").to_pylist() == [datetime(2024, 1, 1), datetime(2024, 1, 2, 5)]


def test_every_price_as_a_double_is_its_decimal() -> None:
    prices = np.arange(100_000) / 100
    found = cast_column(pa.array(prices), parse_type("DECIMAL(10,2)"), name="price")
    assert found.equals(
        pa.chunked_array([pa.array([Decimal(cents).scaleb(-2) for cents in range(100_000)], pa.decimal128(10, 2))])
    )
    back = cast_column(found, parse_type("DOUBLE"), name="price")
    assert back.to_numpy().tolist() == prices.tolist()
