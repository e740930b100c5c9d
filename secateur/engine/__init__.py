"""Runs jobs on members: plans, queues, exchange, tasklets and kernels.

Import from the modules; nothing is loaded here, so that reading a plan stays cheap.
"""
