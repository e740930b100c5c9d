"""The options by which the format ``secateur`` follows the changes of a table.

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
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from secateur.connectors.spark.admission import BatchLimit
from secateur.connectors.spark.endpoint import Endpoint
from secateur.connectors.spark.read_options import given_options, positive
from secateur.errors import ProgrammingError

_LIMITS: Final = ("maxRowsPerTrigger", "maxBytesPerTrigger")
_OPTIONS: Final = ("address", "token", "tlsCa", "tlsServerName", "table", "changeFeed", "startingPosition", *_LIMITS)


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
