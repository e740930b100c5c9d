"""A job with one combiner, on a member that is only chosen when the job starts: lazy total parallelism one.

The partial results of a tenant's devices are added up on the member that owns the tenant, whichever that is at the
time; the DAG is built once and used for every tenant.

Run it with ``python -m examples.single_combiner``.
"""

from __future__ import annotations

import pyarrow as pa

import secateur
from secateur.connectors import collect, table_source
from secateur.dag import DAG, Param, between, lazy_total_parallelism_one
from secateur.processors import accumulate, avg_of, combine, count_rows, max_of

__all__ = ["dag_of_tenant", "main"]

READINGS = pa.table(
    {
        "tenant": [("acme", "blue", "corp")[number % 3] for number in range(3_000)],
        "device": [number % 12 for number in range(3_000)],
        "second": [number // 12 for number in range(3_000)],
        "celsius": [float((number * 37) % 97) / 2 for number in range(3_000)],
    }
)
ANSWER = {"readings": count_rows(), "mean": avg_of("celsius"), "hottest": max_of("celsius")}


def dag_of_tenant() -> DAG:
    """Reads a tenant's devices where they are, combines their partial results where the tenant is at home."""
    dag = DAG()
    dag.new_vertex("read", table_source("readings", where={"tenant": Param("tenant"), "device": range(12)}))
    dag.new_vertex("partial", accumulate(["tenant"], ANSWER))
    dag.new_vertex(
        "combine", lazy_total_parallelism_one(combine(["tenant"], ANSWER), "tenants", {"tenant": Param("tenant")})
    )
    dag.new_vertex("result", collect())
    dag.edge(between("read", "partial")).edge(between("partial", "combine").distributed()).edge(
        between("combine", "result").distributed()
    )
    return dag


def main() -> None:
    """Load readings by device and tenants by name, run the same DAG for each tenant, show where it was combined."""
    with secateur.start(members=3, runtime="embedded") as cluster, cluster.connect() as conn:
        conn.execute(
            "CREATE TABLE tenants (tenant VARCHAR, PRIMARY KEY (tenant)) PARTITION BY HASH (tenant) PARTITIONS 16"
        )
        conn.execute(
            "CREATE TABLE readings (tenant VARCHAR, device BIGINT, second BIGINT, celsius DOUBLE, PRIMARY KEY (tenant,"
            " device, second)) PARTITION BY HASH (tenant, device) PARTITIONS 32"
        )
        conn.table("readings").load(READINGS)
        dag, tenants = dag_of_tenant(), conn.table("tenants")
        for tenant in ("acme", "blue", "corp"):
            job = conn.submit(dag, secateur.JobConfig(), {"tenant": tenant})
            print(job.result(timeout_s=60).to_pylist()[0])
            combined_on = [entry["member"] for entry in job.metrics() if entry["vertex"] == "combine"]
            print(
                f"combined on {len(combined_on)} member, the tenant's owner:"
                f" {combined_on == [tenants.owner_of(tenants.partition_of({'tenant': tenant}))]}"
            )


if __name__ == "__main__":
    main()
