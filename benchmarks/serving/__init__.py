"""Serving: how long a selective statement takes, and how fast Spark fills the tables that it reads.

Questions
    Does a statement that one member can answer cost less than one empty Ray actor call? (bar: at most half of it, p50)
    Does Spark load a table at the rate at which it writes Parquet? (bar: at least half of it)
Data
    ``orders``: 1,000,000 rows, 10,000 customers with 100 orders each, hashed on the customer into 271 partitions over 3
    Ray members.
Statements
    A point lookup by the whole primary key and a GROUP BY over one customer, with pruning on and off, each with another
    random customer every time.
Metric
    p50 and p99 of the time from ``execute`` to the last row, in one thread of one client, and statements per second of
    that client. Rounds alternate between all candidates and the control, so that a busy moment of the machine hits all
    of them; medians over the rounds, and their range.
Control
    ``ray.get(actor.nothing.remote())`` on an idle actor in the same rounds; for loads, the same cached DataFrame
    written as Parquet to the local disk.

Answers are compared with DuckDB before any time is taken.
"""
