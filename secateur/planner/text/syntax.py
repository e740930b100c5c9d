"""DuckDB's syntax tree of a query, and what a binder asks it: names of tables, stars, calls, each with its place.

The tree is what DuckDB's parser makes of the text (``json_serialize_sql``), as plain data; fields that say nothing are
left out. Places in it are those of bytes.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.errors import Error, LimitExceededError, NotSupportedError
from secateur.partitioning.types.sql_text import folded
from secateur.planner.text.parameters import NO_PARAMETERS, Parameters
from secateur.planner.text.positions import Spliced, located, splice, syntax_error
from secateur.planner.text.tokens import Token

SyntaxNode: TypeAlias = Mapping[str, Any]

QUERIES: Final = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE"})
"""The types of nodes that are queries; others change rows."""
_ONE_ITEM: Final = {"type", "select_list", "from_table"}
"""The parts of a SELECT that is a list of expressions, and nothing else."""
_INNER: Final = frozenset({dict, list})
"""The classes of values that have nodes in them."""
DESCRIPTIONS: Final = frozenset({"DESCRIBE", "DESC", "SUMMARIZE", "SHOW"})
"""The words by which a table is described in place of a query."""
_BEFORE_NAMES: Final = DESCRIPTIONS | {"TABLE"}
_PLACES: Final = frozenset({"query_location", "query_location_length"})


@dataclass(frozen=True, slots=True)
class TableName:
    """A name in FROM that is no common table expression's.

    Attributes:
        catalog: The first of three parts; empty where it has fewer.
        schema: What stands in front of it, such as ``main``; empty where there is nothing.
        name: The name.
        alias: Its alias; empty where it has none.
        start: Where it stands in the user's text, with the schema in front of it.
        end: The offset behind it.
        word: The word of ``TABLE t``, ``DESCRIBE t`` or ``SUMMARIZE t``, in capitals; empty anywhere else.
        opening: Where that begins; ``start`` of any other.
        renames: Whether its alias names its columns by position.
    """

    catalog: str
    schema: str
    name: str
    alias: str
    start: int
    end: int
    word: str
    opening: int
    renames: bool


class _Numbered:
    """A text with numbered parameters, by the places of its bytes."""

    def __init__(self, spliced: Spliced) -> None:
        self.sql = spliced.sql
        self._spliced = spliced
        # The places of all bytes but the first of a character.
        self._further = (
            [] if self.sql.isascii() else [at for at, byte in enumerate(self.sql.encode()) if byte >> 6 == 2]
        )

    def origin(self, place: int, length: int = 1) -> tuple[int, int]:
        """The offset of some bytes in the user's text, and the length."""
        start = place - bisect_left(self._further, place)
        end = place + length - bisect_left(self._further, place + length)
        return self._spliced.origin(start, end - start)


