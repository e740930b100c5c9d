"""The messages of a job in their frames."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.engine.exchange import (
    OPS,
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
from secateur.engine.runtime import InputMetrics, OutputMetrics, TaskletMetrics, VertexMetrics
from secateur.errors import DataError, ProtocolError
from secateur.wire import pack, unpack

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
    header, payload = write_message(message)
    assert header["op"] in OPS
    assert read_message(unpack(pack(header)), payload) == message


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda e: JobDone("j", "m1", e, ()), id="done"),
        pytest.param(lambda e: JobCancel("j", "m1", e), id="cancel"),
    ],
)
def test_errors_keep_class_message_and_details(make: Any) -> None:
    header, payload = write_message(make(DataError("too large", column="c")))
    error = read_message(unpack(pack(header)), payload).error  # type: ignore[union-attr]
    assert (type(error), str(error), error.details) == (DataError, "too large", {"column": "c"})


@pytest.mark.parametrize(
    ("header", "message"),
    [
        pytest.param({"op": "explode", "job": "j", "from": "m1"}, "unknown op 'explode'", id="unknown op"),
        pytest.param({"job": "j", "from": "m1"}, "unknown op None", id="no op"),
        pytest.param({"op": "job_start", "from": "m1"}, "'job_start' message cannot be read", id="no job"),
        pytest.param(
            {"op": "exchange", "job": "j", "from": "m1", "edge": "x", "seq": 0, "pieces": [], "last": False},
            "cannot be read",
            id="edge is text",
        ),
        pytest.param(
            {"op": "exchange", "job": "j", "from": "m1", "edge": 1, "seq": 0, "pieces": [5], "last": False},
            "cannot be read",
            id="piece is a number",
        ),
        pytest.param(
            {"op": "exchange", "job": "j", "from": "m1", "edge": 1, "seq": 0, "pieces": [[[0], -1, 5]], "last": False},
            "cannot be read",
            id="negative",
        ),
        pytest.param(
            {"op": "exchange", "job": "j", "from": "m1", "edge": 1, "seq": 0, "pieces": [["a", 1, 5]], "last": False},
            "cannot be read",
            id="text",
        ),
        pytest.param(
            {"op": "job_done", "job": "j", "from": "m1", "failure": 5, "metrics": []},
            "cannot be read",
            id="failure is a number",
        ),
        pytest.param(
            {"op": "job_done", "job": "j", "from": "m1", "failure": None, "metrics": [[1]]},
            "cannot be read",
            id="metrics that are none",
        ),
    ],
)
def test_what_is_not_ours_is_a_protocol_error(header: dict[str, Any], message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        read_message(header, b"")
