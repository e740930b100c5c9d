"""TPC-H on a cluster: how near one DuckDB process with the same cores, and how far before Spark."""
