"""Changes of rows at the primary: writes, UPDATE and DELETE, changes of several partitions, loads, and feeds."""