@dataclass(frozen=True, slots=True)
class Syntax:
    """A query as DuckDB's parser reads it: its outermost node and its tokens."""

    node: SyntaxNode
    tokens: Sequence[Token]
    _numbered: _Numbered

    def start(self, node: SyntaxNode) -> int:
        """The offset in the user's text at which a node begins; -1 for what the parser has put there itself."""
        place = node.get("query_location")
        return -1 if place is None else self._numbered.origin(place)[0]

    def token_at(self, offset: int) -> int:
        """The index of the first token from an offset of the user's text on."""
        return bisect_left(self.tokens, offset, key=lambda token: token.start)

    @property
    def is_ordered(self) -> bool:
        """Whether rows are ordered, and not limited."""
        kinds = {modifier["type"] for modifier in self.node.get("modifiers", ())}
        return "ORDER_MODIFIER" in kinds and not any(kind.startswith("LIMIT") for kind in kinds)

    def tables(self) -> list[TableName]:
        """The names of tables in the order of the text.

        A name that a common table expression has taken is none, within its reach.
        """
        found: list[TableName] = []
        described: dict[tuple[str, ...], list[tuple[int, int]]] = {}
        pending: list[tuple[Any, frozenset[str]]] = [(self.node, frozenset())]
        while pending:
            item, hidden = pending.pop()
            if isinstance(item, list):
                pending.extend((each, hidden) for each in item)
            if not isinstance(item, dict):
                continue
            for name, body in ctes_of(item):
                pending.append((body, hidden))
                hidden |= {name}
            if item.get("type") == "BASE_TABLE" and ("schema_name" in item or folded(item["table_name"]) not in hidden):
                path = tuple(item[key] for key in ("catalog_name", "schema_name", "table_name") if item.get(key))
                start = self.start(item)
                opening = at = self.token_at(start)
                if self.tokens[at + 1 : at + 2] and self.tokens[at + 1].word == ":" and "alias" in item:
                    opening = at = at + 2  # behind the alias of ``FROM x: t``
                if start < 0:  # the parser tells no place of it
                    described = described or self._described()
                    if not described[path]:
                        message = f"{'.'.join(path)} is named in a way that is not supported: write FROM and the name"
                        raise NotSupportedError(message)
                    opening, at = described[path].pop()
                found.append(
                    TableName(
                        item.get("catalog_name", ""),
                        item.get("schema_name", ""),
                        item["table_name"],
                        item.get("alias", ""),
                        self.tokens[at].start,
                        self.tokens[at + 2 * (len(path) - 1)].end + 1,
                        self.tokens[opening].word if start < 0 else "",
                        self.tokens[opening].start,
                        "column_name_alias" in item,
                    )
                )
            # In the part before the recursion the name is that of a table.
            inside = hidden | {folded(item["cte_name"])} if item.get("type") == "RECURSIVE_CTE_NODE" else hidden
            pending.extend(
                [
                    (value, inside if key == "right" else hidden)
                    for key, value in item.items()
                    if type(value) in _INNER and key != "cte_map"
                ]
            )
        return sorted(found, key=lambda name: name.start)

    def _described(self) -> dict[tuple[str, ...], list[tuple[int, int]]]:
        """By the parts of a name, where the words of ``TABLE t``, ``DESCRIBE t`` and the like are, and the names."""
        found: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
        for opening, token in enumerate(self.tokens[:-1]):
            if token.word in _BEFORE_NAMES:
                at = opening + 1 + (token.word != "TABLE" and self.tokens[opening + 1].word == "TABLE")
                parts = [token.text for token in self.tokens[at : at + 1]]
                for dot, part in zip(self.tokens[at + 1 :: 2], self.tokens[at + 2 :: 2], strict=False):
                    if dot.word != ".":
                        break
                    parts.append(part.text)
                found[tuple(parts)].append((opening, at))
        return found

    def stars(self) -> tuple[bool, set[str]]:
        """Whether every column of every table may be needed, and names of tables that may need every column."""
        starred: set[str] = set()
        pending: list[tuple[Any, bool]] = [(self.node, False)]
        while pending:
            item, is_counted = pending.pop()
            match item:
                case list():
                    pending.extend((each, False) for each in item)
                case {"class": "SUBQUERY", "subquery_type": "EXISTS" | "NOT_EXISTS", "subquery": {"node": query}}:
                    pending.append((query, not _counts_distinct_rows(query)))
                case {"type": "SELECT_NODE"}:
                    for each in item.get("select_list", ()):
                        if not _is_bare_star(each):
                            pending.append((each, False))
                        elif not is_counted:
                            starred |= {folded(one.get("alias") or one["table_name"]) for one in tables_of(item)}
                    pending.extend((value, False) for key, value in item.items() if key != "select_list")
                case {"class": "STAR", "relation_name": str(name)}:
                    starred.add(folded(name))
                    pending.extend((value, False) for value in item.values())
                case (
                    {"class": "STAR"}
                    | {"type": "PIVOT"}
                    | {"class": "POSITIONAL_REFERENCE", "query_location": _}
                    | {"type": "JOIN", "ref_type": "NATURAL" | "POSITIONAL"}
                ):
                    # COLUMNS(...), #2, PIVOT, NATURAL and POSITIONAL joins read columns that the text does not name.
                    return True, starred
                case {"class": "COLUMN_REF", "column_names": [*front, name]} if _is_bare_name(front):
                    # A row as a value, ``SELECT t FROM t`` or ``SELECT main.t FROM t``, looks like a column.
                    starred.add(folded(name))
                case dict():
                    pending.extend([(value, False) for value in item.values() if type(value) in _INNER])
                case _:
                    pass
        return False, starred

    def takes_whole_rows(self, alias: str, columns: Container[str]) -> bool:
        """Whether an expression may read columns that it does not name: ``t.*``, ``t``, ``COLUMNS(*)`` or ``#1``.

        Args:
            alias: The name of the table in the query.
            columns: The folded names of its columns, which a bare name may mean as well.
        """
        name = folded(alias)
        lists = {
            id(item) for node in nodes_of(self.node) for item in node.get("select_list", ()) if _is_bare_star(item)
        }
        for node in nodes_of(self.node):
            match node:
                case {"class": "STAR", "relation_name": str(named)} if named:
                    found = folded(named) == name
                case {"class": "STAR"}:
                    found = id(node) not in lists
                case {"class": "POSITIONAL_REFERENCE"}:
                    found = True
                case {"class": "COLUMN_REF", "column_names": [*front, named]} if _is_bare_name(front):
                    found = folded(named) == name and name not in columns
                case _:
                    found = False
            if found:
                return True
        return False


