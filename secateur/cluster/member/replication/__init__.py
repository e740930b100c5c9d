"""The copies of partitions: changes sent and received, acknowledgements, takeovers, and copies that are built."""
