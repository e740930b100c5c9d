"""Every type of SQL has one encoding in JSON, which parameters have too."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

VALUES = [
    ("TRUE", True),
    ("9007199254740993::BIGINT", 9007199254740993),
    ("18446744073709551615::UBIGINT", 18446744073709551615),
    ("10000000000000000000000000000000000000::HUGEINT", "10000000000000000000000000000000000000"),
    ("1::HUGEINT", "1"),
    ("12.50::DECIMAL(10, 2)", "12.50"),
    ("0.1::DOUBLE", 0.1),
    ("'nan'::DOUBLE", "NaN"),
    ("'inf'::DOUBLE", "Infinity"),
    ("'-inf'::FLOAT", "-Infinity"),
    ("DATE '2024-01-31'", "2024-01-31"),
    ("TIME '12:30:00.5'", "12:30:00.500000"),
    ("TIMESTAMP '2024-01-31 12:00:00.000001'", "2024-01-31T12:00:00.000001"),
    ("TIMESTAMPTZ '2024-01-31 12:00:00+02'", "2024-01-31T10:00:00Z"),
    ("INTERVAL '1 day 2 seconds'", "P1DT2S"),
    ("INTERVAL '-1 second'", "-P0DT1S"),
    ("'8f14e45f-ceea-467f-a8f5-5b8fd0e8c1a2'::UUID", "8f14e45f-ceea-467f-a8f5-5b8fd0e8c1a2"),
    ("'\\x00\\xFF'::BLOB", "AP8="),
    ("'snow \u2603'", "snow \u2603"),
    ("NULL", None),
    ("[1.5::DECIMAL(3, 1), NULL]", ["1.5", None]),
    ("{'a': DATE '2024-01-31', 'b': [1]}", {"a": "2024-01-31", "b": [1]}),
    ("MAP {DATE '2024-01-31': 1::HUGEINT}", [["2024-01-31", "1"]]),
    ("MAP {[1]: 'x'}", [[[1], "x"]]),
    ("row(1, 'x')", [1, "x"]),
]
PARAMETERS = [
    ("BIGINT", 7),
    ("BLOB", "AP8="),
    ("DATE", "2024-01-31"),
    ("DECIMAL", "12.50"),
    ("DOUBLE", "NaN"),
    ("DOUBLE", 0.5),
    ("HUGEINT", "10000000000000000000000000000000000000"),
    ("INTERVAL", "-P1DT2.500000S"),
    ("TIME", "12:30:00"),
    ("TIMESTAMP", "2024-01-31T12:00:00.000001"),
    ("TIMESTAMP WITH TIME ZONE", "2024-01-31T10:00:00Z"),
    ("UUID", "8f14e45f-ceea-467f-a8f5-5b8fd0e8c1a2"),
    ("VARCHAR", "\u2603"),
    ("DATE", None),
]
WRONG = [
    {"type": "DATE", "value": "31.1.2024"},
    {"type": "DATE", "value": 5},
    {"type": "DECIMAL", "value": "many"},
    {"type": "BLOB", "value": "?"},
    {"type": "INTERVAL", "value": "P"},
    {"type": "HUGEINT", "value": 1.5},
    {"type": "TIMESTAMP", "value": "2024-01-31T10:00:00Z"},
    {"type": "GEOMETRY", "value": "x"},
    {"value": 1},
    {},
    {"type": "DATE", "value": "2024-01-31", "zone": "x"},
]


@pytest.mark.parametrize(("sql", "expected"), VALUES, ids=[sql for sql, _ in VALUES])
def test_a_value_of_a_result(http: httpx.Client, sql: str, expected: Any) -> None:
    answer = http.post("/api/v1/statements", json={"sql": f"SELECT {sql} AS a"})
    assert answer.json()["rows"] == [[expected]]


@pytest.mark.parametrize(("kind", "value"), PARAMETERS, ids=[f"{kind} {value}" for kind, value in PARAMETERS])
def test_a_parameter_comes_back_as_it_was_given(http: httpx.Client, kind: str, value: Any) -> None:
    body = {"sql": f"SELECT CAST(? AS {kind}) AS a", "params": [{"type": kind, "value": value}]}
    if kind == "DECIMAL":
        body["sql"] = "SELECT CAST(? AS DECIMAL(10, 2)) AS a"
    expected = str(value) if kind == "HUGEINT" else value
    assert http.post("/api/v1/statements", json=body).json()["rows"] == [[expected]]


@pytest.mark.parametrize("value", WRONG, ids=str)
def test_a_parameter_that_is_none_is_named(http: httpx.Client, value: Any) -> None:
    answer = http.post("/api/v1/statements", json={"sql": "SELECT ?, ?", "params": [1, value]})
    assert (answer.status_code, answer.json()["error"]) == (400, "ParameterError")
    assert "parameter 2" in answer.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"sql": "SELECT ?", "params": ["\\ud800"]}',
        b'{"sql": "SELECT $a", "params": {"\\ud800": 1}}',
        b'{"sql": "SELECT \\ud800"}',
        b'{"sql": "SELECT ?", "params": [' + b"[" * 5000 + b"]" * 5000 + b"]}",
        b'{"sql": "SELECT ?", "params": [' + b"[" * 20 + b"]" * 20 + b"]}",
        b'{"sql": "SELECT ?", "params": [' + b"9" * 400 + b"]}",
        b'{"sql": "SELECT ?", "params": [1e999]}',
        b'{"sql": "SELECT \\u0000"}',
        b'{"sql": "SELECT 1", "wait": NaN}',
        b'{"sql": ',
        b"\xff\xfe",
    ],
)
def test_hostile_json_is_the_callers_mistake(http: httpx.Client, body: bytes) -> None:
    answer = http.post("/api/v1/statements", content=body, headers={"Content-Type": "application/json"})
    if b"1e999" in body:
        assert answer.json()["rows"] == [["Infinity"]]
    else:
        assert answer.status_code in (400, 422), answer.text
        assert answer.headers["content-type"] == "application/problem+json"
