from __future__ import annotations

import contextlib
import struct
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.errors import LimitExceededError, ProtocolError, SerializationError
from secateur.protocol import pack, unpack

SAME = [
    None,
    True,
    -(2**63),
    2**64 - 1,
    2**64,
    -(2**63) - 1,
    -(2**127),
    2**127 - 1,
    1.5,
    float("inf"),
    "",
    "żółć 🌱",
    b"\x00\xff",
    [1, [2, None]],
    {"a": {"b": [1]}},
    {1: "integer keys"},
    date(1, 1, 1),
    date(1969, 12, 31),
    date(9999, 12, 31),
    time(0),
    time(23, 59, 59, 999_999),
    datetime(1, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999_999),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    timedelta.max,
    timedelta.min,
    timedelta(microseconds=-1),
    Decimal("1.50"),
    Decimal("-0E+5"),
    Decimal("1E-30"),
    UUID("c0ffee00-0000-4000-8000-00000000beef"),
]


@pytest.mark.parametrize("value", SAME, ids=repr)
def test_a_value_comes_back_as_it_was(value: object) -> None:
    got = unpack(pack(value))
    assert got == value
    assert type(got) is type(value)
    assert repr(got) == repr(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param((1, (2,)), [1, [2]], id="tuples become lists"),
        pytest.param(np.int8(-3), -3, id="int8"),
        pytest.param(np.uint64(2**64 - 1), 2**64 - 1, id="uint64"),
        pytest.param(np.float32(0.5), 0.5, id="float32"),
        pytest.param(np.bool_(True), True, id="bool"),
        pytest.param(np.str_("x"), "x", id="str"),
        pytest.param(np.datetime64("2024-01-01"), date(2024, 1, 1), id="datetime64[D]"),
        pytest.param(
            np.datetime64("2024-01-01T00:00:00.000001", "us"), datetime(2024, 1, 1, 0, 0, 0, 1), id="datetime64[us]"
        ),
        pytest.param(
            np.datetime64("2024-01-01T00:00:00.000001000", "ns"), datetime(2024, 1, 1, 0, 0, 0, 1), id="datetime64[ns]"
        ),
        pytest.param(np.datetime64("NaT", "us"), None, id="NaT"),
        pytest.param(np.timedelta64(5, "ns"), timedelta(0), id="timedelta64[ns]"),
        pytest.param(np.timedelta64(5, "s"), timedelta(seconds=5), id="timedelta64[s]"),
        pytest.param(
            datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))),
            datetime(2023, 12, 31, 23, tzinfo=UTC),
            id="a zone becomes UTC",
        ),
        pytest.param(
            datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
            datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))),
            id="beyond the year 9999 in UTC",
        ),
        pytest.param(
            datetime.min.replace(tzinfo=timezone(timedelta(hours=23, minutes=59))),
            datetime.min.replace(tzinfo=timezone(timedelta(hours=23, minutes=59))),
            id="before the year 1 in UTC",
        ),
        pytest.param(bytearray(b"ab"), b"ab", id="bytearray"),
        pytest.param(memoryview(b"ab"), b"ab", id="memoryview"),
    ],
)
def test_a_value_becomes_the_plain_one(value: object, expected: object) -> None:
    got = unpack(pack(value))
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    ("value", "part"),
    [
        pytest.param(object(), "builtins.object does not travel", id="object"),
        pytest.param([{"x": {1, 2}}], "builtins.set does not travel", id="set inside"),
        pytest.param(time(1, tzinfo=UTC), "a time of day with a zone", id="time with zone"),
        pytest.param("\ud800", "surrogates not allowed", id="lone surrogate"),
        pytest.param(np.zeros(2), "numpy.ndarray does not travel", id="ndarray"),
    ],
)
def test_what_does_not_travel_is_named(value: object, part: str) -> None:
    with pytest.raises(SerializationError, match=part):
        pack(value)
    assert unpack(pack("the packer works afterwards")) == "the packer works afterwards"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xc1", id="a byte that msgpack never uses"),
        pytest.param(b"\x92\x01", id="cut short"),
        pytest.param(b"\x01\x02", id="two values"),
        pytest.param(b"\xa1\xff", id="not UTF-8"),
        pytest.param(b"\x91" * 5000, id="deep"),
        pytest.param(b"\x81\x90\x01", id="an unhashable key"),
        pytest.param(msgpack.packb(msgpack.ExtType(99, b"x")), id="unknown extension"),
        pytest.param(msgpack.packb(msgpack.ExtType(1, b"x")), id="a date of one byte"),
        pytest.param(msgpack.packb(msgpack.ExtType(1, b"\xff" * 7 + b"\x7f")), id="a date past the calendar"),
        pytest.param(msgpack.packb(msgpack.ExtType(4, b"\xff" * 7 + b"\x7f")), id="a timestamp past the calendar"),
        pytest.param(msgpack.packb(msgpack.ExtType(5, b"one")), id="a decimal of letters"),
        pytest.param(msgpack.packb(msgpack.ExtType(6, b"short")), id="a short uuid"),
        pytest.param(msgpack.packb(msgpack.ExtType(7, b"\xff" * 9 + b"\x7f")), id="an interval past the range"),
    ],
)
def test_bytes_that_are_no_value_are_an_error(data: bytes) -> None:
    with pytest.raises(ProtocolError, match=f"{len(data)} bytes"):
        unpack(data)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        unpack(data)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates()
    | st.times()
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC))
    | st.timedeltas()
    | st.builds(
        Decimal, st.tuples(st.integers(0, 1), st.lists(st.integers(0, 9), max_size=40).map(tuple), st.integers(-40, 40))
    )
    | st.uuids(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@given(PLAIN)
def test_law_unpack_undoes_pack(value: object) -> None:
    assert unpack(pack(value)) == value


@given(PLAIN)
def test_law_what_was_unpacked_packs_into_the_same_bytes(value: object) -> None:
    """The id of a plan is a digest of its bytes, and whoever gets it has to come to the same."""
    packed = pack(value)
    assert pack(unpack(packed)) == packed


def _array(count: int, element: bytes) -> bytes:
    return b"\xdd" + struct.pack(">I", count) + element * count


@pytest.mark.parametrize(
    "element",
    [
        pytest.param(b"\x90", id="lists"),
        pytest.param(b"\x80", id="maps"),
        pytest.param(b"\x91\x90", id="lists in lists"),
        pytest.param(b"\xd4\x08\x00", id="extension types"),
    ],
)
def test_small_bytes_that_become_large_are_refused_early(element: bytes) -> None:
    data = _array(4, _array(3_900_000 // len(element), element))
    with pytest.raises(LimitExceededError, match="1,000,000 lists, maps and special values"):
        unpack(data)


def test_elements_are_counted_over_all_lists() -> None:
    with pytest.raises(LimitExceededError, match="8,000,000 elements"):
        unpack(_array(9, _array(1_000_000, b"\xc0")))
    with pytest.raises(LimitExceededError, match="8,000,000 elements"):
        unpack(_array(8_000_001, b"\xc0"))


def test_many_values_that_a_statement_may_have_are_read() -> None:
    values = {
        "params": [[Decimal(number), date(2024, 1, 1)] for number in range(50_000)],
        "ids": list(range(1_000_000)),
        "s": "x" * 100_000,
    }
    assert unpack(pack(values)) == values
