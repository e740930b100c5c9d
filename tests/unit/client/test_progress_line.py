"""The line of a load."""

from __future__ import annotations

import pytest

from secateur.client.loads import progress_line


def test_it_is_written_over_and_erased(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_line("orders", 2000, True) as report:
        assert report is not None
        report(1000)
        report(2000)
    said = capsys.readouterr()
    assert said.out == ""
    first, half, full, last = said.err.split("\r\x1b[K")[1:]
    assert first.startswith(f"orders: [{' ' * 30}] 0 of 2,000 rows")
    assert half.startswith(f"orders: [{'#' * 15}{' ' * 15}] 1,000 of 2,000 rows, ")
    assert full.startswith(f"orders: [{'#' * 30}] 2,000 of 2,000 rows, ")
    assert last == ""


def test_without_their_number_rows_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_line("orders", None, True) as report:
        assert report is not None
        report(1000)
    assert "orders: 1,000 rows, " in capsys.readouterr().err


@pytest.mark.parametrize("show", [False, None, print])
def test_nothing_is_written_otherwise(show: object, capsys: pytest.CaptureFixture[str]) -> None:
    with progress_line("orders", None, show) as report:  # type: ignore[arg-type]
        assert report is (show or None)
    assert capsys.readouterr().err == ""
