"""The options by which the format ``secateur`` follows the changes of a table, and the size of a batch.

==================  ====================================================================================
option              meaning
==================  ====================================================================================
address, token      of the cluster, as for reads; tlsCa and tlsServerName likewise
table               the table, which was created ``WITH (change_feed = true)``
changeFeed          ``true``: Spark asks for columns before it says that they are for a stream
startingPosition    where a query without a checkpoint begins: ``latest`` (the default), ``earliest``,
                    or the text of a position of ``conn.changes``
maxRowsPerTrigger   about so many rows of changes has a batch at most; or
maxBytesPerTrigger  about so many bytes of them: one of the two, with Spark 4.2 or later
==================  ====================================================================================

The limits of batches are those of Spark 4.2 and later. Spark 4.1 has none: its streams take all that there is with
every batch, and an option that limits them is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.read_options import given_options, positive
from secateur.errors import NotSupportedError, ProgrammingError

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxRows,
    )
    from pyspark.sql.streaming.datasource import (
        SupportsTriggerAvailableNow as SupportsTriggerAvailableNow,
    )
except ImportError:  # Spark 4.1
    ReadAllAvailable = ReadMaxBytes = ReadMaxRows = None
    SupportsTriggerAvailableNow = object

_LIMITS: Final = ("maxRowsPerTrigger", "maxBytesPerTrigger")
_OPTIONS: Final = ("address", "token", "tlsCa", "tlsServerName", "table", "changeFeed", "startingPosition", *_LIMITS)


@dataclass(frozen=True, slots=True)
class BatchLimit:
    """About so many rows, or bytes of rows, are wanted with a batch.

    Attributes:
        size_max: The number.
        in_rows: Whether it is one of rows.
    """

    size_max: int
    in_rows: bool

    @classmethod
    def of_spark(cls, limit: Any) -> BatchLimit | None:
        """Read the limit that Spark gives to a batch; None for none, and from a Spark without limits."""
        if ReadMaxRows is not None and isinstance(limit, ReadMaxRows):
            return cls(limit.max_rows, in_rows=True)
        if ReadMaxBytes is not None and isinstance(limit, ReadMaxBytes):
            return cls(limit.max_bytes, in_rows=False)
        return None

    @staticmethod
    def to_spark(limit: BatchLimit | None) -> Any:
        """The limit as Spark has it.

        Raises:
            NotSupportedError: This Spark has none.
        """
        if ReadMaxRows is None:
            if limit is None:
                return None
            raise NotSupportedError(
                "options maxRowsPerTrigger and maxBytesPerTrigger need Spark 4.2 or later: this one takes all changes"
                " that there are with every batch; leave them out"
            )
        if limit is None:
            return ReadAllAvailable()
        return ReadMaxRows(limit.size_max) if limit.in_rows else ReadMaxBytes(limit.size_max)


def is_change_feed(options: Mapping[str, str]) -> bool:
    """Whether the changes of a table are to be read, rather than its rows."""
    return given_options(options).get("changefeed", "false").strip().lower() == "true"


def stream_options(options: Mapping[str, str]) -> tuple[Endpoint, str, str | None, BatchLimit | None]:
    """Read the options of ``spark.readStream``.

    Returns:
        The cluster, the table, where to begin: None for now; and how much a batch is to have: None for all there is.

    Raises:
        ProgrammingError: An option is missing or unknown, or there are two limits.
        NotSupportedError: There is a limit, and this Spark has none.
        InterfaceError: There is no address.
    """
    given = given_options(options)
    unknown = sorted(given.keys() - {name.casefold() for name in _OPTIONS})
    if unknown:
        raise ProgrammingError(
            f"format secateur has no option {', '.join(unknown)} to read a stream with; it has {', '.join(_OPTIONS)}"
        )
    table = given.get("table")
    if not table or not is_change_feed(options):
        raise ProgrammingError(
            'a stream is of the changes of a table: .option("table", ...).option("changeFeed", "true"), where the table'
            " was created WITH (change_feed = true)"
        )
    since = given.get("startingposition", "latest").strip()
    return Endpoint.of_options(given), table, None if since.lower() == "latest" else since, _limit(given)


def _limit(given: Mapping[str, str]) -> BatchLimit | None:
    limits = [
        BatchLimit(positive(option, given[option.casefold()]), in_rows=option == _LIMITS[0])
        for option in _LIMITS
        if option.casefold() in given
    ]
    if len(limits) > 1:
        raise ProgrammingError(f"options {' and '.join(_LIMITS)} limit the same batches: leave one out")
    if not limits:
        return None
    BatchLimit.to_spark(limits[0])  # refuses it, if this Spark has no limits
    return limits[0]
