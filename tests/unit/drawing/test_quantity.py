"""Numbers with units, at the borders between these."""

from __future__ import annotations

import pytest

from secateur.drawing import byte_text, count_text, duration_text


@pytest.mark.parametrize(("count", "text"), [(0, "0 rows"), (1, "1 row"), (1234567, "1,234,567 rows")])
def test_count(count: int, text: str) -> None:
    assert count_text(count, "row") == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 KB"),
        (999_949, "999.9 KB"),
        (999_950, "1.0 MB"),
        (12_345_678_901, "12.3 GB"),
        (5 * 10**15, "5,000.0 TB"),
    ],
)
def test_bytes(count: int, text: str) -> None:
    assert byte_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 µs"),
        (0.000_012, "12 µs"),
        (0.000_999_4, "999 µs"),
        (0.000_999_6, "1.0 ms"),
        (0.25, "250.0 ms"),
        (0.999_96, "1.0 s"),
        (4321.0, "4,321.0 s"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
