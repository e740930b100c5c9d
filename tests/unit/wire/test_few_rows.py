from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import pyarrow as pa
import pytest

from secateur.errors import ProtocolError
from secateur.protocol import pack
from secateur.wire import SHORT_ROWS_MAX, ShortTable, decode_rows, encode_rows, has_few_rows

EVERY_VALUE = [
    [True, None],
    [2**64 - 1, -(10**37)],
    [1.5, float("-inf")],
    [Decimal("1.50"), None],
    ["", "żółć\0"],
    [b"", b"\xff"],
    [date(1, 1, 1), date(9999, 12, 31)],
    [time(23, 59, 59, 999_999), None],
    [datetime(1, 1, 1), datetime(2024, 2, 29, 1, 2, 3, 4)],
    [datetime(2024, 1, 1, tzinfo=UTC), None],
    [UUID(int=1), None],
]


def test_plain_values_come_back() -> None:
    payload = encode_rows(ShortTable(EVERY_VALUE, 2))
    assert has_few_rows(payload)
    assert decode_rows(memoryview(payload)) == ShortTable(EVERY_VALUE, 2)


def test_arrow_comes_back_as_arrow() -> None:
    table = pa.table({"a": [1, None], "b": ["x", "y"]})
    payload = encode_rows(table)
    assert not has_few_rows(payload)
    assert decode_rows(payload).equals(table)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xc1", id="nothing behind the first byte"),
        pytest.param(b"\xc1" + pack([[1], [2]])[:-1], id="cut off"),
        pytest.param(b"\xc1" + pack([[1], [2]]) + b"\x00", id="more than a value"),
        pytest.param(b"\xc1" + pack([]), id="no column"),
        pytest.param(b"\xc1" + pack({"a": [1]}), id="a map"),
        pytest.param(b"\xc1" + pack([1, 2]), id="no lists"),
        pytest.param(b"\xc1" + pack([[1], [1, 2]]), id="columns of two lengths"),
        pytest.param(b"\xc1" + pack([[0] * (SHORT_ROWS_MAX + 1)]), id="too many rows"),
        pytest.param(b"\xc1" + b"\xd4\x63\x00", id="an unknown extension type"),
    ],
)
def test_anything_else_is_refused(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_rows(payload)
