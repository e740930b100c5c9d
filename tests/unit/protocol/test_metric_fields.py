"""A field that is a metric says what it counts once: in its annotation, which docstrings and ``/metrics`` read."""

from __future__ import annotations

import inspect

import pytest

from secateur.protocol import Counter, Gauge, MemberInfo, MemberStats, TenantHour, decode, encode, metrics_of


@pytest.mark.parametrize(
    ("row", "field", "kind", "name"),
    [
        pytest.param(MemberInfo, "rows", Gauge, "", id="a gauge"),
        pytest.param(MemberInfo, "bytes", Gauge, "table_bytes", id="another name than the column"),
        pytest.param(MemberInfo, "executions", Counter, "", id="a counter that the base declares"),
        pytest.param(TenantHour, "processor_ms", Counter, "processor_seconds", id="a time"),
    ],
)
def test_an_annotation_is_found_by_its_field(row: type, field: str, kind: type[Gauge], name: str) -> None:
    found = metrics_of(row)[field]
    assert (type(found), found.name) == (kind, name)


def test_a_field_without_an_annotation_is_no_metric() -> None:
    assert {"id", "state", "draining", "serving"}.isdisjoint(metrics_of(MemberInfo))
    assert {"tenant", "hour", "rows", "latencies"}.isdisjoint(metrics_of(TenantHour))


@pytest.mark.parametrize("row", [MemberInfo, TenantHour])
def test_the_docstring_has_every_field(row: type[MemberInfo | TenantHour]) -> None:
    listed = [line.strip().partition(":")[0] for line in (inspect.getdoc(row) or "").splitlines()]
    assert set(row.__struct_fields__) <= set(listed)
    assert "meaning" not in str(inspect.signature(row))


def test_messages_with_annotated_fields_travel() -> None:
    stats = MemberStats(executions=1, serving="native", running_jobs=2)
    assert decode(encode(stats), MemberStats) == stats
    hour = TenantHour("a", 3600, statements=2, processor_ms=1.5, bytes_sent=3)
    assert decode(encode(hour), TenantHour) == hour
