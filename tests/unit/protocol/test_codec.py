"""Messages as bytes and back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pyarrow as pa
import pytest

from secateur.errors import LimitExceededError, ProtocolError, SerializationError
from secateur.protocol import Execute, Failure, Operation, Since, StageRows, decode, encode, operation_of, pack

VALUES: list[Any] = [
    date(2024, 1, 1),
    datetime(2024, 1, 1, 12),
    Decimal("1.50"),
    UUID(int=5),
    2**100,
    b"x",
    None,
    [1, "a"],
]


ROWS = pa.table({"a": [1, None], "b": ["x", "y"]})


@dataclass(frozen=True)
class Columns:
    """Arrow's types as fields, some of a struct."""

    schema: pa.Schema | None
    rows: pa.Table
    value: Any = None


class Nested(msgspec.Struct, frozen=True):
    """Values below a field with a name."""

    parts: dict[str, Any]


class Listed(msgspec.Struct, frozen=True, array_like=True):
    """A value beside a struct and a type that the packer of values does not know."""

    columns: Columns | None
    inner: Nested | None
    value: Any


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(Execute("p", VALUES, pruning=True), id="values in a list of fields"),
        pytest.param(Execute("p", [], True, since=Since("m", [0], 7, [(1, 2)])), id="a struct in a list of fields"),
        pytest.param(Listed(Columns(None, ROWS), None, VALUES), id="a dataclass in a list of fields"),
        pytest.param(Listed(None, Nested({"a": VALUES}), VALUES), id="values of a struct in a list of fields"),
        pytest.param(Nested({"a": VALUES, "b": {"c": VALUES}}), id="values anywhere"),
        pytest.param(StageRows("l", 1, 0, [(0, 5), (1, 0)], are_keys=True), id="plain fields"),
        pytest.param(Columns(ROWS.schema, ROWS, VALUES), id="a dataclass with Arrow values"),
        pytest.param(Columns(None, ROWS), id="a dataclass without a schema"),
        pytest.param(Failure("DataError", "m", {"at": Decimal("1.5")}), id="an error with its details"),
    ],
)
def test_a_message_comes_back_as_it_was(message: object) -> None:
    assert decode(encode(message), type(message)) == message


def test_fields_that_are_not_known_are_skipped_and_missing_ones_have_their_default() -> None:
    data = pack({"load_id": "l", "table_id": 1, "attempt": 0, "parts": [], "of a newer version": [{"x": 1}]})
    assert decode(data, StageRows) == StageRows("l", 1, 0, [])


def test_what_does_not_travel_is_named() -> None:
    with pytest.raises(SerializationError, match=r"builtins\.object does not travel"):
        encode(Execute("p", [object()], True))


def test_a_message_that_would_become_too_many_objects_is_refused_before_it_is_any() -> None:
    count = 0x1F0000
    data = b"\x81\xa5parts\x81\xa1x\xdd" + count.to_bytes(4, "big") + b"\x90" * count
    with pytest.raises(LimitExceededError, match="lists, maps and special values"):
        decode(data, Nested)


def test_bytes_that_are_no_message_name_the_type() -> None:
    with pytest.raises(ProtocolError, match="StageRows cannot be read: Object missing required field `load_id`"):
        decode(b"\x80", StageRows)
    with pytest.raises(ProtocolError, match="1 bytes that should be StageRows are not"):
        decode(b"\xc1", StageRows)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"schema": b"x", "rows": b""}, "1 bytes should be an Arrow schema and are not", id="a schema"),
        pytest.param({"schema": None, "rows": b"x"}, "should be an Arrow IPC stream and is not", id="a table"),
        pytest.param({"schema": 7, "rows": b""}, "Columns cannot be read", id="no bytes"),
    ],
)
def test_bytes_that_are_no_arrow_value_are_a_protocol_error(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        decode(pack(fields), Columns)


def test_a_request_belongs_to_one_operation_that_knows_its_reply() -> None:
    assert operation_of(StageRows("l", 1, 0, [])) is Operation.STAGE_ROWS
    assert Operation.STAGE_ROWS.reply is not None
    assert Operation.START_RUN.reply is None
