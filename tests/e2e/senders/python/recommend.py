"""A program that Pyroscope's SDK for Python profiles: it computes and allocates until its standard input ends, then it says
for how long it ran: this SDK samples by the wall clock."""
import json
import sys
import threading
import time

import pyroscope

kept = [None] * 64


def rank_results(n):
    total = 0
    for i in range(n):
        total = (total * 31 + i) % 1000003
    return total


def load_vectors(i):
    kept[i % len(kept)] = bytearray(256 << 10)


def main():
    over = threading.Event()
    began = time.monotonic_ns()

    def wait():
        sys.stdin.read()
        over.set()

    pyroscope.configure(application_name=sys.argv[2], server_address=sys.argv[1], tags={"region": "here"},
                        upload_interval=2, mem_enabled=True)
    threading.Thread(target=wait, daemon=True).start()
    i = 0
    while not over.is_set():
        rank_results(50000)
        load_vectors(i)
        i += 1
        time.sleep(0.02)
    pyroscope.shutdown()
    print(json.dumps({"wall_ns": time.monotonic_ns() - began}))


main()
