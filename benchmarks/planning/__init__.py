"""What does it cost to get from the text and the values of a statement to the partitions that it needs?

Question: what does one key cost where the plan is known (at a client and at the planner), what does each element of an
IN list add, and do plans of a table with 100,000 partitions cost what they cost with 100?
Data: tables without rows; their definitions and owners are all that planning reads.
Metric: process time, so that other work on the machine does not count; median of rounds after one to warm up. New texts
are planned with everything else warm.
"""
