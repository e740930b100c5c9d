"""Checks that the stages of a placed statement, put together again, are equivalent to that statement.

Placement divides a statement in many steps: references to common table expressions are replaced, queries become rows of
their own, scans move with their filters and without unnamed columns, correlated subqueries become look-ups by key. Here
DuckDB parses the text that each stage runs, and the stages are put together from the last one: each relation of moved
rows must be equivalent to the part of the user's own text that it replaces, in DuckDB's tree. Both trees must be equal
clause by clause, except for deliberate replacements, and each of those is checked by its own claim:

* moved rows of a scan are columns of that scan by their names, those that are left out are named nowhere, and a
  condition that they have passed, or a semi-join, is one of the statement's;
* a condition is left out only where rows have passed it before an inner join, and one is added only where all rows
  pass it;
* other moved rows are those of the subquery or of the definition of the common table expression that they replace,
  with its names;
* the two parts of a split SELECT are that SELECT (:mod:`~secateur.planner.checks.recomposed`);
* a look-up has the keys that its subquery equates with outer columns, and leaves out only keys that no outer row has;

The check does not depend on how the texts were made, so a defect of any step, of the printer or of sqlglot's parser
shows as a difference. Where rows are, and whether a member may compute its part of the statement separately, cannot be
read from texts and is not checked here.

Source: translation validation (Pnueli, Siegel, Singerman, 1998).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from secateur.engine.processors.row_limit import RowLimit
from secateur.partitioning.tables.identifier import folded
from secateur.planner.checks.claims import Cutting, PlacedText, Source
from secateur.planner.checks.column_names import all_folded, are_names, called, mentioned
from secateur.planner.checks.columns_by_position import read_by_position
from secateur.planner.checks.conjuncts import inner_leaves, joins_plainly, leaves, references, same_tree
from secateur.planner.checks.lookups import is_lookup
from secateur.planner.checks.moved_scans import MovedScan, MovedScans
from secateur.planner.checks.recomposed import tree_difference
from secateur.planner.checks.scope import QUERIES, Scope
from secateur.planner.checks.select_node import BEHIND_WHERE, Node, is_plain_star
from secateur.planner.fragments.partial_final import PartialFinal
from secateur.planner.segmented_stack import on_segmented_stack
from secateur.planner.text.deep_json import same_json
from secateur.planner.text.parse_tree import flat_and
from secateur.planner.text.parser_cross_check import DuckDBParse, read_statements
from secateur.protocol.clocks import CLOCKS

_APART: Final = frozenset({"type", "cte_map", "from_table", "where_clause"})


def placed_difference(user: DuckDBParse, texts: Sequence[PlacedText], sources: Mapping[str, Source]) -> str | None:
    """Return the part of a statement in which the texts of its stages differ from it.

    Args:
        user: DuckDB's parse tree of the user's own text over the relations of its scans.
        texts: The texts of the stages; the rows of the n-th are the relation ``x<n>``, the last one is the answer.
        sources: The scans by their relations.

    Returns:
        The difference, in SQL's words; None if there is none.

    Cost: one call of DuckDB's parser, then about linear in the trees.
    """
    asked = {text.sql for text in texts}
    asked |= {sql for text in texts if text.cutting is not None for sql in text.cutting.texts}
    asked |= {text.keyed for text in texts if text.keyed is not None}
    ordered = sorted(asked)
    readings = dict(zip(ordered, read_statements(ordered), strict=True))
    trees = {sql: reading.tree for sql, reading in readings.items() if reading is not None}
    if len(trees) < len(ordered):
        return "the text of a stage"
    check = _Placed(user.tree, texts, sources, trees)
    return None if check.is_statement() else check.first or "the statement"


def unsaid_filters(user: DuckDBParse, filters: Mapping[str, str], sources: Mapping[str, Source]) -> frozenset[str]:
    """Return the scans with a filter that does not stand in the user's statement as a condition on their rows.

    Args:
        user: As for :func:`placed_difference`.
        filters: The filter of some scans, by their relations.
        sources: As there.
    """
    read = read_statements([f"SELECT 1 FROM {relation} WHERE {where}" for relation, where in filters.items()])
    scans = MovedScans(user.tree, {}, sources, {})
    said = {
        relation
        for relation, reading in zip(filters, read, strict=True)
        if reading is not None and all(scans.is_said(relation, each) for each in flat_and(reading.tree["where_clause"]))
    }
    return frozenset(filters) - said


def clocks_difference(user: DuckDBParse, settled: DuckDBParse | None, clock: int) -> str | None:
    """Return the difference of a text in which a parameter replaces the clocks, other than these.

    Args:
        user: DuckDB's parse tree of the text with clocks.
        settled: DuckDB's parse tree of the text with the parameter.
        clock: The number of the parameter, counted from 1.

    Returns:
        As :func:`placed_difference`.
    """
    if settled is None:
        return "the statement"
    expected = _settled(user.tree, clock)
    if same_json(expected, settled.tree):
        return None
    check = _Placed(expected, (), {}, {})
    return None if check.is_query(settled.tree) else check.first or "the statement"


class _Placed:
    def __init__(
        self,
        user: Node,
        texts: Sequence[PlacedText],
        sources: Mapping[str, Source],
        trees: Mapping[str, Node],
    ) -> None:
        self.first: str | None = None
        self._user = user
        self._texts = texts
        self._trees = trees
        self._scans = MovedScans(user, {f"x{number}": text for number, text in enumerate(texts)}, sources, trees)
        self._known: dict[tuple[int, int, int], bool] = {}
        self._in_hints: set[int] = set()  # ids of references to columns
        self._kept: list[object] = []

    def is_query(self, other: Node) -> bool:
        """Whether a query over the scans themselves is equivalent to the statement."""
        return self._is_query(self._user, other, self._outermost(self._user))

    def is_statement(self) -> bool:
        """Whether the stages are equivalent to the statement."""
        last = self._texts[-1]
        return self._is_query(self._user, self._trees[last.sql], self._outermost(self._user), limit=last.limit)

    def _outermost(self, statement: Node) -> Scope:
        return replace(self._scans.scope, read_by_position=read_by_position(statement))

    def _differs(self, what: str) -> bool:
        self.first = self.first or what
        return False

    # Queries

    def _is_query(self, was: Node, now: Node, around: Scope, limit: RowLimit | None = None) -> bool:
        """Whether a query of the stages is equivalent to one of the user's."""
        key = id(was), id(now), id(around.definitions)
        if key not in self._known:
            self._kept += [was, now, around.definitions]  # an id is that of one object as long as this lives
            before = self.first
            self._known[key] = self._query(was, now, around, limit)
            if self._known[key]:
                self.first = before
        return self._known[key]

    def _query(self, was: Node, now: Node, around: Scope, limit: RowLimit | None) -> bool:
        moved = self._scans.text_of(now.get("from_table"))
        if moved is not None and moved.cutting is not None:
            whole = self._trees[moved.cutting.whole]
            return self._is_cut(moved, moved.cutting, whole, now, limit) and self._is_query(was, whole, around)
        if limit is not None:
            return self._differs("LIMIT")
        if self._is_block(was, now, around):
            return True
        if not _passes_on(now):
            return False
        # The unchanged rows of a query, or some of them, perhaps in another order.
        inside, names = None, None
        source = now["from_table"]
        if moved is not None and not moved.scans and not source["alias"] and not source["column_name_alias"]:
            inside, names = self._trees[moved.sql], moved.columns
        elif source.get("type") == "SUBQUERY" and source["alias"] == "q" and source["column_name_alias"]:
            inside, names = source["subquery"]["node"], tuple(source["column_name_alias"])
        if inside is None or names is None:
            return False
        behind = now["modifiers"]
        kept = len(was["modifiers"]) - len(behind)
        if kept < 0 or not self.is_same(was["modifiers"][kept:], behind, around):
            return self._differs("ORDER BY or LIMIT")
        bare = {**was, "modifiers": was["modifiers"][:kept]} if behind else was
        return self._is_query(bare, inside, around) and (
            are_names(bare, names) or self._differs("the names of columns")
        )

    def _is_block(self, was: Node, now: Node, around: Scope) -> bool:
        if was.get("type") != now.get("type"):
            return self._differs("a query")
        if now["cte_map"]["map"]:
            return self._differs("a common table expression")
        inside = around.inside(was)
        match was["type"]:
            case "SELECT_NODE":
                return self._is_select(was, now, inside)
            case "SET_OPERATION_NODE":
                left, right = was["children"], now["children"]
                rest = [key for key in was if key not in ("children", "cte_map")]
                return (
                    (len(left) == len(right) or self._differs("a set operation"))
                    and all(self.is_same(was[key], now[key], inside) for key in rest)
                    and all(self._is_query(one, other, inside) for one, other in zip(left, right, strict=True))
                )
            case _:
                return all(self.is_same(was[key], now[key], inside) for key in was if key != "cte_map")

    def _is_select(self, was: Node, now: Node, around: Scope) -> bool:
        if not self.is_from(was["from_table"], now["from_table"], around):
            return False
        moved, inner = (self._scans.among(tables(now["from_table"])) for tables in (leaves, inner_leaves))
        if not self._are_conditions(was["where_clause"], now["where_clause"], inner, around):
            return self._differs("WHERE")
        clause = next((key for key in was if key not in _APART and not self.is_same(was[key], now[key], around)), None)
        if clause is not None:
            return self._differs("the SELECT list" if clause == "select_list" else clause.replace("_", " "))
        # The stage's text alone mentions keys of look-ups. A hint names a column that its scan has, and so none that
        # another scan leaves out; the user's text may mention that name in a query that has become rows of its own.
        names = mentioned(was) & mentioned(now, apart_from=self._in_hints)
        has_columns = all(self._scans.has_columns(text, names) for _, text in moved)
        return has_columns or self._differs("which columns it looks at")

    # What is split in two

    def _is_cut(self, moved: PlacedText, cutting: Cutting, whole: Node, final: Node, limit: RowLimit | None) -> bool:
        partial_final, partial = cutting.partial_final, self._trees[moved.sql]
        if tuple(item.get("alias") for item in partial.get("select_list", ())) != moved.columns:
            return self._differs("the columns of the part at the members")
        if moved.order or limit is not None:
            if (
                partial_final.passing is None
                or limit != partial_final.limit
                or not self._is_sorted(moved, partial_final, partial)
            ):
                return self._differs("ORDER BY or LIMIT")
            if final != self._trees[partial_final.passing]:
                return self._differs("the part at the coordinator")
            partial, final = self._trees[partial_final.partial], self._trees[partial_final.final]
        found = tree_difference(whole, partial, final, partial_final, cutting.star, is_one_table=False)
        return found is None or self._differs(found)

    def _is_sorted(self, moved: PlacedText, partial_final: PartialFinal, partial: Node) -> bool:
        """Whether a stage runs the partial part, sorted as in the SELECT."""
        first = {key.column: key for key in reversed(partial_final.order)}
        wanted = [key for key in partial_final.order if first[key.column] is key]
        whole = self._trees[partial_final.partial]
        if not moved.order:
            return bool(not wanted or partial_final.limit is not None) and partial == whole
        said = [
            (
                _by_position(item["expression"], moved.columns),
                item["type"] == "DESCENDING",
                item["null_order"] == "NULLS FIRST",
            )
            for modifier in partial["modifiers"]
            for item in modifier.get("orders") or ()
        ]
        keys = [(key.column, key.descending, key.nulls_first) for key in wanted]
        is_sorted_only = [modifier["type"] for modifier in partial["modifiers"]] == ["ORDER_MODIFIER"]
        return list(moved.order) == wanted and said == keys and is_sorted_only and {**partial, "modifiers": []} == whole

    # FROM

    def is_from(self, was: Node, now: Node, around: Scope, inner: Sequence[MovedScan] | None = None) -> bool:
        """Whether an item of FROM is equivalent to one of the user's.

        ``inner`` are the moved scans that only inner joins join with the item, those in it included.
        """
        inner = self._scans.among(inner_leaves(now)) if inner is None else inner
        # Not recursive: a chain of joins is a tree as deep.
        while was.get("type") == now.get("type") == "JOIN":
            is_plain = joins_plainly(now)
            if not self._is_join(was, now, around, inner if is_plain else None):
                return False
            was, now = was["left"], now["left"]
            inner = inner if is_plain else self._scans.among(inner_leaves(now))
        match was, now:
            case {"type": "BASE_TABLE"}, {"type": "BASE_TABLE"}:
                return self._is_table(was, now, around)
            case {"type": "BASE_TABLE"}, {"type": "SUBQUERY"}:
                return self._is_definition(was, now, now["subquery"]["node"], around)
            case {"type": "SUBQUERY"}, {"type": "BASE_TABLE"}:
                moved = self._scans.text_of(now)
                if moved is None or moved.scans or _beside(was) != _beside(now):
                    return self._differs("FROM")
                return self._is_rows(was["subquery"]["node"], moved, around)
            case _:
                return self._same_parts(was, now, around) or self._differs("FROM")

    def _is_join(self, was: Node, now: Node, around: Scope, inner: Sequence[MovedScan] | None) -> bool:
        """Whether a join is one of the user's, apart from its left side.

        A plain join has the moved scans that are joined like it, whose rows are in each row of the result.
        """
        # ON of a join whose right side is the scan is evaluated on its own rows, whatever happens to the left side.
        is_about_right = now["join_type"] in ("LEFT", "SEMI", "ANTI") and now["ref_type"] == "REGULAR"
        met = self._scans.among([now["right"]] if is_about_right else []) if inner is None else inner
        rest = [key for key in was if key not in ("left", "right", "condition")]
        return (
            self.is_from(was["right"], now["right"], around, inner)
            and (all(self.is_same(was[key], now[key], around) for key in rest) or self._differs("a join"))
            and (self._are_conditions(was["condition"], now["condition"], met, around) or self._differs("ON"))
        )

    def _is_table(self, was: Node, now: Node, around: Scope) -> bool:
        moved, name = self._scans.text_of(now), folded(was["table_name"])
        if around.definition(was) is not None:
            return self._is_definition(was, now, None, around)
        rest = [key for key in was if key not in ("table_name", "qualified_name", "alias")]
        if any(was[key] != now[key] for key in rest) or (was["alias"] or was["table_name"]) != (
            now["alias"] or now["table_name"]
        ):
            return self._differs("FROM")
        if was["table_name"] == now["table_name"]:
            return was["qualified_name"] == now["qualified_name"] or self._differs("FROM")
        if moved is None or not moved.scans or name in around.definitions:
            return self._differs("FROM")
        found = self._scans.difference(was["table_name"], moved, around.read_by_position)
        return found is None or self._differs(found)

    def _is_definition(self, was: Node, now: Node, query: Node | None, around: Scope) -> bool:
        """Whether the replacement of a reference is equivalent to the common table expression."""
        found = around.definition(was)
        if found is None:
            return self._differs("FROM")
        definition, reached = found
        given = was["column_name_alias"]
        aliases = all_folded([*given, *definition["aliases"][len(given) :]])
        if (called(now), *_beside(now)[1:]) != (called(was), aliases, was["sample"]):
            return self._differs("the names of a common table expression")
        node = definition["query_node"]
        if query is not None:
            return self._is_query(node, query, reached)
        moved = self._scans.text_of(now)
        if moved is None or moved.scans:
            return self._differs("FROM")
        if self._trees[moved.sql]["cte_map"]["map"]:
            return self._is_recursion(was, definition, moved, reached)
        return self._is_rows(node, moved, reached)

    def _is_recursion(self, was: Node, definition: Node, moved: PlacedText, reached: Scope) -> bool:
        now = self._trees[moved.sql]
        entries, source = now["cte_map"]["map"], now.get("from_table", {})
        if (
            len(entries) != 1
            or not _passes_on(now)
            or now["modifiers"]
            or source.get("table_name") != entries[0]["key"]
            or source["column_name_alias"]
        ):
            return self._differs("a recursion")
        entry = entries[0]["value"]
        name = folded(was["table_name"])
        inside = replace(reached, definitions={**reached.definitions, name: None}, select=None)
        aliases = all_folded(definition["aliases"])
        same = folded(entries[0]["key"]) == name and all_folded(entry["aliases"]) == aliases
        rest = [key for key in definition if key not in ("aliases", "query_node")]
        if not same or any(definition[key] != entry[key] for key in rest):
            return self._differs("a recursion")
        query = definition["query_node"]
        return self._is_query(query, entry["query_node"], inside) and (
            are_names(query, moved.columns, definition["aliases"]) or self._differs("the names of columns")
        )

    def _is_rows(self, was: Node, moved: PlacedText, around: Scope) -> bool:
        """Whether moved rows are those of one of the user's queries."""
        return self._is_query(was, self._trees[moved.sql], around) and (
            are_names(was, moved.columns) or self._differs("the names of columns")
        )

    # Conditions

    def _are_conditions(self, was: Node | None, now: Node | None, moved: Sequence[MovedScan], around: Scope) -> bool:
        """Whether a condition is the user's, apart from conditions that the rows of moved scans have passed.

        Conditions that all rows pass may be added, as hints.
        """
        left, right = list(flat_and(was)), list(flat_and(now))
        hints = right[len(left) :]
        if len(left) > len(right) or not all(self._scans.is_always_met(hint, moved) for hint in hints):
            return False
        self._in_hints.update(map(id, references(hints)))
        return all(
            self.is_same(conjunct, other, around) or (_is_true(other) and self._scans.is_met(conjunct, moved, around))
            for conjunct, other in zip(left, right, strict=False)
        )

    # Expressions

    @on_segmented_stack
    def is_same(self, was: object, now: object, around: Scope) -> bool:
        """Whether a part of a text is equivalent to one of the user's, queries in it included."""
        return same_tree(was, now, lambda one, other: self._decide(one, other, around))

    def _decide(self, was: Node, now: Node, around: Scope) -> bool | Collection[str]:
        if was.get("type") in QUERIES:
            return self._is_query(was, now, around)
        if was.get("type") in ("BASE_TABLE", "JOIN") or (was.get("type") == "SUBQUERY" and "class" not in was):
            return self.is_from(was, now, around)
        return self._is_lookup(was, now, around) or ()

    def _same_parts(self, was: Node, now: Node, around: Scope) -> bool:
        return was.keys() == now.keys() and all(self.is_same(was[key], now[key], around) for key in was)

    def _is_lookup(self, was: Node, now: Node, around: Scope) -> bool:
        """Whether a subquery is a look-up by key that replaces a correlated one of the user's."""
        if was.get("class") != "SUBQUERY" or now.get("class") != "SUBQUERY":
            return False
        moved = self._scans.text_of(now["subquery"]["node"].get("from_table"))
        if moved is None or moved.keyed is None:
            return False
        rows = self._trees[moved.keyed]
        if not is_lookup(self, was, now, rows, around):
            return self._differs("a correlated subquery")
        names = tuple(item["alias"] for item in rows["select_list"])
        return moved.columns == names and self._is_query(rows, self._trees[moved.sql], self._outermost(rows))


