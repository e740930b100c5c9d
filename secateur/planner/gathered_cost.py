"""Whether a statement of many parts is gathered or runs in stages: a cost model of the two forms.

What differs between them is the time beyond what DuckDB takes over its own tables. A statement that is gathered pays
for each byte that moves, once, and for each reference to a table in the one kernel call that joins them. A statement in
stages pays for each reference at every member, in kernels that know how many rows an input has but nothing of their
values, and for what its stages send each other, which filters and co-location may leave little of.

The defaults of the numbers are of three members on two cores: statements of TPC-DS at scale factor 0.1 and of TPC-H at scale factor 1
ran in both forms by turns, in one process and, q02 and q11 of TPC-H, as Ray actors; what they took beyond DuckDB was
fitted to what the planner knows of them. More members raise the cost of a statement in stages, more cores lower it.

Source: plans weighed by their work and by what they send, as in System R* (Mackert and Lohman, 1986).
"""

from __future__ import annotations

from secateur.planner.cost_model import CostModel

__all__ = ["gathered_ms", "placed_ms"]


def gathered_ms(nbytes: float, parts: int, model: CostModel) -> float:
    """What it costs to gather a statement, in milliseconds.

    Args:
        nbytes: Bytes that its scans send.
        parts: References to tables and queries in it.
        model: The ``gather_`` numbers count.
    """
    return model.gather_ms + model.gather_ms_per_byte * nbytes + model.gather_ms_per_part * parts


def placed_ms(sent: float, parts: int, model: CostModel) -> float:
    """What it costs to run a statement in stages, as :func:`gathered_ms`.

    Args:
        sent: Bytes that its stages send; 0 gives a lower bound, for a statement that has not been placed yet.
        parts: As there.
        model: The ``stages_`` numbers count.
    """
    return model.stages_ms_per_part * parts + model.stages_ms_per_byte * sent
