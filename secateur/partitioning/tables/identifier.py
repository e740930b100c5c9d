"""Names of tables and columns, and texts, as SQL writes and compares them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from string import ascii_lowercase, ascii_uppercase
from typing import Final

_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)


def quoted(name: str) -> str:
    """Return a name in quotation marks, as it can always be written."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """Return a text in single quotation marks."""
    return "'" + text.replace("'", "''") + "'"


def folded(name: str) -> str:
    """Return a name in the form in which names of a statement are compared.

    DuckDB ignores the case of the letters A to Z, and of no others: ``"É"`` and ``"é"`` are two columns, ``"ß"`` is not
    ``ss``. Tables and their declared columns are compared more strictly, by ``str.casefold``.
    """
    return name.lower() if name.isascii() else name.translate(_LOWER)


def told_apart(names: Iterable[str]) -> Iterator[str]:
    """Yield unique names of columns: of equal names all but the first get a number, as in ``a, a_1, a_2``.

    Source: DuckDB, which names the columns of files, views and data frames so.
    """
    taken: dict[str, int] = {}
    for name in names:
        key = folded(name)
        count = taken.get(key)
        if count is None:
            taken[key] = 0
            yield name
            continue
        while folded(f"{name}_{count + 1}") in taken:
            count += 1
        taken[key] = count + 1
        taken[folded(f"{name}_{count + 1}")] = 0
        yield f"{name}_{count + 1}"
