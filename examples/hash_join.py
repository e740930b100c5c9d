"""A hand-built DAG: orders stay, a small table of customers is sent to them and joined, totals meet by segment.

Run it with ``python -m examples.hash_join``.
"""

from __future__ import annotations

import pyarrow as pa

import secateur
from secateur.connectors import batch_source, collect, table_source
from secateur.dag import DAG, between, from_
from secateur.processors import accumulate, combine, count_rows, hash_join, sum_of

__all__ = ["build", "main"]

CUSTOMERS = pa.table(
    {
        "id": [f"C{number}" for number in range(100)],
        "segment": ["gold" if number % 5 < 2 else "silver" for number in range(100)],
    }
)
ORDERS = pa.table(
    {
        "customer": [f"C{number % 100}" for number in range(1_000)],
        "number": range(1_000),
        "amount": [float((number * 17) % 401) for number in range(1_000)],
    }
)


def build() -> DAG:
    """The DAG: what each vertex does, and how rows travel between them."""
    totals = {"orders": count_rows(), "amount": sum_of("amount")}
    dag = DAG()
    dag.new_vertex("orders", table_source("orders", columns=["customer", "amount"]))
    dag.new_vertex("customers", batch_source(CUSTOMERS))
    dag.new_vertex("join", hash_join({"customer": "id"}))
    dag.new_vertex("partial", accumulate(["segment"], totals))
    dag.new_vertex("total", combine(["segment"], totals))
    dag.new_vertex("result", collect())
    dag.edge(from_("orders").to("join", 0))
    dag.edge(from_("customers").to("join", 1).broadcast().distributed().with_priority(-1))
    dag.edge(between("join", "partial"))
    dag.edge(between("partial", "total").partitioned("segment").distributed())
    dag.edge(between("total", "result").distributed())
    return dag


def main() -> None:
    """Load orders into three members, show the edges, run the job, print orders and amounts by segment."""
    dag = build()
    for edge in dag.freeze().edges:
        first = ", read first" if edge.priority < 0 else ""
        print(f"{edge.source} -> {edge.destination}: {type(edge.routing).__name__} {type(edge.reach).__name__}{first}")
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE orders (customer VARCHAR, number BIGINT, amount DOUBLE, PRIMARY KEY (customer, number))"
            " PARTITION BY HASH (customer) PARTITIONS 64"
        )
        conn.table("orders").load(ORDERS)
        job = conn.submit(dag, secateur.JobConfig())
        for row in job.result(timeout_s=60).sort_by("segment").to_pylist():
            print(f"{row['segment']:<7} {row['orders']} orders  {row['amount']}")
        print(
            "members that joined:",
            ", ".join(sorted(entry["member"] for entry in job.metrics() if entry["vertex"] == "join")),
        )


if __name__ == "__main__":
    main()
