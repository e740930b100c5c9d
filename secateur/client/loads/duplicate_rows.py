"""Finds the rows that have a key which a load may not have, so that its error names them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import DuplicateKeyError

_LOOKED_AT_MAX: Final = 100_000
"""Rows whose values are compared one by one, in some tenths of a second."""


def with_rows_of_key(error: DuplicateKeyError, rows: pa.Table, columns: Sequence[str]) -> DuplicateKeyError:
    """The error with the numbers of the first two rows that have its key, counted from 1, as far as they are found.

    Args:
        error: A member's; its ``details`` have the key.
        rows: All rows of the load, in the order in which the caller gave them.
        columns: The columns of the key.
    """
    key: list[Any] = error.details.get("key") or []
    if len(key) != len(columns):
        return error
    found = pc.is_valid(rows.column(columns[0]))
    for name, value in zip(columns, key, strict=True):
        kind = rows.schema.field(name).type
        if pa.types.is_integer(kind) or pa.types.is_string(kind):
            found = pc.and_(found, pc.equal(rows.column(name), value))
    numbers = pc.indices_nonzero(found)
    with suppress(OverflowError, ValueError):  # a date that Python has not
        candidates = rows.select(list(columns)).take(numbers.slice(0, _LOOKED_AT_MAX)).to_pylist()
        same = [
            number.as_py() + 1
            for number, row in zip(numbers, candidates, strict=False)
            if all(text in (str(given), repr(given)) for text, given in zip(map(str, key), row.values(), strict=True))
        ][:2]
        if same:
            where = f"row {same[0]}" if len(same) == 1 else f"rows {same[0]} and {same[1]}"
            return DuplicateKeyError(f"{error.message}: {where}", **error.details, row=same[-1])
    return error