def _settled(part: Any, clock: int) -> Any:
    """Replace each clock in a part of a tree by a parameter: the start of the statement as a TIMESTAMPTZ."""
    if isinstance(part, list):
        return [_settled(item, clock) for item in part]
    if not isinstance(part, dict):
        return part
    match part:
        case {"class": "COLUMN_REF", "column_names": [name]} | {
            "class": "FUNCTION",
            "function_name": name,
            "arguments": [],
        } if folded(name) in CLOCKS:
            parameter = {"class": "PARAMETER", "type": "VALUE_PARAMETER", "alias": "", "identifier": str(clock)}
            shown: Node = _cast(parameter, "TIMESTAMP WITH TIME ZONE")
            for kind in CLOCKS[folded(name)]:
                shown = _cast(shown, kind)
            return {**shown, "alias": part["alias"]}
        case _:
            return {key: _settled(value, clock) for key, value in part.items()}


def _cast(value: Node, kind: str) -> Node:
    type_ = {"class": "TYPE", "children": [], "name": kind}
    return {
        "class": "CAST",
        "type": "OPERATOR_CAST",
        "alias": "",
        "child": value,
        "try_cast": False,
        "type_expr": type_,
    }


def _passes_on(select: Node) -> bool:
    """Whether a query selects all columns of its relation."""
    if select.get("type") != "SELECT_NODE" or select["where_clause"] is not None or len(select["select_list"]) != 1:
        return False
    item = select["select_list"][0]
    return is_plain_star(item) and not item["relation_name"] and not any(select[clause] for clause in BEHIND_WHERE)


def _by_position(item: Node, columns: Sequence[str]) -> str | None:
    """The column that a number in ORDER BY means; None for anything else."""
    literal = item.get("literal") or {}
    if item.get("class") != "CONSTANT" or literal.get("kind") != "INTEGER" or not literal["text"].isdecimal():
        return None
    position = int(literal["text"])
    return columns[position - 1] if 1 <= position <= len(columns) else None


def _is_true(node: Node) -> bool:
    return node.get("class") == "CONSTANT" and node["literal"] == {"kind": "BOOLEAN", "text": "true"}


def _beside(table: Node) -> tuple[str, list[str], object]:
    """The parts of an item of FROM beside its rows: its alias, the names of its columns, and its sample."""
    return folded(table["alias"]), all_folded(table["column_name_alias"]), table["sample"]
