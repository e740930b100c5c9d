"""Where the processes of a cluster live: in this process, or as Ray actors."""
