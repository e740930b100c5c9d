"""Widths of texts, and what is cut off."""

from __future__ import annotations

import pytest

from secateur.drawing.text_fit import columns_of, fit, fit_lines, printable


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        pytest.param("", 0, id="empty"),
        pytest.param("scan", 4, id="ascii"),
        pytest.param("größe", 5, id="latin"),
        pytest.param("表格", 4, id="wide"),
        pytest.param("e\u0301", 1, id="combining"),
        pytest.param("a\u200bb", 2, id="zero-width"),
    ],
)
def test_columns(text: str, columns: int) -> None:
    assert columns_of(text) == columns


@pytest.mark.parametrize(
    ("text", "columns_max", "fitted"),
    [
        pytest.param("scan", 4, "scan", id="just-fits"),
        pytest.param("scans", 4, "sca…", id="one-too-many"),
        pytest.param("表格名", 4, "表…", id="a-wide-character-is-not-halved"),
        pytest.param("表格", 4, "表格", id="wide-fits"),
    ],
)
def test_fit(text: str, columns_max: int, fitted: str) -> None:
    assert fit(text, columns_max) == fitted
    assert columns_of(fitted) <= columns_max


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a b", "a b", id="as-it-is"),
        pytest.param("a\nb\tc", "a b c", id="white-space-becomes-a-space"),
        pytest.param("a\x00b\x1b", "a\ufffdb\ufffd", id="control"),
        pytest.param("\ud800", "\ufffd", id="half-a-pair"),
        pytest.param("\uffff", "\ufffd", id="no-character"),
        pytest.param("🌿 größe", "🌿 größe", id="unicode"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        pytest.param(0, (), id="none"),
        pytest.param(3, ("l0", "l1", "l2"), id="just-fit"),
        pytest.param(4, ("l0", "l1", "and 2 more"), id="one-too-many"),
    ],
)
def test_fit_lines(count: int, shown: tuple[str, ...]) -> None:
    assert fit_lines([f"l{number}" for number in range(count)], 3) == shown
