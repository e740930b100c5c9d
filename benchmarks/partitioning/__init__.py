"""How fast rows are routed to partitions, and partitions to members."""
