from __future__ import annotations

import pytest

from secateur.errors import ProgrammingError
from secateur.storage import ChangeOperation, load_mode


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("append", ChangeOperation.APPEND),
        ("overwrite", ChangeOperation.OVERWRITE),
        ("upsert", ChangeOperation.UPSERT),
        ("ignore", ChangeOperation.IGNORE),
    ],
)
def test_load_modes(text: str, operation: ChangeOperation) -> None:
    assert load_mode(text) is operation


@pytest.mark.parametrize("text", ["delete", "merge", "", "APPEND"])
def test_anything_else_is_no_mode(text: str) -> None:
    with pytest.raises(ProgrammingError, match="use 'append', 'overwrite', 'overwrite_ranges', 'upsert' or 'ignore'"):
        load_mode(text)
