"""A cost model that decides whether a statement of many parts is gathered or runs in stages.

The two forms differ in the time that they take beyond DuckDB's time over its own tables. A gathered statement pays for
each byte that moves, once, and for each table reference in the one kernel call that joins them. A statement in stages
pays for each reference at every member, in kernels that know the number of an input's rows but not their values, and
for the bytes that its stages send each other, which filters and co-location may make few. DuckDB joins eleven inputs of
such a stage in a bad order.

A bound on the gathered bytes alone cannot decide: q02 of TPC-H gathers 27 MB and exchanges 1, q04 of TPC-DS gathers 42
and exchanges 66.

The defaults were measured with three members on two cores: statements of TPC-DS at scale factor 0.1 and of TPC-H at
scale factor 1 ran alternately in both forms, in one process and, for q02 and q11 of TPC-H, as Ray actors; their time
beyond DuckDB's was fitted to properties that the planner knows. More members raise the cost of a statement in stages,
more cores lower it.

Source: plans weighed by their work and by what they send, as in System R* (Mackert and Lohman, 1986).
"""

from __future__ import annotations

from secateur.planner.cost_model import CostModel


def gathered_ms(nbytes: float, parts: int, model: CostModel) -> float:
    """The cost of gathering a statement, in milliseconds.

    Args:
        nbytes: Bytes that its scans send.
        parts: References to tables and queries in it.
        model: The cost model, of which the ``gather_`` numbers are used.
    """
    return model.gather_ms + model.gather_ms_per_byte * nbytes + model.gather_ms_per_part * parts


def placed_ms(sent: float, parts: int, model: CostModel) -> float:
    """The cost of running a statement in stages, in milliseconds, as :func:`gathered_ms`.

    Args:
        sent: Bytes that its stages send; 0 gives a lower bound, for a statement that has not been placed yet.
        parts: As in :func:`gathered_ms`.
        model: The cost model, of which the ``stages_`` numbers are used.
    """
    return model.stages_ms_per_part * parts + model.stages_ms_per_byte * sent
