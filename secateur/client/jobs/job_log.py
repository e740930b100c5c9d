"""The log lines of the processors of a job, from the members on which they ran."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from secateur.client.session import Session
from secateur.errors import MemberLostError, UnreachableError
from secateur.protocol.jobs import GetJobLogs


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line.

    Attributes:
        time: When, in UTC, by the clock of its member.
        level: Its level by name, such as ``WARNING``.
        member: The member.
        vertex: The vertex.
        attempt: The attempt of the job.
        logger: The name of the logger.
        message: The text, with the traceback of an exception behind it.
    """

    time: datetime
    level: str
    member: str
    vertex: str
    attempt: int
    logger: str
    message: str

    def __str__(self) -> str:
        moment = self.time.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
        return f"{moment} {self.level} {self.member} {self.vertex}: {self.message}"


@dataclass(frozen=True, slots=True)
class JobLog:
    """The lines of a job by time. It is iterated over as they are; ``str()`` is their text.

    Attributes:
        lines: The lines.
        dropped: Further ones that members have not kept, because the job had logged too much.
        silent: Members that could not be asked.
    """

    lines: tuple[LogLine, ...]
    dropped: int
    silent: tuple[str, ...]

    def __iter__(self) -> Iterator[LogLine]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __str__(self) -> str:
        return "\n".join(map(str, self.lines))


def read_job_log(session: Session, job_id: str) -> JobLog:
    """Ask each member of the cluster for the lines of a job. Costs a round trip to each, one after another.

    Raises:
        Error: A member answers with an error. Those that are not there are named in the result.
    """
    lines: list[LogLine] = []
    dropped, silent = 0, []
    for member in session.topology.member_ids:
        try:
            told = session.ask_member(member, GetJobLogs(job_id)).message
        except (MemberLostError, UnreachableError):
            silent.append(member)
            continue
        dropped += told.dropped
        lines += [
            LogLine(
                datetime.fromtimestamp(line.time_s, UTC),
                line.level,
                member,
                line.vertex,
                line.attempt,
                line.logger,
                line.message,
            )
            for line in told.lines
        ]
    return JobLog(tuple(sorted(lines, key=lambda line: line.time)), dropped, tuple(silent))