def parse_query(sql: str, tokens: Sequence[Token], parameters: Parameters = NO_PARAMETERS) -> Syntax:
    """Parse the tokens of one query.

    Args:
        sql: The user's whole text; the tokens may be a part of its tokens.
        tokens: Those of exactly one statement.
        parameters: As read from them.

    Raises:
        SqlSyntaxError: They are no query; the position is that in ``sql``.
        LimitExceededError: They are nested too deeply.

    Cost: half a millisecond.
    """
    spans = [(start, end, f"${index + 1}") for start, end, index in parameters.spans]
    numbered = _Numbered(splice(sql, tokens[0].start, tokens[-1].end + 1, spans))
    (tree,) = default_kernel().trees([numbered.sql])
    data = json.loads(tree)
    if data["error"]:
        raise _error(data, sql, tokens, numbered)
    return Syntax(data["statements"][0]["node"], tokens, numbered)


def nested_too_deeply() -> LimitExceededError:
    """The error for a statement that nobody reads."""
    return LimitExceededError(
        "the statement is nested too deeply to be read: write it flatter, or pass long lists as parameters",
        limit="nesting",
    )


def _error(data: Mapping[str, Any], sql: str, tokens: Sequence[Token], numbered: _Numbered) -> Error:
    message = f"the statement does not parse: {data['error_message']}"
    if "expression depth" in message:
        return nested_too_deeply()
    if data["error_type"] != "parser":
        pivot = next((token for token in tokens if token.word in ("PIVOT", "PIVOT_WIDER")), None)
        if pivot is None:
            return syntax_error("expected a query", sql, tokens[0].start)
        message = "PIVOT without the values of a column is not supported: write ON column IN (values)"
        return located(NotSupportedError, message, sql, pivot.start, len(pivot.text))
    if "location" in data:
        return syntax_error(message, sql, *numbered.origin(*json.loads(data["location"])))
    named = [token for token in tokens if f'"{token.text}"' in message]  # such as a name that is defined twice
    token = (named or tokens)[-1 if len(named) < 3 else 1]
    return syntax_error(message, sql, token.start, len(token.text))


