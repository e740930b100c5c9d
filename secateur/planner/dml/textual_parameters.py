"""Parameters that are values of columns whose values are texts that have to be checked, as those of JSON have.

DuckDB would make a STRUCT of a dict, and of a list one with elements of one type, which JSON does not ask for. So a
client checks and converts the value of such a parameter as it does that of a row which it loads, and its error names
the column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from secateur.errors import DataError
from secateur.partitioning.tables.table import Column, TableDef
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import TEXTUAL, TypeKind
from secateur.planner.text.parameters import Parameters
from secateur.planner.text.positions import located
from secateur.planner.text.token_cursor import TextSpan
from secateur.protocol.statements import TextualParameters

_LITERAL: Final = re.compile(r"'(?:[^']|'')*'", re.DOTALL)


def textual_parameters(
    table: TableDef, assigned: Iterable[tuple[str, TextSpan | None]], parameters: Parameters
) -> TextualParameters:
    """Find the parameters that stand for themselves as a value of such a column, and nowhere else.

    Args:
        table: The table that the statement changes.
        assigned: The name of a column and the place of its value, for each value of the statement.
        parameters: Those of the statement.
    """
    # A MAP comes as pairs, which are no parameter.
    columns = {
        column.name: column
        for column in table.columns
        if column.type.contains(TEXTUAL) and not column.type.contains({TypeKind.MAP})
    }
    if not columns:
        return ()
    uses = Counter(index for _, _, index in parameters.spans)
    index_of = {(start, end): index for start, end, index in parameters.spans if uses[index] == 1}
    found: dict[int, Column] = {}
    for name, span in assigned:
        index = None if span is None else index_of.get((span.start, span.end))
        if index is not None and name in columns:
            found[index] = columns[name]
    return tuple(found.items())


def check_literals(sql: str, table: TableDef, assigned: Iterable[tuple[str, TextSpan | None]]) -> None:
    """Check the literals that are a value of such a column.

    Raises:
        DataError: One is none of its column; with its place.
    """
    types = {column.name: column.type for column in table.columns if column.type.kind in TEXTUAL}
    for name, span in assigned if types else ():
        text = "" if span is None or name not in types else sql[span.start : span.end]
        if span is None or _LITERAL.fullmatch(text) is None:
            continue
        try:
            coerce(text[1:-1].replace("''", "'"), types[name], column=name)
        except DataError as error:
            raise located(DataError, error.message, sql, span.start, len(text)) from None
