"""What the suites over TPC-H and TPC-DS share: where their data come from, and how tables get into a cluster and into
DuckDB.
"""
