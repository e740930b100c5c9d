"""The limits of a member: block sizes, queues and bounds of its storage and its engine.

A cluster is started with them (``secateur.start(engine_limits=...)``), and every member has the same. They are read
where objects are made, or where many rows are worked on, and never per statement on one key.
"""

from __future__ import annotations

from dataclasses import dataclass

from secateur.tunable import check_tunables, tunable


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Bounds of one member's storage and engine. No number changes the rows of an answer.

    Raises:
        ProgrammingError: A number is out of bounds.
    """

    executions_max: int = tunable(
        4096,
        "jobs",
        "jobs that may run on a member at once; one more is refused",
        "not measured: chosen so that a member refuses before its loop does nothing but switch between jobs",
        least=1,
    )
    early_bytes_max: int = tunable(
        256 << 20,
        "bytes",
        "rows kept for jobs whose start has not arrived yet, all jobs together",
        "not measured: chosen so that a few receive windows of 16 MB fit",
    )
    early_wait_s: float = tunable(
        30.0,
        "seconds",
        "how long rows for a job are kept whose start does not arrive",
        "not measured: chosen longer than a member takes to be given up",
    )
    cancel_wait_s: float = tunable(
        5.0,
        "seconds",
        "how long a coordinator waits, after a failure, for the other participants to say that they have stopped",
        "not measured: chosen as long as a silent member takes to be given up",
    )
    frame_bytes_max: int = tunable(
        4 << 20,
        "bytes",
        "rows in one exchange message, unless a single batch is larger",
        "not measured: chosen so that several messages fit into a receive window of 16 MB",
        least=1,
    )
    slice_s: float = tunable(
        0.002,
        "seconds",
        "how long processors may keep the event loop before the network gets its turn",
        "not measured: chosen as about two calls of a cooperative processor, which may take a millisecond each",
    )
    block_rows: int = tunable(
        1 << 22,
        "rows",
        "sorts, aggregations and top-n reduce so many rows at a time, if their bytes let them",
        "with 100,000 keys, blocks of a quarter of it take half as long again: what is kept is grouped anew with each"
        " block",
        least=1,
    )
    block_bytes: int = tunable(
        64 << 20,
        "bytes",
        "sorts, aggregations, top-n and hash joins reduce or probe so many bytes at a time, whatever their rows",
        "not measured: chosen so that a processor holds a small part of its gigabyte as new rows",
        least=1,
    )
    probe_block_rows: int = tunable(
        1 << 16,
        "rows",
        "a hash join collects at least so many rows of its probe side before it calls the kernel",
        "not measured: chosen as the rows of one batch; DuckDB builds the hash table anew for each block",
        least=1,
    )
    partials_max: int = tunable(
        1 << 20,
        "groups",
        "a partial aggregation with more groups sends them on instead of waiting for more rows",
        "not measured: with so many keys, waiting for more rows saves little",
    )
    partial_bytes_max: int = tunable(
        128 << 20,
        "bytes",
        "a partial aggregation whose groups have more bytes sends them on",
        "not measured: chosen as partials_max groups of 128 bytes",
    )
    piece_bytes: int = tunable(
        4 << 20,
        "bytes",
        "what the first kernel call of a stage that answers row by row reads",
        "not measured: what it answers may be all of it, and be held by several queues at once",
        least=1,
    )
    piece_bytes_max: int = tunable(
        64 << 20,
        "bytes",
        "what later calls of such a stage read where little comes of it",
        "not measured: then starting a call, and sending what it answers, is what costs",
        least=1,
    )
    estimate_miss_factor: float = tunable(
        8.0,
        "times",
        "a step or scan that finds so many times more or fewer values than expected has its statistics collected anew",
        "not measured: chosen above what uneven values do to an estimate that takes them for even",
        least=1,
    )
    connector_listing_s: float = tunable(
        60.0,
        "seconds",
        "how long the connector of an external table may take to name its columns or its partitions",
        "not measured: chosen longer than listing a store of many thousand files takes",
    )
    duckdb_slots_max: int = tunable(
        64,
        "connections",
        "idle DuckDB connections that the kernel of a process keeps with their prepared statements",
        "not measured: chosen above the kernel threads of a member",
    )
    delta_rows_min: int = tunable(
        256,
        "rows",
        "recent changes of a partition are kept beside its sorted rows up to this number, however small it is",
        "not measured: chosen so that a small partition is not merged at every write",
    )
    delta_rows_max: int = tunable(
        4096,
        "rows",
        "recent changes of a partition are merged into its sorted rows beyond this number, however large it is",
        "not measured: chosen so that a reader merges a bounded number of changes",
    )
    delta_share: int = tunable(
        64,
        "rows per row",
        "between these bounds, one part in so many of the rows of a partition may be recent changes",
        "a merge then costs each written row a constant share of it",
        least=1,
    )
    rows_per_search: int = tunable(
        2048,
        "rows",
        "the rows that a kernel filters in the time of one more key search: more ranges than pay are one search",
        "10 us for a search and the chunk that it makes, measured with 2 to 32 keys of 4,096 rows",
    )
    scan_form_rows_min: int = tunable(
        50_000,
        "rows",
        "scans of fewer rows read columns in the types in which they are stored",
        "not measured by itself: the converted form takes a fifth less of DuckDB's time for the queries of TPC-H, and"
        " there is little to be gained on few rows",
    )
    scan_run_rows_min: int = tunable(
        65_536,
        "rows",
        "partitions that are smaller on average are scanned in runs of at least so many rows",
        "over 271 arrays a table the 99 queries of TPC-DS at scale factor 0.1 took DuckDB 1.56 of the time that they"
        " took over one array",
        least=1,
    )
    scan_run_bytes_max: int = tunable(
        256 << 20,
        "bytes",
        "a run of a column with more bytes stays in its parts",
        "not measured: its values are large, so that the number of arrays does not matter, and a copy of them does",
    )
    change_feed_bytes_max: int = tunable(
        16 << 20,
        "bytes",
        "the changes of a partition that are kept for readers of its change feed, where its table has one",
        "not measured: chosen as minutes of a thousand small writes a second",
        least=1,
    )
    load_outcomes_max: int = tunable(
        10_000,
        "loads",
        "outcomes that a member remembers, so that a publication that is repeated is recognised",
        "not measured: chosen as hours of one load a second",
        least=1,
    )
    write_wait_s: float = tunable(
        20.0,
        "seconds",
        "how long a write waits for a load or change that holds its table before it is refused",
        "less than a client waits for an answer, so that it learns for certain that nothing was written",
    )
    confirm_wait_s: float = tunable(
        10.0,
        "seconds",
        "how long a write waits for a copy that is out of reach to come back, or to be counted out",
        "as long as a client asks again",
    )
    settled_after_s: float = tunable(
        1.0,
        "seconds",
        "copies are told at the latest so long after a write that all have it, so that they need not keep it",
        "not measured: the next write tells them at once, so this bounds what idle partitions keep",
    )

    def __post_init__(self) -> None:
        check_tunables(self)
