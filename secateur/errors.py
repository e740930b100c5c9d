"""Every error that secateur raises, as one tree sorted by remedy.

The names required by PEP 249 are the trunk; ours are the branches::

    Error
    ├── InterfaceError                  wrong use of the client objects (closed cursor, no result)
    └── DatabaseError
        ├── ProgrammingError            the statement or the call is wrong: change it
        │   ├── SqlSyntaxError          the text does not parse; has line and column
        │   ├── UnknownTableError       no table of that name
        │   ├── UnknownColumnError      no column of that name
        │   ├── TableExistsError        CREATE TABLE of a name that is taken
        │   ├── SchemeError             a partition scheme that cannot be
        │   ├── ParameterError          wrong number, name or type of parameters
        │   ├── DagError                a DAG that cannot be built or deployed
        │   ├── JobExistsError          a job of that name has not ended yet
        │   ├── UnknownJobError         no job of that name or id, or it was forgotten
        │   └── SerializationError      a function or value that cannot travel
        ├── DataError                   a value that its column cannot hold
        ├── IntegrityError              the data contradict a constraint
        │   ├── DuplicateKeyError       a primary key that is already there
        │   ├── NullKeyError            a NULL where the column is NOT NULL
        │   ├── CheckFailedError        a row for which a CHECK of its table is FALSE
        │   └── NoRangeError            a row that no range partition covers
        ├── OperationalError            a transient failure: the same call may succeed later; see ``retry_safe``
        │   ├── UnreachableError        no process answers at that address
        │   ├── ProtocolError           the peer speaks something that is not ours
        │   ├── AuthenticationError     the token is missing or wrong, or the caller may not request the operation
        │   │   └── PolicyError         a row policy keeps these rows from the caller
        │   ├── MemberLostError         a member left while it worked for us
        │   ├── PartitionLostError      all copies of a partition are gone
        │   ├── TopologyChangedError    a partition moved; the statement ran against old owners
        │   │   ├── UnknownOwnersError  a client lacks owners of a large table, and fetches them
        │   │   └── UnknownRangesError  a client lacks ranges of a large table, and fetches them
        │   ├── ChangesDroppedError     changes of a table that a reader of its feed has missed; read the table again
        │   ├── DataChangedError        a load was published in the middle of a distributed read
        │   ├── KeysChangedError        rows of found join keys changed; the coordinator runs the statement undivided
        │   ├── DiskError               a member could not write to its data directory, or not use it
        │   │   └── DamagedDirectoryError  files there are not as they were written
        │   ├── LimitExceededError      a bound on size, memory or queue was passed
        │   ├── DeadlineError           it took longer than allowed
        │   ├── JobCancelledError       a client asked the job to stop
        │   ├── JobFailedError          user code in a job raised; has vertex and member
        │   └── LoadFailedError         a bulk load was not published; the table is as it was
        ├── InternalError               our bug: please report it with the message
        │   └── PruningMismatchError    ``SET pruning = verify`` found pruned != unpruned
        └── NotSupportedError           valid, but not implemented; names the construct

    Warning                             PEP 249 asks for the name; nothing raises it

Every error survives a trip over the wire: :class:`secateur.protocol.Failure` describes it, and the other side raises
one of the same class.
"""

from __future__ import annotations

import os
from typing import Any, Final

FULL_TRACEBACK_VARIABLE: Final = "SECATEUR_FULL_TRACEBACK"
"""Set, it keeps the frames of secateur in the traceback of every error."""


class Error(Exception):
    """Base of every error of secateur.

    Args:
        message: What happened, where, expected against actual, and what to do.
        **details: Plain values (str, int, bool, None, lists of them) that a program may want; they become attributes of
            :attr:`details`. ``retry_safe`` among them says it of this error, where it differs from others of its class.

    Attributes:
        details: The plain values given, for programs rather than people.
        retry_safe: Whether to repeat the same call can help, and cannot do anything twice. docs/errors.md has the
            table.
    """

    retry_safe: bool = False

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = details
        if "retry_safe" in details:
            self.retry_safe = bool(details["retry_safe"])

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt, (type(self).__name__, self.message, self.details)

    def safe_to_retry(self) -> None:
        """Note that what failed has changed nothing, such as a read, and may work when it is repeated."""
        self.retry_safe = self.details["retry_safe"] = True

    def unsafe_to_retry(self) -> None:
        """Note that a part of what failed has been carried out: a repetition would do that twice."""
        self.retry_safe = self.details["retry_safe"] = False


def forget_frames(error: Error) -> None:
    """Take the frames below a public call, which is about to raise an error again, off the traceback of a mistake.

    Frames of all other errors stay, and so do all frames where
    the variable ``SECATEUR_FULL_TRACEBACK`` is set.
    """
    of_call = error.__traceback__
    if of_call is not None and isinstance(error, _MISTAKES) and not os.environ.get(FULL_TRACEBACK_VARIABLE):
        of_call.tb_next = None


class InterfaceError(Error):
    """Wrong use of a client object, such as fetching from a closed cursor."""


class DatabaseError(Error):
    """Base of the errors that concern the database rather than the client objects."""


class ProgrammingError(DatabaseError):
    """The statement or the call is wrong; it has to be changed."""


class SqlSyntaxError(ProgrammingError):
    """The SQL text does not parse. ``details`` has ``line`` and ``column``, both counted from 1."""


class UnknownTableError(ProgrammingError):
    """No table has that name."""


class UnknownColumnError(ProgrammingError):
    """No column in scope has that name. ``details`` has ``line`` and ``column`` where they are known."""


class TableExistsError(ProgrammingError):
    """The name of a new table is taken."""


