"""DROP of whatever has a name of its own.

::

    DROP { TABLE | VIEW | TYPE | INDEX | ROLE | RESOURCE GROUP } [IF EXISTS] name
"""

from __future__ import annotations

from typing import Final, TypeAlias

from secateur.planner.statement import DropIndex, DropResourceGroup, DropRole, DropTable, DropType, DropView
from secateur.planner.text.token_cursor import TokenCursor

Drop: TypeAlias = DropTable | DropView | DropType | DropIndex | DropRole | DropResourceGroup

_KINDS: Final[dict[str, tuple[type[Drop], str]]] = {
    "TABLE": (DropTable, "a table"),
    "VIEW": (DropView, "a view"),
    "TYPE": (DropType, "a type"),
    "INDEX": (DropIndex, "an index"),
    "ROLE": (DropRole, "a role"),
    "RESOURCE": (DropResourceGroup, "a resource group"),
}
_IN_MAIN: Final = frozenset({"TABLE", "VIEW", "TYPE"})
"""What may have the schema main in front of its name."""
_FOLDED: Final = frozenset({"ROLE", "RESOURCE"})
_RESTRICTED: Final = {
    "TABLE": "views that read a dropped table stay, and can be read again once there is such a table",
    "TYPE": "a type that columns have is not dropped: drop their tables first",
}
"""What is said of CASCADE and RESTRICT."""


def read_drop(cursor: TokenCursor) -> Drop:
    """Read a DROP statement.

    Raises:
        NotSupportedError: DROP of something else, of several things, with CASCADE, or in another schema.
    """
    cursor.expect("DROP")
    kind = next((word for word in _KINDS if cursor.accept(word)), None)
    if kind is None:
        raise cursor.unsupported(f"DROP {cursor.word()}", "there are tables, views and indexes")
    if kind == "RESOURCE":
        cursor.expect("GROUP")
    statement, what = _KINDS[kind]
    if_exists = cursor.accept("IF", "EXISTS")
    name = (cursor.name_in_main if kind in _IN_MAIN else cursor.name)(f"the name of {what}")
    if kind in _RESTRICTED and (cursor.at("CASCADE") or cursor.at("RESTRICT")):
        raise cursor.unsupported(cursor.word(), _RESTRICTED[kind])
    if kind in ("VIEW", "TYPE") and cursor.at(","):
        raise cursor.unsupported(f"DROP of several {kind.lower()}s", "drop one at a time")
    cursor.expect_end()
    return statement(name.casefold() if kind in _FOLDED else name, if_exists)