def nodes_of(tree: object, *, into_subqueries: bool = True) -> Iterator[SyntaxNode]:
    """The nodes of a syntax tree, with those of the subqueries in its expressions or without."""
    pending = [tree]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            if not into_subqueries and item.get("class") == "SUBQUERY":
                continue
            yield item
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def called_without_arguments(node: SyntaxNode) -> str:
    """The function that an expression calls without arguments, or the bare column that looks like such a call."""
    match node:
        case {"class": "COLUMN_REF", "column_names": [str(name)]}:
            return name
        case {"class": "FUNCTION", "function_name": str(name)} if "arguments" not in node:
            return name
        case _:
            return ""


def ctes_of(node: SyntaxNode) -> Iterator[tuple[str, SyntaxNode]]:
    """The common table expressions of a query: the name of each, folded, and its query."""
    for entry in node.get("cte_map", {}).get("map", ()):
        yield folded(entry["key"]), entry["value"]["query_node"]


def tables_of(select: SyntaxNode) -> Iterator[SyntaxNode]:
    """The tables in the FROM clause of a SELECT, whose columns its star stands for.

    Those in subqueries are behind a select list, which names their columns.
    """
    pending = [select.get("from_table", {})]
    while pending:
        match pending.pop():
            case {"type": "BASE_TABLE"} as table:
                yield table
            case {"type": "JOIN", "left": left, "right": right}:
                pending += [left, right]
            case _:
                pass


def list_membership(node: SyntaxNode) -> tuple[SyntaxNode, SyntaxNode] | None:
    """What ``x = ANY($1)`` and ``x IN (SELECT unnest($1))`` search, and the parameter; None for any other node.

    DuckDB parses them as subqueries, but they read no rows.
    """
    match node:
        case {
            "class": "SUBQUERY",
            "subquery_type": "ANY",
            "comparison_type": "COMPARE_EQUAL",
            "child": searched,
            "subquery": {"node": {"select_list": [item], "from_table": {"type": "EMPTY"}} as select},
        } if {key for key, value in select.items() if value and value != "STANDARD_HANDLING"} == _ONE_ITEM:
            pass
        case _:
            return None
    match item:
        case {"function_name": "unnest", "arguments": [{"expression": {"class": "PARAMETER"} as parameter}]}:
            return None if "filter" in item else (searched, parameter)
        case _:
            return None


def _counts_distinct_rows(query: SyntaxNode) -> bool:
    """Whether the number of rows that an EXISTS sees depends on the columns of its star."""
    return (
        any(query.get(key) for key in ("group_expressions", "having", "qualify"))
        or query.get("aggregate_handling") == "FORCE_AGGREGATES"
        or any(modifier["type"] != "ORDER_MODIFIER" for modifier in query.get("modifiers", ()))
    )


def _is_bare_name(front: Sequence[str]) -> bool:
    """Whether what stands in front of the last part of a name is nothing, or the schema of tables."""
    return not front or [folded(part) for part in front] == ["main"]


def _is_bare_star(node: object) -> bool:
    match node:
        case {"class": "STAR", **rest}:
            return not rest.get("columns") and not rest.get("relation_name")
        case _:
            return False


def compared_trees(statements: Sequence[str]) -> list[SyntaxNode | None]:
    """The trees of some queries; None for a text that is none, or does not parse.

    In this form two texts are compared: without places, and with plain memberships in lists.
    """
    found: list[SyntaxNode | None] = []
    for text in default_kernel().trees(statements):
        data = json.loads(text)
        is_one = not data["error"] and len(data["statements"]) == 1
        found.append(_plain(data["statements"][0]["node"]) if is_one else None)
    return found


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return _plain_node(data)
    return [_plain(value) for value in data] if isinstance(data, list) else data


def _plain_node(data: dict[str, Any]) -> dict[str, Any]:
    node = {key: _plain(value) for key, value in data.items() if key not in _PLACES}
    membership = list_membership(node)
    if membership is None:
        return node
    named = {"alias": node["alias"]} if "alias" in node else {}
    return {"class": "OPERATOR", "type": "COMPARE_IN_LIST", "children": list(membership), **named}
