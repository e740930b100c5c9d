"""The tests that README.md names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NAMED = sorted(set(re.findall(r"`([\w./]+\.py)::(\w+)`", (HERE / "README.md").read_text())))


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_it_exists(file: str, test: str) -> None:
    assert re.search(rf"^ *def {test}\(", (HERE / file).read_text(), re.MULTILINE)


def test_every_section_has_a_test() -> None:
    rows = [line for line in (HERE / "README.md").read_text().splitlines() if re.match(r"\| (?!section|---)", line)]
    assert len(rows) > 60
    assert all("::" in row for row in rows)
