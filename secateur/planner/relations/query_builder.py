"""The interface of the builder of relations that the clauses of a query use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from secateur.partitioning.types.column_type import SqlType
from secateur.planner.binding.query import TableReference, holds_query
from secateur.planner.relations.attribute import Attribute
from secateur.planner.relations.names import VisibleNames
from secateur.planner.relations.nodes import Relation
from secateur.planner.text.trees import children_of

_MENTIONS_MAX: Final = 200


class TooLargeError(Exception):
    """The tree would be too large, so its scans are not restricted."""


@dataclass(frozen=True, slots=True)
class Output:
    """A query as a relation, and its columns.

    Attributes:
        relation: The relation.
        columns: Names as written and attributes; None for a computed column.
        complete: Whether these are all its columns, in order.
        value: Of a query of one column: an attribute of whose values, or NULL, each value of the column is one.
        fields: Of a query of one column of row values: the attributes of the fields; None for a computed field.
    """

    relation: Relation
    columns: tuple[tuple[str, Attribute | None], ...]
    complete: bool = True
    value: Attribute | None = None
    fields: tuple[Attribute | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Cte:
    """A visible common table expression: its definition, and the ones visible inside it.

    ``body`` is None where the expression may refer to itself.
    """

    node: exp.CTE
    body: exp.Expr | None
    reach: Ctes


Ctes = Mapping[str, Cte]
Columns = tuple[tuple[str, SqlType | None], ...]


class QueryBuilder(ABC):
    """Makes the relations of queries, and what the clauses of a query need for it.

    Attributes:
        scans: The scans of the statement, by the identity of their node.
        moved: The columns of references to rows that an exchange has moved, by the identity of their node.
        aggregates: The names of the aggregates of the statement; None when they are not known.
        loose: The subqueries that are no input of anything.
    """

    def __init__(
        self,
        scans: Sequence[TableReference],
        moved: Mapping[int, Columns] | None = None,
        aggregates: Collection[str] | None = None,
    ) -> None:
        self.scans = {id(scan.node): scan for scan in scans}
        self.moved = moved or {}
        self.aggregates = aggregates
        self.loose: list[Relation] = []
        self._owner_count = 0
        self._mention_count = 0
        self._mentioned: set[int] = set()

    def owner(self) -> int:
        """A number for a relation that makes attributes."""
        self._owner_count += 1
        return self._owner_count

    def reference(self, node: exp.Table, cte: Cte) -> Output | None:
        """The relation of a reference to a common table expression; None where it is recursive."""
        self._mentioned.add(id(node))
        self._mention_count += 1
        if self._mention_count > _MENTIONS_MAX:
            raise TooLargeError
        if cte.body is None:
            return None
        return self.query(cte.body, VisibleNames(), cte.reach)

    def detach(self, part: exp.Expr, names: VisibleNames, ctes: Ctes) -> None:
        """Build the subqueries of an expression about which nothing is known from outside."""
        self.loose.extend(self.query(node, names, ctes).relation for node in subqueries_in(part))

    def finish(self, tree: exp.Expr) -> None:
        """Build the common table expressions without references, and check that no table reference was overlooked.

        Raises:
            TooLargeError: A reference to a common table expression stands where none was expected, so that its
                required rows are unknown.
        """
        for node in tree.find_all(exp.Table):
            if (
                id(node) not in self.scans
                and id(node) not in self.moved
                and id(node) not in self._mentioned
                and isinstance(node.this, exp.Identifier)
            ):
                raise TooLargeError

    @abstractmethod
    def query(self, node: exp.Expr, outer: VisibleNames, ctes: Ctes) -> Output:
        """Any query: SELECT, a set operation, VALUES, one of these in parentheses."""

    @abstractmethod
    def values(self, node: exp.Values, outer: VisibleNames, ctes: Ctes) -> Output:
        """VALUES; its columns are col0, col1, ..."""


def subqueries_in(part: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost queries inside of an expression, without recursion."""
    pending = children_of(part)
    while pending:
        item = pending.pop()
        if isinstance(item, exp.Query) and not (isinstance(item, exp.Subquery) and not holds_query(item)):
            yield item
        elif not isinstance(item, (exp.Literal, exp.Column)):
            pending.extend(children_of(item))
