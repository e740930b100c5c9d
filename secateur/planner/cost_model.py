"""The cost model of the planner: every threshold and weight by which it chooses between plans that give the same rows.

A cluster is started with one (``secateur.start(cost_model=...)``), and a session changes single numbers with ``SET``.
The defaults were found on two cores with three members; "not measured" says where a number was only chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from secateur.errors import ProgrammingError
from secateur.tunable import Tunable, check_tunables, tunable, tunables_of


@dataclass(frozen=True, slots=True)
class CostModel:
    """The planner's assumptions about costs. Equal models give equal plans.

    A threshold in bytes, rows or milliseconds takes 0 (or less, where that is allowed) for "always" and infinity for
    "never". No number changes the rows of an answer.

    Raises:
        ProgrammingError: A number is out of bounds.
    """

    routed_bytes_min: float = tunable(
        250_000.0,
        "bytes",
        "rows of a scan of fewer bytes are broadcast rather than sent to the owners of the rows that they are joined"
        " with",
        "not measured: chosen so that looking at each row costs less than the copies that it saves at three members",
    )
    shuffled_bytes_min: float = tunable(
        16e6,
        "bytes",
        "tables whose moving rows have fewer bytes than this stay where they are rather than being shuffled",
        "not measured: chosen so that a shuffle, which moves both sides of a join, starts where a broadcast takes"
        " some hundredths of a second",
    )
    shuffle_share: float = tunable(
        0.5,
        "share",
        "what it costs to send each row to one member, as a share of the cost of sending it to all members",
        "not measured: with three members a broadcast sends each row to two others, a shuffle to two thirds of one",
        most=1,
    )
    semi_join_share_max: float = tunable(
        0.5,
        "share",
        "a semi-join that is thought to leave more than this share of the rows is left out",
        "not measured: chosen so that the kernel call of a semi-join removes at least every second row",
        most=1,
    )
    semi_join_saved_bytes_min: float = tunable(
        3e6,
        "bytes",
        "semi-joins before rows are aggregated have to leave out at least so many bytes",
        "not measured by itself: chosen to be worth a join at each member; q17 of TPC-H at scale factor 1 aggregated"
        " all of lineitem for a thousandth of its parts",
        least=-1,
    )
    materialized_share_max: float = tunable(
        0.125,
        "share",
        "joins that leave at most this share of the rows of their largest input are computed before rows are tested by"
        " EXISTS, NOT EXISTS and the like",
        "q21 of TPC-H at scale factor 1: 98 ms in place of 349 for the kernel calls of a member",
        most=1,
    )
    distinct_share_max: float = tunable(
        0.25,
        "share",
        "rows that are only looked for are sent once each, where their distinct values are at most this share of them",
        "not measured by itself: q22 of TPC-H sends a fifteenth of the keys of orders",
        most=1,
    )
    unknown_bytes: float = tunable(
        1e6,
        "bytes",
        "what a scan is thought to need of a table without statistics",
        "not measured: chosen so that such a table is routed, but neither shuffled nor called small",
    )
    unknown_rows: float = tunable(
        1e4,
        "rows",
        "how many rows a relation has of which nothing is known",
        "not measured: chosen so that a row has 100 bytes where unknown_bytes is its default",
    )
    range_share: float = tunable(
        1 / 3,
        "share",
        "the rows that a comparison with a bound leaves, where the range of the column is not known",
        "Selinger et al. (1979)",
        most=1,
    )
    pattern_share: float = tunable(
        0.1,
        "share",
        "the rows that LIKE leaves, and that an equality leaves where the distinct values are not counted",
        "Selinger et al. (1979), for the equality",
        most=1,
    )
    condition_share: float = tunable(
        0.5, "share", "the rows that any other condition leaves", "not measured: as likely as not", most=1
    )
    unfiltered_bytes_max: float = tunable(
        1e6,
        "bytes",
        "a statement that is gathered takes tables of fewer bytes without filtering them first",
        "q64 of TPC-DS does not end when its small tables are filtered before they move: DuckDB takes what comes for"
        " a fraction of what is left; the bound itself was not measured",
    )
    filtered_share_max: float = tunable(
        0.5,
        "share",
        "a statement that is gathered filters the rows of larger tables where at most this share is thought to be left",
        "not measured: chosen so that a filter halves what moves",
        most=1,
    )
    gather_statement_bytes_max: float = tunable(
        64e6,
        "bytes",
        "a statement that could be taken apart is gathered only up to so many bytes",
        "not measured: chosen so that one member holds them without harm, as they come and for its kernel",
    )
    gather_parts_min: int = tunable(
        8,
        "mentions",
        "a statement of fewer references to tables and queries is not gathered for its cost",
        "statements of TPC-DS at scale factor 0.1 and TPC-H at scale factor 1: with fewer parts the two forms differ"
        " by less than the estimates are wrong",
    )
    gather_ms: float = tunable(
        10.0,
        "milliseconds",
        "what it costs to gather a statement at all: to send rows, and to join them elsewhere",
        "fitted to TPC-DS at scale factor 0.1 and TPC-H at scale factor 1, each statement in both forms by turns",
    )
    gather_ms_per_byte: float = tunable(
        1.9e-6,
        "milliseconds per byte",
        "what each gathered byte costs: it is written, checked and copied",
        "1.05 ms a megabyte within one process, 1.9 between Ray actors (the same runs)",
    )
    gather_ms_per_part: float = tunable(
        0.7,
        "milliseconds per mention",
        "what each reference to a table or query costs in the one kernel call of a gathered statement",
        "fitted to the same runs",
    )
    stages_ms_per_part: float = tunable(
        5.0,
        "milliseconds per mention",
        "what each reference to a table or query costs a statement in stages, at all members together",
        "4.8 within one process, 5.2 between Ray actors, at three members (the same runs)",
    )
    stages_ms_per_byte: float = tunable(
        2.5e-6,
        "milliseconds per byte",
        "what each byte costs that stages send each other",
        "1.7 to 4.6 ms a megabyte in single statements: a kernel makes these bytes, and the next joins them without"
        " statistics (the same runs)",
    )
    merged_bytes_min: float = tunable(
        float(32 << 20),
        "bytes",
        "rows of more bytes are sorted at the members and merged, of fewer at the coordinator",
        "of a million rows from three members merging takes 1.2 times the processor time of one sort, half of it at the"
        " coordinator; the bound itself was not measured",
    )
    scatter_partitions_max: int = tunable(
        64,
        "partitions",
        "a statement over at most so many partitions of several members asks each owner once instead of running a job;"
        " 0 for never",
        "not measured by itself: five keys take 0.46 of the time of a job, and each further partition costs its owner a"
        " search",
    )
    step_rows: int = tunable(
        250_000,
        "rows",
        "what a round trip before a statement costs, in rows read and joined meanwhile; smaller scans get no step",
        "not measured: chosen as what a kernel reads and joins in some milliseconds",
        least=-1,
    )
    step_read_weight: float = tunable(
        1.0,
        "rows per row",
        "what a row costs that a step reads, in rows that the statement reads",
        "a step reads rows as the statement does",
    )
    steps_max: int = tunable(
        3,
        "steps",
        "how many sides of the joins of a statement have their keys found first",
        "not measured: chosen so that a statement waits for at most three more round trips",
    )
    few_keys_max: int = tunable(
        4,
        "keys",
        "a scan that names at most so many keys is not worth a step",
        "not measured: chosen so that at most so many partitions are read instead",
    )

    def __post_init__(self) -> None:
        check_tunables(self)

    def with_settings(self, settings: Mapping[str, Any]) -> CostModel:
        """The same with the numbers that a session has set, as texts by name; names of other settings do not matter.

        Raises:
            ProgrammingError: A number is out of bounds.
        """
        chosen: dict[str, Any] = {}
        for name in settings.keys() & COST_SETTINGS.keys():
            known = COST_SETTINGS[name]
            chosen[name] = known.read(str(settings[name]))
            if chosen[name] is None:
                raise ProgrammingError(f"{name}={settings[name]!r}: expected {known.expected}")
        return replace(self, **chosen) if chosen else self


COST_SETTINGS: Final[Mapping[str, Tunable]] = {one.name: one for one in tunables_of(CostModel)}
"""Every number by its name, which is that of the setting of a session."""
