"""Peers: the same statements over the same rows on systems that people would use instead, on one machine.

Question
    How long do statements that name one key, a few keys, or none take beside systems that hold tables in memory, and
    where is a peer faster?
Data
    ``orders``: 1,000,000 rows, a hundred for each customer; ``customers``; ``product``, nine rows which every member
    has. Three members each, one backup.
Statements
    ``statements.py``, each bound to some hundred values.
Peers
    ``peer_list.py``. Each is one file in ``adapters``, or Java in ``java``, and gets an environment of its own below
    ``build/peers``. One that cannot be installed is named in the report, and the others run.
Metric
    p50, p95 and p99 of the time from the call to the last row as values of the language; answers a second; processor
    time of clients and members for a statement; bytes that all of them send; members that receive something. One client
    in rounds that alternate between all candidates; 8 and 32 clients in a closed loop, and 8 at fixed rates
    (``pacing.py`` says how those are timed), one candidate after the other.
Control
    200 bytes to a process and back over a socket with TCP_NODELAY, right before each round; an empty call of a Ray
    actor.

Answers are compared with DuckDB before any time is taken. All peers are up all the time; those that are not measured
are idle.
"""
