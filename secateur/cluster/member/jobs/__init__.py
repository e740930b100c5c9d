"""Jobs on a member: light jobs, attempts of jobs on record, their results, metrics, files and writes."""
