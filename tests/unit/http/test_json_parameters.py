"""Parameters in JSON are the same values on the other side."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, time, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from secateur.errors import ParameterError
from secateur.http import json_parameters, parameters_of

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**127), 2**127)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
    | st.from_regex(r"-?[0-9]{1,38}\.[0-9]{1,10}", fullmatch=True).map(Decimal)
    | st.dates()
    | (st.times() | st.datetimes() | st.datetimes(timezones=st.just(UTC))).map(lambda moment: moment.replace(fold=0))
    | st.timedeltas(timedelta(days=-999_999), timedelta(days=999_999))
    | st.uuids()
)
KEYS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.integers(), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy
@given(st.lists(VALUES, max_size=4) | st.dictionaries(KEYS, VALUES, max_size=3))
def test_they_are_the_same_on_the_other_side(params: Any) -> None:
    text = msgspec.json.encode(json_parameters(params))
    found = parameters_of(json.loads(text))
    assert found == params
    assert repr(found) == repr(params)


def test_values_that_json_lacks_are_named_by_their_type() -> None:
    params = [math.nan, 2**63, Decimal("1.50"), date(2024, 1, 31), {"a": b"\x00"}, {1: "x"}]
    assert json_parameters(params) == [
        {"type": "DOUBLE", "value": "NaN"},
        {"type": "HUGEINT", "value": str(2**63)},
        {"type": "DECIMAL", "value": "1.50"},
        {"type": "DATE", "value": "2024-01-31"},
        {"type": "STRUCT", "value": {"a": {"type": "BLOB", "value": "AA=="}}},
        {"type": "MAP", "value": [[1, "x"]]},
    ]


@pytest.mark.parametrize(
    "param",
    [
        {"type": "STRUCT", "value": [1]},
        {"type": "STRUCT", "value": 1},
        {"type": "MAP", "value": {"a": 1}},
        {"type": "MAP", "value": [1]},
        {"type": "MAP", "value": [[1, 2], [{"type": "BIGINT", "value": "1"}, 3]]},
        {"type": "MAP", "value": [[1, 2, 3]]},
        {"type": "MAP", "value": [[[1], 2]]},
        {"type": "MAP", "value": [[{"type": "STRUCT", "value": {}}, 2]]},
        {"type": "struct", "value": {"a": 1}},
        {"type": "STRUCT", "value": {"a": {}}},
        {"type": "STRUCT", "value": {"\ud800": 1}},
    ],
)
def test_a_struct_or_map_of_another_form_is_refused(param: Any) -> None:
    with pytest.raises(ParameterError, match="parameter 1"):
        parameters_of([param])


def test_depth_has_a_bound() -> None:
    nested: Any = 1
    for _ in range(40):
        nested = {"type": "STRUCT", "value": {"a": nested}}
    with pytest.raises(ParameterError):
        parameters_of([nested])


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        ("TIME", "01:02:03.1234567", "it has a fraction of a microsecond"),
        ("TIMESTAMP", "2024-01-01T00:00:00.1234567", "it has a fraction of a microsecond"),
        ("TIMESTAMP WITH TIME ZONE", "2024-01-01T00:00:00.1234567Z", "it has a fraction of a microsecond"),
        ("DOUBLE", "1e400", "it is too large for the type"),
    ],
)
def test_a_value_that_would_change_is_refused(kind: str, text: str, reason: str) -> None:
    with pytest.raises(ParameterError, match=f"parameter 1: '{text}' is no {kind} .{reason}"):
        parameters_of([{"type": kind, "value": text}])


def test_zeros_behind_the_microseconds_are_read() -> None:
    assert parameters_of([{"type": "TIME", "value": "01:02:03.123456000"}]) == [time(1, 2, 3, 123456)]
