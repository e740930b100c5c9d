from __future__ import annotations

import io
import json
from typing import Any

import pytest

from secateur.cli import OutputFormat, write_rows


class Rows:
    """A cursor whose rows come in parts, as from a cluster."""

    description = (("n", "BIGINT"), ("n", "VARCHAR"))

    def __init__(self, count: int) -> None:
        self._left = [(number, None if number % 2 else f'"{number}"') for number in range(count)]

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        taken, self._left = self._left[:size], self._left[size:]
        return taken


@pytest.mark.parametrize("count", [0, 1, 25_000])
def test_json_has_every_row(count: int) -> None:
    written = io.StringIO()
    assert write_rows(Rows(count), OutputFormat.JSON, into=written) == count  # type: ignore[arg-type]
    assert json.loads(written.getvalue()) == [
        {"n": number, "n_1": None if number % 2 else f'"{number}"'} for number in range(count)
    ]
