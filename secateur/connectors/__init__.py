"""Sources and sinks of DAGs, as meta-suppliers: tables, batches in hand, the result of the job, and Spark."""
