"""Jobs on one member: tasklets and the scheduler's turns, from the start of a job to its result."""
