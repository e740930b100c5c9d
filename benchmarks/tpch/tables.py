"""The tables of TPC-H, partitioned by their natural keys: orders with their items, parts with their suppliers."""

from __future__ import annotations

from typing import Final

from benchmarks.tpc.tables import TpcTable

__all__ = ["TABLES"]

TABLES: Final = (
    TpcTable("region", ("r_regionkey",)),
    TpcTable("nation", ("n_nationkey",)),
    TpcTable("supplier", ("s_suppkey",), "s_suppkey"),
    TpcTable("customer", ("c_custkey",), "c_custkey"),
    TpcTable("part", ("p_partkey",), "p_partkey"),
    TpcTable("partsupp", ("ps_partkey", "ps_suppkey"), "ps_partkey"),
    TpcTable("orders", ("o_orderkey",), "o_orderkey"),
    TpcTable("lineitem", ("l_orderkey", "l_linenumber"), "l_orderkey"),
)
