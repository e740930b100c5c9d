"""Scores the features of one customer with a Python model, in a job on the one member that has them.

Run it with ``python -m examples.feature_lookup``.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

import secateur
from secateur.connectors import collect
from secateur.dag import Param

__all__ = ["ChurnModel", "main"]

CUSTOMERS = 1_000
DAYS = 30


@dataclass(frozen=True, slots=True)
class ChurnModel:
    """Stands for whatever was trained elsewhere. It travels with the job, by cloudpickle.

    Attributes:
        bias: Log-odds of a customer without activity.
        weights: Weight by feature.
    """

    bias: float
    weights: tuple[tuple[str, float], ...]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """One score for the days of a customer."""
        score = self.bias + sum(weight * pc.mean(batch[feature]).as_py() for feature, weight in self.weights)
        return pa.record_batch(
            {"customer": batch["customer"].slice(0, 1), "days": [batch.num_rows], "score": [round(score, 3)]}
        )


def features() -> pa.Table:
    """30 days of 1,000 customers."""
    customers = [f"C{number // DAYS}" for number in range(CUSTOMERS * DAYS)]
    days = [number % DAYS for number in range(CUSTOMERS * DAYS)]
    visits = [(number * 7) % 11 for number in range(CUSTOMERS * DAYS)]
    spend = [float((number * 13) % 50) for number in range(CUSTOMERS * DAYS)]
    return pa.table({"customer": customers, "day": days, "visits": visits, "spend": spend})


def main() -> None:
    """Load features into three members, score two customers, show who worked."""
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE features (customer VARCHAR, day BIGINT, visits BIGINT, spend DOUBLE, PRIMARY KEY (customer,"
            " day)) PARTITION BY HASH (customer) PARTITIONS 64"
        )
        rows = conn.table("features").load(features())
        print(f"{rows:,} rows on {len(cluster.members())} members")
        model = ChurnModel(bias=1.5, weights=(("visits", -0.25), ("spend", -0.01)))
        # The model answers within a millisecond, so it needs no thread of its own: most of what that would cost is a
        # job's start.
        scores = (
            secateur.Pipeline()
            .read_table("features", keys=[{"customer": Param(0)}])
            .map(model, cooperative=True, name="score")
            .write_to(collect())
        )
        for customer in ("C7", "C8"):
            before = {member.id: member.frames_received for member in cluster.members()}
            job = scores.submit(conn, params=[customer])
            print(job.result(timeout_s=60).to_pylist()[0])
            heard = [member.id for member in cluster.members() if member.frames_received > before[member.id]]
            table = conn.table("features")
            print(
                f"members that heard of it: {len(heard)} of {len(before)}, the owner:"
                f" {heard == [table.owner_of(table.partition_of({'customer': customer}))]}"
            )


if __name__ == "__main__":
    main()
