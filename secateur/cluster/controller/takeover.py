"""Brings a controller that starts anew to where the one before was: collects reports, decides, and settles.

The decision is :mod:`secateur.cluster.controller.recovery`, without I/O. Then every member hears of the topology and of
the views, and commands that were under way are completed or removed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from msgspec import structs

from secateur.cluster.controller import recovery
from secateur.cluster.controller.catalog_changes import tell
from secateur.cluster.controller.cluster_state import ClusterState
from secateur.cluster.controller.disk_losses import DiskLosses
from secateur.cluster.controller.membership import MemberLost
from secateur.cluster.controller.recovery import catalog_of
from secateur.cluster.controller.table_commands import TableCommands
from secateur.cluster.peers import Peers
from secateur.errors import Error, InternalError, PartitionLostError, UnreachableError
from secateur.partitioning.tables.table import TableDef
from secateur.protocol.codec import decode
from secateur.protocol.recovery import ClusterRecord, ControllerState, GetReport, MemberReport

_log = logging.getLogger(__name__)

_ASK_AGAIN_S: Final = 0.1


class Takeover:
    """Carries out the takeover. Lives on the controller's event loop.

    Args:
        peers: The members that have reported.
        begin: Called before anything is done in the new epoch, with the record, what the members have said, and what
            the record says of the rest.
        resume: Called once the members and the catalog are as they were, to go on with the rest.
        is_over: True for the first controller of a cluster, which takes over from nobody.
        is_cold_start: Whether the members are started anew as well: then all of them are waited for.

    Attributes:
        is_over: Whether the controller knows the cluster, and may answer requests.
        is_cold_start: As given, or as the reports have shown.
    """

    def __init__(
        self,
        state: ClusterState,
        peers: Peers,
        table_commands: TableCommands,
        begin: Callable[[ClusterRecord, Mapping[str, MemberReport], ControllerState], None],
        resume: Callable[[], Awaitable[None]],
        *,
        is_over: bool,
        is_cold_start: bool,
    ) -> None:
        self._state = state
        self._peers = peers
        self._table_commands = table_commands
        self._begin = begin
        self._resume = resume
        self.is_cold_start = is_cold_start
        self._reports: dict[str, MemberReport] = {}
        self._reported = asyncio.Event()
        self._ended = asyncio.Event()
        self._failure: Error | None = None
        self.is_over = is_over

    def take_report(self, report: MemberReport) -> None:
        """Take the report of a member."""
        self._reports[report.address.id] = report
        self._reported.set()

    async def wait(self) -> None:
        """Return when it is over.

        Raises:
            PartitionLostError: It cannot be: data were lost that no member has, unless one comes that has them.
            UnreachableError: No member has said anything for so long that all of them may have ended.
            InternalError: A bug ended it.
        """
        await self._ended.wait()
        if self._failure is not None:
            raise self._failure

    async def run(self) -> None:
        """Go on from what members have kept; see :mod:`secateur.cluster.controller.recovery`.

        Returns with :attr:`is_over` still False if data were lost that no member has. Until then, :meth:`wait` says why
        nothing has been decided, if that is known.
        """
        try:
            await self._go_on()
        except Exception as error:  # whoever waits for the end would wait forever
            bug = InternalError(
                f"the controller was started anew and cannot go on ({type(error).__name__}: {error}): its log says"
                " where. End its process to have it tried again"
            )
            bug.__cause__ = error
            self._fail(bug)
            raise

    async def _go_on(self) -> None:
        found = await self._decided()
        state = decode(found.record.state, ControllerState)
        if self.is_cold_start:  # whoever had members leave has ended with the cluster, and all were started again
            state = structs.replace(state, draining=())
        views_version = max(report.views_version for report in self._reports.values())
        catalog = catalog_of(state)
        # Members compare versions: those of this controller are newer than what the one before had begun.
        catalog = replace(catalog, version=max(catalog.version, views_version) + 1)
        reports = self._reports
        if not self.is_cold_start:  # members that have gone on have in memory what they own
            reports = {member_id: report for member_id, report in reports.items() if report.damage}
        losses = DiskLosses.of(catalog.tables(), found.record.topology, reports, found.lost)
        if losses.lost:
            self._fail(
                PartitionLostError(
                    f"{losses.lost}, and no other member has a copy: restore the directory from a copy of it, or remove"
                    f" it and load what it had again. {' '.join(losses.members.values())}".rstrip()
                )
            )
            return
        self._begin(found.record, self._reports, state)
        self._state.restore(found.record.epoch, found.record.topology, catalog, state)
        for member_id in dict.fromkeys((*found.lost, *losses.members)):
            self._state.apply(MemberLost(member_id))
        for copy in losses.copies:
            self._state.apply(copy)
        await self._state.all_reached()
        await tell(self._state, catalog)
        reports = await self._reports_again()
        if self.is_cold_start:
            await self._catch_up(reports)
        while self._state.changing_table is not None:
            reports = await self._settled_alter(self._state.changing_table, state.changing_for)
        await self._table_commands.settle_tables(
            {member_id: [held.table_id for held in report.tables] for member_id, report in reports.items()}
        )
        await self._state.all_reached()
        await self._resume()
        self.is_over = True
        self._ended.set()
        self._state.events.add("controller_restarted", None, f"epoch {self._state.epoch}")
        if self.is_cold_start:
            self._tell_of_disks(losses)
        _log.warning("the controller goes on in epoch %d with members %s", self._state.epoch, ", ".join(self._reports))

    async def _settled_alter(self, changing: TableDef, changing_for: str | None) -> dict[str, MemberReport]:
        """Complete or give up an ALTER TABLE; it is still under way afterwards if a member was lost meanwhile.

        Nobody else would do it, and everybody waits for it, so whatever fails is tried again.

        Returns:
            What the members had before.
        """
        reports = await self._reports_again()
        while any(report.alterations_in_doubt for report in reports.values()):
            await asyncio.sleep(_ASK_AGAIN_S)
            reports = await self._reports_again()
        versions = {
            member_id: held.version
            for member_id, report in reports.items()
            for held in report.tables
            if held.origin == changing.origin
        }
        try:
            with self._state.on_behalf_of(changing_for):
                await self._table_commands.settle_change(changing, versions)
        except Error as error:
            _log.warning("ALTER TABLE %s cannot be settled yet: %s", changing.name, error)
            await asyncio.sleep(_ASK_AGAIN_S)
        return reports

    async def _catch_up(self, reports: Mapping[str, MemberReport]) -> None:
        """Have members whose disks have lost an ALTER TABLE take it over, before one that is under way is settled.

        As of a member that returns, new partitions of which it is the only owner are empty; others are built.
        """
        for table in self._state.catalog.tables():
            behind = [
                member_id
                for member_id, report in reports.items()
                if any(held.origin == table.origin and held.version < table.version for held in report.tables)
            ]
            for member_id in behind:
                detail = f"its disk has lost an ALTER TABLE {table.name}"
                self._state.events.add("data_directory_damaged", member_id, detail)
            await self._table_commands.follow(table, behind)

    def _tell_of_disks(self, losses: DiskLosses) -> None:
        for member_id, why in losses.members.items():
            self._state.events.add("data_directory_damaged", member_id, why)
        for copy in losses.copies:
            detail = f"the disk has lost partition {copy.partition} of {copy.group}; another member has it"
            self._state.events.add("copy_lost", copy.member_id, detail)
        for member_id, report in self._reports.items():
            if report.cut_bytes:
                detail = f"{report.cut_bytes} bytes at the end were not completely written"
                self._state.events.add("log_cut", member_id, detail)

    def _fail(self, error: Error) -> None:
        """Give the tasks that wait the error because of which the takeover is not over."""
        self._failure = error
        self._ended.set()

    async def _decided(self) -> recovery.Recovered:
        """Wait for the reports that are needed."""
        loop, times = asyncio.get_running_loop(), self._state.times
        patience = recovery.Patience(times.silence_s, loop.time())
        while True:
            if self.is_cold_start:
                if (found := recovery.recovered_from_disk(self._reports)) is not None:
                    return found
                self._reported.clear()
                await self._reported.wait()
                continue
            if (record := recovery.newest_record(self._reports)) is not None:
                self._peers.update(record.topology)
            gone = await self._asked(recovery.unheard(self._reports), times.interval_s)
            heard = recovery.newest_record(self._reports)
            if record is None or heard is None or (record.epoch, record.version) != (heard.epoch, heard.version):
                gone.clear()  # they were asked where an older record has them, and may be elsewhere
            is_late = patience.is_over(loop.time(), times.interval_s * 5)
            # The controller of a cold start may have ended before it had come to know the members of now.
            is_cold = recovery.is_from_disk(self._reports)
            reports = self._reports
            found = (
                recovery.recovered_from_disk(reports) if is_cold else recovery.recovered(reports, gone, is_late=is_late)
            )
            if found is not None:
                self.is_cold_start = is_cold
                self._failure = None
                self._ended.clear()
                return found
            if is_late and is_cold:
                self._fail(
                    UnreachableError(
                        f"the controller was started anew, and so were the members that have reported to it:"
                        f" {' and '.join(reports)}. It waits for {' and '.join(recovery.missing(reports))}, which may"
                        " have on disk what they lack: start what is missing, or start the cluster again"
                    )
                )
            elif is_late and not self._reports:
                self._fail(
                    UnreachableError(
                        f"the controller was started anew, and no member has reported to it for {times.silence_s:g} s:"
                        " either none reaches it, or all have ended, and with them what they had in memory. If they"
                        " have ended, what is in a data directory is there again as soon as all of them are started"
                        " anew; if there is none, start another cluster"
                    )
                )
            elif is_late and gone and gone == set(recovery.unheard(self._reports)):
                self._fail(
                    PartitionLostError(
                        "the controller cannot go on: every member that could say which copies are up to date has"
                        f" ended, and {' and '.join(self._reports)} may have outdated rows. Start another cluster and"
                        " load its tables"
                    )
                )
            self._reported.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(times.interval_s):
                    await self._reported.wait()

    async def _asked(self, members: Collection[str], patience_s: float) -> set[str]:
        """Ask members for reports that they need not be asked for, but would only send with their next request.

        Returns:
            Those whose processes have ended.
        """

        async def is_gone(member_id: str) -> bool:
            if await self._peers.is_gone(member_id, patience_s):
                return True
            with suppress(Error, TimeoutError):
                async with asyncio.timeout(patience_s):
                    self.take_report(await self._peers.call(member_id, GetReport()))
            return False

        asked = await asyncio.gather(*(is_gone(member_id) for member_id in members))
        return {member_id for member_id, gone in zip(members, asked, strict=True) if gone}

    async def _reports_again(self) -> dict[str, MemberReport]:
        """The newest reports of the members; a member that is lost on the way is left out."""
        outcomes = await self._state.call_all(lambda _: GetReport())
        return {
            member_id: answer
            for member_id, answer in outcomes.items()
            if isinstance(answer, MemberReport) and member_id in self._state.topology.member_ids
        }
