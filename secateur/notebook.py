"""``%load_ext secateur``: statements in the cells of a notebook, by ``%sql`` and ``%%sql``.

::

    %load_ext secateur
    conn = secateur.connect("secateur://host:port", token="...")

    %sql SELECT count(*) FROM orders WHERE customer = $customer

    %%sql
    SELECT day, sum(amount) FROM orders GROUP BY day

The connection is the variable ``conn`` of the notebook; without one, it is made as :func:`secateur.connect` does by the
environment. ``$name`` is the value of the variable of that name. The rows are shown, and are the value of ``%sql``: a
cursor, from which they can still be fetched.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

from secateur.client.connect import connect
from secateur.client.dbapi.connection import Connection, ShownCursor
from secateur.errors import ProgrammingError

_PARAMETER: Final = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | \$(\w*)\$.*?\$\1\$ | \$(?P<name>[A-Za-z_]\w*)""",
    re.DOTALL | re.VERBOSE,
)
"""What is quoted comes first, so that nothing in it is taken for a parameter."""
_CONNECTION: Final = "conn"


def load_ipython_extension(shell: Any) -> None:
    """Make ``%sql`` and ``%%sql``; IPython calls this for ``%load_ext secateur``."""
    shell.register_magic_function(partial(_sql, shell), "line_cell", "sql")


def _sql(shell: Any, line: str, cell: str | None = None) -> ShownCursor | None:
    """Execute one statement, which is the line of ``%sql`` or the cell of ``%%sql``.

    Raises:
        ProgrammingError: The variable ``conn`` is something else; or ``%%sql`` has something behind it.
        Error: As :meth:`secateur.client.dbapi.connection.Connection.sql`.
    """
    variables: dict[str, Any] = shell.user_ns
    if cell is not None and line.strip():
        raise ProgrammingError(f"nothing stands behind %%sql, and there is {line.strip()!r}: write it below")
    if _CONNECTION not in variables:
        variables[_CONNECTION] = connect()
    conn = variables[_CONNECTION]
    if not isinstance(conn, Connection):
        raise ProgrammingError(
            f"the variable {_CONNECTION} is a {type(conn).__name__}, and no connection: {_CONNECTION} ="
            " secateur.connect(...)"
        )
    sql = line if cell is None else cell
    names = {found["name"] for found in _PARAMETER.finditer(sql)}.intersection(variables)
    cursor = conn.sql(sql, {name: variables[name] for name in names})
    return None if cursor.description is None else cursor
