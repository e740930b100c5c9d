"""What ``ss`` prints, and processor time."""

from __future__ import annotations

import psutil

from benchmarks.peers.usage import bytes_of_sockets, processor_s

LINES = [
    '0 0 127.0.0.1:5701 127.0.0.1:40000 users:(("java",pid=11,fd=60)) bytes_sent:300 bytes_acked:1 bytes_received:70',
    '0 0 127.0.0.1:40000 127.0.0.1:5701 users:(("python",pid=12,fd=7)) bbr rtt:1/2 bytes_sent:70 bytes_received:300',
    '0 0 127.0.0.1:5702 127.0.0.1:40001 users:(("java",pid=11,fd=61),("java",pid=11,fd=62)) bytes_received:5',
    "0 0 127.0.0.1:22 127.0.0.1:40002 bytes_sent:9 bytes_received:9",
]


def test_bytes_of_sockets_adds_up_by_process() -> None:
    assert bytes_of_sockets(LINES) == {11: (300, 75), 12: (70, 300)}


def test_processor_time_of_a_process_that_is_gone_is_not_counted() -> None:
    ours = psutil.Process()
    before_s = processor_s([ours])
    sum(number * number for number in range(3_000_000))
    assert processor_s([ours]) > before_s > 0
    assert processor_s([]) == 0
