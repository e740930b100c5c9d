"""Jobs on one member: tasklets and the scheduler's turns, from the start of a job to its result."""

from __future__ import annotations

from secateur.exports import exports

_FILES = {
    "early_messages": ["EarlyMessages"],
    "job_logs": ["JobLogs", "LogScope"],
    "result": ["JobResult", "ResultCollector", "ResultQueue", "ResultSink"],
    "running_job": ["AwaitCancelled", "CancelMember", "Effect", "FinishJob", "JobStateMachine"],
    "services": ["JobKernel", "MemberServices"],
    "tasklet": ["Tasklet", "TaskletInput", "TaskletOwner", "TaskletState"],
}

__all__, __getattr__ = exports(__name__, _FILES)
