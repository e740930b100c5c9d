"""secateur beside what a Python user would pick instead: PostgreSQL by psycopg 3, and Redis by redis-py.

Question
    How long does a short statement take a Python client, beside one to PostgreSQL or Redis? (bars: a line each)
Data
    ``orders``: 1,000,000 rows, ten of each of 100,000 customers, and a table of 1,000 products. secateur has three Ray
    members and a backup of each partition; PostgreSQL and Redis are one server each, without a copy.
Control
    PostgreSQL with the settings of its package, statements prepared, values in binary form; Redis without files, a hash
    for each order. Lines that say ``not flushed`` are those of PostgreSQL with ``synchronous_commit = off``: its answer
    then waits for no disk, as those of secateur and Redis do not.
Metric
    p50 of the time from the call to its last row as values of Python, in microseconds, the median of rounds in which
    all systems take their turn; then the calls a second of eight client processes.
Pinning
    ``two`` keeps the client on one processor and all servers on another, ``one`` keeps all on one; with ``no``, the
    scheduler chooses, which changes an echo by a factor of six: figures of two such runs do not compare.

Each line's answers are compared with rows that no database has computed, before the line is measured; a difference ends
the run without figures. What is only read is measured before the first write.
"""
