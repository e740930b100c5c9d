"""The runtimes, which host the processes of a cluster: in this process, or as Ray actors."""