class SchemeError(ProgrammingError):
    """A partition scheme that cannot be, such as hashing a FLOAT or a column outside the primary key."""


class ParameterError(ProgrammingError):
    """Wrong number, names or types of statement parameters."""


class DagError(ProgrammingError):
    """A DAG that cannot be built or deployed."""


class JobExistsError(ProgrammingError):
    """The name of a new job belongs to one that has not ended. ``details`` has ``job``, its id."""


class UnknownJobError(ProgrammingError):
    """No job has that name or id, or it ended so long ago that it was forgotten."""


class SerializationError(ProgrammingError):
    """A function or value that cannot travel to the members."""


class DataError(DatabaseError):
    """A value that its column or type cannot hold."""


class IntegrityError(DatabaseError):
    """The data contradict a constraint of the table."""


class DuplicateKeyError(IntegrityError):
    """An appended row has a primary key that is already there. ``details`` has ``table`` and ``key``."""


class NullKeyError(IntegrityError):
    """A NULL in a column that is NOT NULL. ``details`` has ``table`` and ``column``."""


class CheckFailedError(IntegrityError):
    """A row for which a CHECK of its table is FALSE. ``details`` has ``table``, ``constraint`` and ``condition``."""


class NoRangeError(IntegrityError):
    """A row that no range partition of its table covers. ``details`` has ``table`` and ``value``."""


class OperationalError(DatabaseError):
    """Something outside the statement went wrong; ``retry_safe`` says whether repeating it does no harm."""


class UnreachableError(OperationalError):
    """No process answers at the address."""

    retry_safe = True


class ProtocolError(OperationalError):
    """The peer sent bytes that are not a frame of ours."""


class AuthenticationError(OperationalError):
    """The token is missing or wrong, or the caller may not request the operation."""


class PolicyError(AuthenticationError):
    """A row policy keeps these rows from the caller, or hides the table from this kind of request.

    ``details`` has ``table``.
    """


class MemberLostError(OperationalError):
    """A member left, or fell silent, while it worked on the call.

    ``retry_safe`` for reads, which change nothing. ``details`` has ``member``.
    """


class PartitionLostError(OperationalError):
    """Every member that had a copy of a required partition has left. ``details`` has ``members``."""


class TopologyChangedError(OperationalError):
    """A partition was not where the caller believed; nothing was done."""

    retry_safe = True


class UnknownOwnersError(TopologyChangedError):
    """A client does not know the owners of some partitions of a large table yet; it fetches them and goes on.

    ``details`` has ``digest``, which names the owners, and ``pages``, numbers of pages.
    """


class UnknownRangesError(TopologyChangedError):
    """A client does not know the ranges of some keys of a large table yet; it fetches them and goes on.

    ``details`` has ``reference``, the name of the partition scheme, and ``wanted``, intervals of keys.
    """


class DataChangedError(OperationalError):
    """A load was published during a distributed read, so its members would have answered from different states.

    Nothing was returned.
    """

    retry_safe = True


class ChangesDroppedError(OperationalError):
    """Changes of a table that a reader of its change feed has not read are not kept any more.

    The table has to be read again, and followed from a position that was taken before that. ``oldest`` of ``details``
    is the oldest version that can be followed from.
    """


class KeysChangedError(OperationalError):
    """The rows in which keys of a join were found have changed since.

    Nothing was returned; the member that coordinates the statement runs it undivided.
    """

    retry_safe = True


class DiskError(OperationalError):
    """A member could not write to its data directory, or cannot use what is there.

    ``details`` has ``path`` and, where the disk is full, ``free_bytes``.
    """


class DamagedDirectoryError(DiskError):
    """Files of a data directory are not as they were written. ``details`` has ``path`` and, if it is one, ``file``."""


class LimitExceededError(OperationalError):
    """A bound on size, memory, queue length or concurrency was passed; the message says which and how to raise it."""


class DeadlineError(OperationalError):
    """The call took longer than its deadline."""


class JobCancelledError(OperationalError):
    """The job was cancelled on request."""


class JobFailedError(OperationalError):
    """User code in a job raised. ``details`` has ``vertex``, ``member`` and ``traceback``.

    The traceback is a note of the error, so that Python shows it.
    """

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message, **details)
        traceback = details.get("traceback")
        if traceback:
            self.add_note(f"where it was raised, on member {details.get('member')}:\n\n{str(traceback).rstrip()}")


class LoadFailedError(OperationalError):
    """A bulk load was not published; the table is as it was before."""

    retry_safe = True


class InternalError(DatabaseError):
    """A bug of secateur: please report it with the message."""


class PruningMismatchError(InternalError):
    """The pruned and the unpruned run of a statement gave different rows (``SET pruning = verify``)."""


class NotSupportedError(DatabaseError):
    """A valid request that is not implemented. The message names the construct and, for SQL, its position."""


class Warning(Exception):  # noqa: N818 - PEP 249 gives the name
    """Important warnings such as truncations. Nothing raises it: what cannot be stored exactly is an error."""


def _subclasses(cls: type[Error]) -> dict[str, type[Error]]:
    found = {cls.__name__: cls}
    for child in cls.__subclasses__():
        found.update(_subclasses(child))
    return found


_CLASSES: Final = _subclasses(Error)


_MISTAKES: Final = (InterfaceError, ProgrammingError, DataError, IntegrityError, NotSupportedError)
"""The classes of errors that are mistakes of the caller."""


def rebuilt(name: str, message: str, details: dict[str, Any]) -> Error:
    """An error of the class of that name; an :class:`InternalError` where there is none."""
    return _CLASSES.get(name, InternalError)(message, **details)
