"""Statements and parts of queries of the dialect that a cluster does not support, each with a replacement."""

from __future__ import annotations

from typing import Final

from secateur.errors import NotSupportedError
from secateur.partitioning.types.sql_text import folded
from secateur.planner.text.positions import located
from secateur.planner.text.syntax import DESCRIPTIONS, QUERIES, Syntax, ctes_of, nodes_of

STATEMENTS: Final = {
    "PRAGMA": "use DESCRIBE, SHOW, SET or the tables of information_schema",
    "USE": "there is one schema of tables, main, which need not be written",
    **dict.fromkeys(
        ("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"), "each statement is a transaction of its own"
    ),
    **dict.fromkeys(("ATTACH", "DETACH"), "members see no other databases"),
    **dict.fromkeys(("INSTALL", "FORCE"), "members load no extensions"),
    "LOAD": "members load no extensions; rows are loaded with conn.table(name).load",
    "EXPORT": "read the tables and write files on the client",
    "IMPORT": "load the rows with conn.table(name).load",
    "CALL": "write SELECT * FROM the function",
    **dict.fromkeys(
        ("PREPARE", "EXECUTE", "DEALLOCATE"),
        "it is a whole text of execute(): PREPARE name AS SELECT ..., without types of parameters; EXECUTE name(1)",
    ),
    "CHECKPOINT": "tables are in memory",
}
"""First words of statements that are not supported, and what to do instead."""

WORDS: Final = frozenset({"with", "show", "describe", "desc", "summarize"})
"""Words, folded, without which a text has no refused part other than calls of functions."""


def refuse_parts(syntax: Syntax, text: str) -> None:
    """Refuse parts that would have another meaning in the kernel.

    Raises:
        NotSupportedError: Names the part and its position.
    """
    for node in nodes_of(syntax.node):
        if node.get("type") == "SHOW_REF" and "query" not in node:
            token = next(token for token in syntax.tokens if token.word in DESCRIPTIONS)
            message = "SHOW inside of a query is not supported: read secateur.tables"
            raise located(NotSupportedError, message, text, token.start, len(token.text))
        for name, body in ctes_of(node):
            if body["type"] not in QUERIES:
                token = next(token for token in syntax.tokens if folded(token.text) == name)
                message = (
                    f"{body['type'].partition('_')[0]} in a common table expression is not supported: send it as a"
                    " statement of its own, with RETURNING"
                )
                raise located(NotSupportedError, message, text, token.start, len(token.text))
