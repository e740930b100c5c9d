"""The messages of a job in their frames."""

from __future__ import annotations

import re
from typing import Any

import pytest

from secateur.engine.exchange import (
    Credit,
    ExchangeData,
    ExchangeSlice,
    JobCancel,
    JobDone,
    JobStart,
    Message,
    read_message,
    write_message,
)
from secateur.errors import DataError, ProtocolError
from secateur.protocol import (
    MEMBER_OPERATIONS,
    EndRun,
    ExchangeRows,
    InputMetrics,
    Notice,
    OutputMetrics,
    StartRun,
    TaskletMetrics,
    VertexMetrics,
    decode,
    encode,
    operation_of,
    pack,
)

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
    "message",
    [
        pytest.param(JobStart("j", "m1", b"plan"), id="start"),
        pytest.param(
            ExchangeData("j", "m1", 2, 7, (ExchangeSlice((0, 3), 10, 80), ExchangeSlice((1,), 0, 1)), True, b"rows"),
            id="exchange",
        ),
        pytest.param(Credit("j", "m1", 2, 4096), id="credit"),
        pytest.param(JobDone("j", "m1", None, (METRICS,)), id="done"),
    ],
)
def test_round_trip(message: Message) -> None:
    notice, payload = write_message(message)
    assert operation_of(notice) in MEMBER_OPERATIONS.values()
    assert read_message(decode(encode(notice), type(notice)), payload) == message


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda e: JobDone("j", "m1", e, ()), id="done"),
        pytest.param(lambda e: JobCancel("j", "m1", e), id="cancel"),
    ],
)
def test_errors_keep_class_message_and_details(make: Any) -> None:
    notice, payload = write_message(make(DataError("too large", column="c")))
    error = read_message(decode(encode(notice), type(notice)), payload).error  # type: ignore[union-attr]
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


def test_a_notice_of_another_kind_is_no_message_of_a_job() -> None:
    with pytest.raises(ProtocolError, match="is no message of a job"):
        read_message(Notice(), b"")
