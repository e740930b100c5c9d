"""DuckDB's parse tree of a statement: which functions it calls, and whether another text is the same statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from secateur.engine.kernels.duckdb.kernel import default_kernel
from secateur.errors import NotSupportedError
from secateur.partitioning.tables.identifier import folded
from secateur.partitioning.types.column_type import parse_type
from secateur.planner.aggregates import ORDERLESS
from secateur.planner.segmented_stack import on_segmented_stack
from secateur.planner.text.deep_json import read_json, same_json
from secateur.protocol.clocks import CLOCKS

KEYWORDS: Final = frozenset({"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"})
"""The functions of the clock that are written without parentheses, like columns."""
_IGNORED: Final = frozenset({"query_location", "query_location_length"})
# Macros of DuckDB that expand to plain scalar expressions.
_PURE_MACROS: Final = frozenset(
    {
        *(
            "nullif",
            "split_part",
            "date_add",
            "if",
            "fdiv",
            "fmod",
            "days_in_month",
            "json",
            "map_contains_value",
            "map_contains_entry",
        ),
        *(
            "array_append",
            "array_prepend",
            "array_push_back",
            "array_push_front",
            "array_pop_back",
            "array_pop_front",
            "array_reverse",
            "array_to_string",
        ),
        *(
            "list_append",
            "list_prepend",
            "list_reverse",
            "list_sum",
            "list_min",
            "list_max",
            "list_avg",
            "list_count",
            "list_first",
            "list_last",
        ),
        *(
            "list_median",
            "list_mode",
            "list_product",
            "list_string_agg",
            "list_bool_and",
            "list_bool_or",
            "list_any_value",
            "list_stddev_pop",
        ),
        *("list_stddev_samp", "list_var_pop", "list_var_samp"),
    }
)
_PURE_TABLE_FUNCTIONS: Final = frozenset({"range", "generate_series", "unnest", "repeat"})
"""Table functions whose rows depend on their arguments alone. Scalar functions of these names do as well."""

_ONE_FUNCTION: Final = {"^": "**", "position": "strpos"}
"""Functions that go by two names."""

_NEGATED_OPERATORS: Final = {
    "OPERATOR_IS_NOT_NULL": "OPERATOR_IS_NULL",
    "COMPARE_NOT_IN": "COMPARE_IN",
    "COMPARE_DISTINCT_FROM": "COMPARE_NOT_DISTINCT_FROM",
}
_NEGATED_FUNCTIONS: Final = {"!~~": "~~", "!~~*": "~~*"}


@dataclass(frozen=True, slots=True, eq=False)
class DuckDBParse:
    """A statement as DuckDB's parser sees it.

    Attributes:
        tree: The parse tree without positions, as plain data.
        nodes: All of its nodes.
    """

    tree: Mapping[str, Any]
    nodes: tuple[Mapping[str, Any], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(_nodes_in(self.tree)))

    def __eq__(self, other: object) -> bool:
        return same_json(self.tree, other.tree) if isinstance(other, DuckDBParse) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def functions(self) -> frozenset[str]:
        """The names of all functions called, operators and window functions included."""
        return frozenset(
            node["function_name"].lower() for node in self.nodes if isinstance(node.get("function_name"), str)
        )

    def aggregates(self) -> frozenset[str]:
        """The names of the functions outside of windows that aggregate rows; an unknown one counts as one that does."""
        called = {node["function_name"].lower() for node in self.nodes if node.get("class") == "FUNCTION"}
        return frozenset(
            name for name in called - _PURE_MACROS - _PURE_TABLE_FUNCTIONS if _kinds().get(name) != "scalar"
        )

    def is_aggregate(self, function: str) -> bool:
        """Whether a function, by its lower-case name, certainly aggregates rows."""
        return _kinds().get(function) == "aggregate"

    def is_scalar(self, function: str) -> bool:
        """Whether a function, by its lower-case name, certainly makes one value of those of one row."""
        return _kinds().get(function) == "scalar"

    def base_tables(self) -> frozenset[str]:
        """The names that it reads from, folded, those of common table expressions among them."""
        return frozenset(folded(node["table_name"]) for node in self.nodes if node.get("type") == "BASE_TABLE")

    @property
    def has_windows(self) -> bool:
        return any(node.get("class") == "WINDOW" for node in self.nodes)

    @property
    def has_collations(self) -> bool:
        """Whether some text has a collation, which also affects the values that it is compared with."""
        return any(node.get("class") == "COLLATE" for node in self.nodes)

    @property
    def is_repeatable(self) -> bool:
        """Whether equal rows and parameters give equal answers, wherever and whenever a part of it is evaluated."""
        return not self.unstable()

    def unstable(self) -> Counter[str]:
        """The parts that depend on when and where they are evaluated, with their counts.

        They are functions, clocks that are named like columns, and samples.
        """
        found: Counter[str] = Counter()
        stable = stable_functions() | _PURE_MACROS
        for node in self.nodes:
            called = node.get("function_name")
            if isinstance(called, str) and (called.lower() not in stable or _is_age_today(node)):
                found[called.lower()] += 1
            column = str(node["column_names"][-1]).lower() if node.get("class") == "COLUMN_REF" else None
            if column in KEYWORDS:
                found[column] += 1
            if node.get("sample") is not None:
                found["SAMPLE"] += 1
        return found

    @property
    def depends_on_order(self) -> bool:
        """Whether the answer may depend on the order in which rows are read, which is not fixed."""
        limited = any(
            str(node.get("type", "")).startswith("LIMIT")
            or node.get("distinct_on_targets")
            or node.get("ref_type") == "POSITIONAL"
            for node in self.nodes
        )
        return limited or self.has_windows or not self.has_orderless_aggregates

    @property
    def has_orderless_aggregates(self) -> bool:
        """Whether no aggregate depends on the order of its rows."""
        return self.aggregates() <= ORDERLESS

    @property
    def parameters_only_in_where(self) -> bool:
        """Whether every parameter is in the WHERE clause of the outermost SELECT."""
        return not any(
            node.get("class") == "PARAMETER"
            for key, part in self.tree.items()
            if key != "where_clause"
            for node in _nodes_in(part)
        )


def _nodes_in(part: object) -> Iterator[Mapping[str, Any]]:
    """The nodes of a part of a tree."""
    pending = [part]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield item
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def _is_age_today(node: Mapping[str, Any]) -> bool:
    """Whether a call is ``age(timestamp)``, the time until today; with two arguments it depends on these alone."""
    return str(node["function_name"]).lower() == "age" and len(node.get("arguments", ())) == 1


def read_statement(sql: str) -> DuckDBParse | None:
    """Return DuckDB's parse tree of one query, or None if DuckDB has no tree for it.

    If it does not parse, binding it will report why.

    Cost: half a millisecond.
    """
    return read_statements([sql])[0]


def read_statements(statements: Sequence[str]) -> list[DuckDBParse | None]:
    """:func:`read_statement` of several, in one round."""
    return [_reading(read_json(text)) for text in default_kernel().trees(statements)]


def _reading(data: Mapping[str, Any]) -> DuckDBParse | None:
    if data.get("error") or len(data.get("statements", ())) != 1:
        return None
    return DuckDBParse(_stripped(data["statements"][0]["node"]))


def _stripped(data: Any) -> Any:
    if isinstance(data, dict):
        return _stripped_node(data)
    return [_stripped(value) for value in data] if isinstance(data, list) else data


@on_segmented_stack
def _stripped_node(data: dict[str, Any]) -> dict[str, Any]:
    if data.get("class") == "TYPE":
        # CAST(x AS text) and CAST(x AS VARCHAR) are the same.
        name = _type_name(data["type_name"])
        # The length of a VARCHAR has no effect.
        children = [] if name == "VARCHAR" else _stripped(data.get("children"))
        return {"class": "TYPE", "children": children, "name": name}
    plain = {key: _stripped(value) for key, value in data.items() if key not in _IGNORED}
    return _memberships_plain(_negations_apart(_doubles_alike(_spelled_alike(plain))))


def _spelled_alike(node: dict[str, Any]) -> dict[str, Any]:
    """Give one spelling to parts that have several: the default NULLS LAST, and names of clocks and of date parts."""
    match node:
        case {"null_order": "NULLS LAST"}:
            return {**node, "null_order": "ORDER_DEFAULT"}
        case {"class": "FUNCTION", "function_name": name} if name in _ONE_FUNCTION:
            return {**node, "function_name": _ONE_FUNCTION[name], "qualified_name": {"path": [_ONE_FUNCTION[name]]}}
        case {
            "class": "FUNCTION",
            "function_name": "date_part",
            "arguments": [{"expression": {"class": "CONSTANT"} as part} as first, *others],
        }:
            lowered = {**part, "literal": {**part["literal"], "text": str(part["literal"].get("text")).lower()}}
            return {**node, "arguments": [{**first, "expression": lowered}, *others]}
        case {"class": "COLUMN_REF", "column_names": [name]} if name.lower() in KEYWORDS:
            return {**node, "column_names": [name.lower()]}
        case {"class": "CONSTANT", "literal": {"kind": "INTEGER" | "NUMERIC", "text": text} as literal}:
            plain = text.replace("_", "")
            return {**node, "literal": {**literal, "text": f"0{plain}" if plain.startswith(".") else plain}}
        case _:
            return node


def _doubles_alike(node: dict[str, Any]) -> dict[str, Any]:
    """Make ``CAST(3 AS DOUBLE)`` and ``CAST('3' AS DOUBLE)`` equal.

    ``INTERVAL 3 DAY`` and ``INTERVAL '3' DAY`` then are equal too.
    """
    child: Any = node.get("child")
    if (
        node.get("class") == "CAST"
        and node["type_expr"].get("name") == "DOUBLE"
        and child.get("class") == "CONSTANT"
        and child["literal"].get("kind") == "INTEGER"
    ):
        return {**node, "child": {**child, "literal": {**child["literal"], "kind": "STRING"}}}
    return node


def _negations_apart(node: dict[str, Any]) -> dict[str, Any]:
    """``x IS NOT NULL`` and ``NOT x IS NULL`` are one thing, and so are the other operators with NOT inside."""
    operator = _NEGATED_OPERATORS.get(str(node.get("type")))
    function = _NEGATED_FUNCTIONS.get(str(node.get("function_name")))
    if operator is not None:
        positive = {**node, "type": operator}
    elif function is not None and node.get("class") == "FUNCTION":
        positive = {**node, "function_name": function, "qualified_name": {"path": [function]}}
    else:
        return node
    return {
        "class": "OPERATOR",
        "type": "OPERATOR_NOT",
        "alias": node.get("alias", ""),
        "children": [{**positive, "alias": ""}],
    }


def _memberships_plain(node: dict[str, Any]) -> dict[str, Any]:
    """Turn ``x = ANY($1)`` and ``x IN (SELECT unnest($1))`` into comparisons of one row with a list.

    DuckDB parses them as subqueries, but they read no rows.
    """
    if (
        node.get("class") != "SUBQUERY"
        or node.get("subquery_type") != "ANY"
        or node.get("comparison_type") != "COMPARE_EQUAL"
    ):
        return node
    select = node["subquery"]["node"]
    said = {key for key, value in select.items() if value and value != {"map": []} and value != "STANDARD_HANDLING"}
    if (
        said != {"type", "select_list", "from_table"}
        or len(select["select_list"]) != 1
        or select["from_table"].get("type") != "EMPTY"
    ):
        return node
    item = select["select_list"][0]
    elements = [argument.get("expression", argument) for argument in item.get("arguments", ())]
    if (
        item.get("function_name") != "unnest"
        or item.get("filter") is not None
        or [element.get("class") for element in elements] != ["PARAMETER"]
    ):
        return node
    return {
        "class": "OPERATOR",
        "type": "COMPARE_IN_LIST",
        "alias": node.get("alias", ""),
        "children": [node["child"], *elements],
    }


def _type_name(name: str) -> str:
    try:
        return parse_type("HUGEINT" if name.upper() == "INT128" else name).kind.value
    except NotSupportedError:
        return name.upper()


@dataclass(frozen=True, slots=True)
class _Overload:
    """One form of a function.

    Attributes:
        name: In lower case.
        kind: ``scalar``, ``aggregate``, ``macro`` and so on.
        stability: DuckDB's word for scalar functions and aggregates; None for macros, tables and pragmas.
        has_arguments: Whether it takes any.
    """

    name: str
    kind: str
    stability: str | None
    has_arguments: bool

    @property
    def is_stable(self) -> bool:
        """Whether equal arguments give an equal value, in each process of a cluster and at any time.

        Everything needs just this: a constant that is evaluated while a statement is planned, or once per execution at
        its client; a part that is evaluated on several members; an answer over no rows that a kept plan has. DuckDB
        asks for less: what it calls CONSISTENT_WITHIN_QUERY may depend on the clock or on a setting, until the query
        ends. Without arguments, it is the clock (or the transaction). With arguments, it is a setting such as the time
        zone (``TIMESTAMPTZ + INTERVAL``), and settings are the same for every query and in every process: each database
        of secateur sets UTC and is locked, and functions that read other settings may not be called. The one that has
        arguments and reads the clock is :func:`_is_age_today`. A form is therefore judged without the types of its
        arguments, which a parse tree does not have, and of which a parameter has none before it is bound.
        """
        return self.stability == "CONSISTENT" or (self.stability == "CONSISTENT_WITHIN_QUERY" and self.has_arguments)


@cache
def _catalog() -> tuple[_Overload, ...]:
    answer = default_kernel().run(
        "SELECT DISTINCT lower(function_name) AS name, function_type, stability,"
        " len(parameters) > 0 OR varargs IS NOT NULL AS has_arguments FROM duckdb_functions()",
        {},
    )
    return tuple(map(_Overload, *(column.to_pylist() for column in answer.columns)))


@cache
def _kinds() -> dict[str, str]:
    """Function name to its kind; a name that also aggregates is an aggregate."""
    kinds: dict[str, str] = {}
    for form in _catalog():
        if kinds.get(form.name) != "aggregate":
            kinds[form.name] = form.kind
    return kinds


@cache
def stable_functions() -> frozenset[str]:
    """The functions all of whose forms depend on their arguments alone."""
    # The catalogue says of some functions of the clock that they depend on nothing.
    unstable = {form.name for form in _catalog() if not form.is_stable} | CLOCKS.keys()
    return (frozenset(form.name for form in _catalog()) - unstable) | _PURE_TABLE_FUNCTIONS
