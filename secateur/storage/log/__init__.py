"""Data that survives a restart: the log of one member, its checkpoints, and how they are read again.

A member appends every change to its *log* (:mod:`~secateur.storage.log.records` has the format of the bytes,
:mod:`~secateur.storage.log.records` what is said). Now and then it writes a *checkpoint*: snapshots of its partitions
as Arrow IPC files, and a file of records that replaces all of the log before it. Recovery replays the newest checkpoint
and the log behind it (:mod:`~secateur.storage.log.checkpoint`). All of it goes through a
:class:`~secateur.storage.log.disk.Disk`.
"""
