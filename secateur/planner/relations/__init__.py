"""Relations: a query as a tree of relational operators, for analysis only.

The user's own text runs over pruned scans. The tree determines which rows of a scan can matter: :mod:`build` makes it,
:mod:`implied_predicates` finds predicates that hold for the rows of a relation, and :mod:`prunability` carries
predicates down to the scans.
"""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "attribute": ["Attribute"],
    "bound_predicate": ["BoundPredicate", "any_of", "bind"],
    "build": ["RelationBuilder", "build_relations"],
    "calls": ["may_aggregate", "may_be_many", "windows_in"],
    "equality": ["EquivalenceClasses"],
    "from_clause": ["FromClause"],
    "implied_predicates": ["ImpliedPredicates"],
    "inequality": ["implied_bounds"],
    "names": ["FromItem", "VisibleNames"],
    "nodes": [
        "Aggregate",
        "Apply",
        "Derived",
        "Distinct",
        "Filter",
        "Join",
        "JoinType",
        "Limit",
        "Opaque",
        "Project",
        "Relation",
        "Scan",
        "SetKind",
        "SetOperation",
        "Sort",
        "SubqueryForm",
        "Unknown",
        "Values",
        "Window",
        "owners",
        "postorder",
    ],
    "null_rejecting": ["rejects_nulls"],
    "prunability": ["predicates_of_relations", "predicates_of_scans"],
    "text": ["predicate_text", "relation_text"],
    "uniqueness": ["is_unique"],
    "unread_side": ["is_unread"],
}

__all__, __getattr__ = exports(__name__, _FILES)
