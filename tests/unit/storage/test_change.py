from __future__ import annotations

import pytest

from secateur.errors import ProgrammingError
from secateur.storage.change import Operation, load_mode


@pytest.mark.parametrize(
    ("text", "operation"), [("append", Operation.APPEND), ("overwrite", Operation.OVERWRITE), ("upsert", Operation.UPSERT), ("ignore", Operation.IGNORE)]
)
def test_load_modes(text: str, operation: Operation) -> None:
    assert load_mode(text) is operation


@pytest.mark.parametrize("text", ["delete", "merge", "", "APPEND"])
def test_anything_else_is_no_mode(text: str) -> None:
    with pytest.raises(ProgrammingError, match="use 'append', 'overwrite', 'upsert' or 'ignore'"):
        load_mode(text)
