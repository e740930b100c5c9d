"""The engine: the cost of starting a job, the throughput of rows, many small jobs at once, and the cost of metrics.

Questions
    Does a job on one of N members cost the same for N = 2 and N = 16, in frames and in time, in both runtimes? (bar:
    within 10 %) Do scan, partitioned edge and aggregation over 10 million rows on three members run at half the speed
    of DuckDB in one process on the same cores, and five times as fast as Ray Data's groupby? (bars: 0.5 and 5)
    Do 1,000 light jobs at once end well, in bounded memory? (bar: the 99th percentile is at most 5 times what they take
    one after another) Do metrics cost less than 3 % where batches are small? (bar: 1.03)
    Would shared memory carry large batches faster than sockets, on one host? (no bar: it decides whether to build it)
Data
    ``events``: an id, which is the key, a group and a number. 10 million rows for throughput with 1,000 and with
    100,000 groups, 64,000 for the rest.
Metric
    Medians over rounds that alternate between all candidates and the control, so that a busy moment of the machine hits
    all of them. Bars are ratios within one run. Times of throughput are given as processor time as well, which does not
    depend on who else uses the machine.
Control
    DuckDB on a table of its own, with as many threads as the machine has cores; Ray Data on blocks in the object store;
    in each case the same rows, and the answers are compared before any time is taken.

``python -m benchmarks.engine``; ``--only throughput`` and the like for one of the parts. The picture of the start-up
cost goes beside the JSON.
"""
