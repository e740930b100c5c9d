"""The text and the pruning of a planned statement, as ``secateur.statements`` shows them.

Source: Apache Ignite IEP-24, "Management and Monitoring".
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from secateur.engine.sql.select_plan import SelectPlan
from secateur.errors import Error
from secateur.partitioning.pruning.nodes import All, Everywhere
from secateur.planner.explain.scan_facts import parameter_titles, with_parameter_names
from secateur.planner.text.tokens import TokenKind, tokenize

_FINGERPRINT_BYTES: Final = 8
_LITERALS: Final = frozenset({TokenKind.NUMBER, TokenKind.STRING})


@dataclass(frozen=True, slots=True)
class StatementFacts:
    """A statement and its plan.

    Attributes:
        statement: The text.
        fingerprint: Equal for statements that differ only in literals, spaces, comments and the case of words.
        tree: The partition trees of its scans, as EXPLAIN shows them.
        is_prunable: Whether there are values of the parameters for which some scan leaves partitions out.
        reason: Why scans cannot be pruned, with what to do; None where every scan can.
        is_system: Whether it reads system tables only.
    """

    statement: str
    fingerprint: str
    tree: str
    is_prunable: bool
    reason: str | None
    is_system: bool


def facts_of(statement: str, plan: SelectPlan) -> StatementFacts:
    """The facts of a statement. Cost: that of tokenizing its text."""
    reasons = dict.fromkeys(scan.reason for scan in plan.scans if scan.reason is not None)
    return StatementFacts(
        statement,
        fingerprint(statement),
        with_parameter_names("; ".join(str(scan.tree) for scan in plan.scans), parameter_titles(plan)),
        any(scan.reason is None and not isinstance(scan.tree.root, (All, Everywhere)) for scan in plan.scans),
        "; ".join(reasons) or None,
        plan.reads_system_tables_only,
    )


def fingerprint(statement: str) -> str:
    """Return a digest of a text in which every literal, and every ``$1``, is ``?``."""
    try:
        words = [
            "?" if token.kind in _LITERALS else token.text.casefold()
            for token in tokenize(statement)
            if token.text != "$"
        ]
    except Error:
        words = [statement]
    return blake2b("\x1f".join(words).encode(), digest_size=_FINGERPRINT_BYTES).hexdigest()
