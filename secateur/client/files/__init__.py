"""Files that COPY reads and writes, always in the process of the client: members and controller see no path of it."""
