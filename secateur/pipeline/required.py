"""The partitions that a pipeline needs, from what its sources read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from secateur.connectors.batches import BatchSource
from secateur.connectors.files import FileSource
from secateur.connectors.iterable import IterableSource
from secateur.connectors.table import TableSource
from secateur.dag.processor import Params
from secateur.partitioning.table import TableDef
from secateur.pipeline.step import Step

__all__ = ["required_partitions"]


def required_partitions(steps: Sequence[Step], table: Callable[[str], TableDef], params: Params) -> dict[str, frozenset[int]] | None:
    """What ``JobConfig.required_partitions`` may say about a pipeline.

    Args:
        steps: All of its steps.
        table: Finds a table's description.
        params: The parameters of the job.

    Returns:
        Partitions by table; None when no table is read in part, or when a source may need members that own none of them.

    Raises:
        Error: As ``TableSource.partitions_in``, or ``table``.
    """
    sources = [(step.name, step.vertex.meta_supplier) for step in steps if not step.inputs]
    tables = [(name, source) for name, source in sources if isinstance(source, TableSource)]
    if not any(source.is_restricted for _, source in tables) or not all(_adds_no_member(source) for _, source in sources):
        return None
    required: dict[str, frozenset[int]] = {}
    for name, source in tables:
        definition = table(source.table)
        if not definition.replicated:
            partitions = frozenset(source.partitions_in(definition, params, name))
            required[source.table] = required.get(source.table, frozenset()) | partitions
    return required


def _adds_no_member(source: object) -> bool:
    """Whether a source runs on whichever members take part, or says which partitions it needs."""
    match source:
        case TableSource() | BatchSource() | IterableSource():
            return True
        case FileSource():
            return source.shared
        case _:
            return False
