"""Secateur: tables in memory, partitioned over members; SQL and DAG jobs run only where their partitions live."""
