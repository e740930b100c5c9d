"""A stage of a pipeline whose rows have a key, and the operations for which equal keys must meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from secateur.dag.edge import Edge
from secateur.errors import DagError
from secateur.processors import AggregateExpression, AggregateOperation, accumulate, combine, distinct

if TYPE_CHECKING:
    from secateur.pipeline.stage import Stage

__all__ = ["KeyedStage"]


@dataclass(frozen=True, slots=True)
class KeyedStage:
    """Rows with a key. Made by :meth:`Stage.key_by`.

    Attributes:
        stage: The rows.
        keys: The columns of the key.
    """

    stage: Stage
    keys: tuple[str, ...]

    @classmethod
    def of(cls, stage: Stage, keys: tuple[str, ...]) -> Self:
        """The rows of a stage by some columns.

        Raises:
            DagError: No column is named, or one twice.
        """
        if not keys or len(set(keys)) < len(keys):
            raise DagError(
                f"stage 'key by' after {stage.step.name!r}: the keys are {', '.join(keys) or 'none'}; name at least one"
                " column, each once"
            )
        return cls(stage, keys)

    def aggregate(self, *, name: str | None = None, **aggregates: AggregateExpression | AggregateOperation) -> Stage:
        """One row for each key, in two stages: partial results where the rows are, the answer where the keys meet.

        Each argument is a result column: ``key_by("a").aggregate(n=count_rows(), total=sum_of("x"))``; the columns of
        the key come first.

        Raises:
            DagError: Nothing to compute, two columns of one name, or aggregates that ship mixed with operations of
                one's own.
        """
        values: Any = aggregates
        return self.stage.in_two(
            lambda: accumulate(self.keys, values),
            lambda: combine(self.keys, values),
            self._to_the_key,
            ("accumulate", "combine"),
            name,
        )

    def distinct(self, *, name: str | None = None) -> Stage:
        """Keep the first row that arrives for each key."""
        return self.stage.in_two(
            lambda: distinct(*self.keys),
            lambda: distinct(*self.keys),
            self._to_the_key,
            ("distinct here", "distinct"),
            name,
        )

    def _to_the_key(self, edge: Edge) -> Edge:
        return edge.partitioned(*self.keys).distributed()
