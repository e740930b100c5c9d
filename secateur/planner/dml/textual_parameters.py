"""Parameters that are values of columns whose values are texts that have to be checked, as those of JSON have.

DuckDB would make a STRUCT of a dict, and of a list one with elements of one type, which JSON does not ask for. So a
client checks and converts the value of such a parameter as it does that of a row which it loads, and its error names
the column.
"""

from __future__ import annotations

from collections import Counter

from secateur.errors import DataError
from secateur.partitioning.tables.table import Column
from secateur.partitioning.types.coerce import coerce
from secateur.partitioning.types.column_type import TEXTUAL, TypeKind
from secateur.planner.dml.row_changes import Change
from secateur.planner.text.positions import located
from secateur.protocol.statements import TextualParameters


def textual_parameters(change: Change) -> TextualParameters:
    """Find the parameters that stand for themselves as a value of such a column, and nowhere else; check literals.

    Raises:
        DataError: A literal is none of its column; with its place.
    """
    columns = {column.name: column for column in change.table.columns if column.type.contains(TEXTUAL)}
    if not columns:
        return ()
    uses = Counter(index for _, _, index in change.parameters.spans)
    found: dict[int, Column] = {}
    for name, value in change.assigned:
        column = columns.get(name)
        if column is None:
            continue
        if value.parameter is not None and uses[value.parameter] == 1:
            # A MAP comes as pairs, which are no parameter.
            if not column.type.contains({TypeKind.MAP}):
                found[value.parameter] = column
        elif value.span is not None and value.is_literal and column.type.kind in TEXTUAL:
            text = value.text(change.sql)
            if not text.startswith("'"):
                continue
            try:
                coerce(text[1:-1].replace("''", "'"), column.type, column=name)
            except DataError as error:
                raise located(DataError, error.message, change.sql, value.span.start, len(text)) from None
    return tuple(found.items())
