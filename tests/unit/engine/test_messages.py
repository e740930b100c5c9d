"""The messages of a job in their frames."""

from __future__ import annotations

import re
from typing import Any

import pytest

from secateur.errors import DataError, ProtocolError
from secateur.protocol import (
    MEMBER_OPERATIONS,
    CancelRun,
    CreditRows,
    EndRun,
    ExchangeRows,
    Failure,
    InputMetrics,
    MessagesLost,
    Notice,
    OutputMetrics,
    RowsPiece,
    StartRun,
    TaskletMetrics,
    VertexMetrics,
    decode,
    encode,
    operation_of,
    pack,
)
from secateur.tracing import TraceContext

METRICS = VertexMetrics(
    "v",
    "m1",
    1,
    2,
    3,
    4,
    5,
    6,
    0.5,
    7,
    0.25,
    (TaskletMetrics(0, 2, 3, 7, 4, 5, 6, 0.5, 0.25),),
    (InputMetrics("e", 2, 3, 7, 1, 9, 0.25),),
    (OutputMetrics("f", 4, 5, 6),),
)


@pytest.mark.parametrize(
    "notice",
    [
        pytest.param(StartRun("j", "m1"), id="start"),
        pytest.param(StartRun("j", "m1", TraceContext("00-1f-2e-01", "vendor=1")), id="start in a trace"),
        pytest.param(
            ExchangeRows("j", "m1", 2, 7, (RowsPiece((0, 3), 10, 80), RowsPiece((1,), 0, 1)), True), id="exchange"
        ),
        pytest.param(CreditRows("j", "m1", 2, 4096), id="credit"),
        pytest.param(EndRun("j", "m1", None, [METRICS]), id="end"),
        pytest.param(CancelRun("j", "m1", Failure.of(DataError("too large", column="c"))), id="cancellation"),
        pytest.param(MessagesLost("m1"), id="messages lost"),
    ],
)
def test_round_trip(notice: Notice) -> None:
    assert operation_of(notice) in MEMBER_OPERATIONS.values()
    assert decode(encode(notice), type(notice)) == notice


def test_errors_keep_class_message_and_details() -> None:
    notice = EndRun("j", "m1", Failure.of(DataError("too large", column="c")), [])
    failure = decode(encode(notice), EndRun).failure
    assert failure is not None
    error = failure.to_error()
    assert (type(error), str(error), error.details) == (DataError, "too large", {"column": "c"})


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        pytest.param(StartRun, ["j"], "Expected `array` of at least length 2", id="no sender"),
        pytest.param(ExchangeRows, ["j", "m1", "x", 0, [], False], "Expected `int`, got `str`", id="edge is text"),
        pytest.param(
            ExchangeRows, ["j", "m1", 1, 0, [5], False], "Expected `array`, got `int`", id="piece is a number"
        ),
        pytest.param(ExchangeRows, ["j", "m1", 1, 0, [[[0], -1, 5]], False], "Expected `int` >= 0", id="negative"),
        pytest.param(ExchangeRows, ["j", "m1", 1, 0, [["a", 1, 5]], False], "Expected `array`, got `str`", id="text"),
        pytest.param(
            EndRun,
            {"job": "j", "sender": "m1", "failure": 5, "metrics": []},
            "Expected `object | null`, got `int`",
            id="failure is a number",
        ),
        pytest.param(
            EndRun,
            {"job": "j", "sender": "m1", "failure": None, "metrics": [[1]]},
            "metrics",
            id="metrics that are none",
        ),
    ],
)
def test_what_is_not_ours_is_a_protocol_error(kind: type[Notice], data: Any, message: str) -> None:
    with pytest.raises(ProtocolError, match=re.escape(message)):
        decode(pack(data), kind)
