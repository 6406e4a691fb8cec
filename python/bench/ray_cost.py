"""What Ray costs: processor time of 24 runs on a cluster of two nodes on this machine, against local threads.

    python python/bench/ray_cost.py [ROUNDS]

Needs ``pip install 'fedcote[ray]'``. Counted is everything that the runs need: the driver, and of the cluster all
processes, from the beginning of the command to its end.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # loopback only

from ray.cluster_utils import Cluster

TICK = os.sysconf("SC_CLK_TCK")


def command(out, rounds, *options):
    """Six schemes with four seeds each."""
    schemes = '["fedavg","fedprox","scaffold","fedcote","fedcote-memory","ideal"]'
    settings = [f"schemes={schemes}", "seeds=[1,2,3,4]", f"rounds={rounds}", "evaluate_every=10"]
    words = [
        sys.executable,
        "-m",
        "fedcote",
        "run",
        "paper-harsh",
        "--json",
        "--out",
        out,
        *options,
    ]
    return [*words, *(word for setting in settings for word in ("--set", setting))]


class Meter:
    """Seconds of processor of some processes and all below them, looked at again and again: Ray does not wait for its
    workers, so that nobody counts those that end. What a process uses after the last look at it is lost."""

    def __init__(self, roots):
        self.roots, self.seconds = set(roots), {}

    def look(self):
        parents, used = {}, {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            process = int(stat.parent.name)
            parents[process] = int(fields[1])
            # By number and beginning: numbers are used again.
            used[process] = (process, fields[19]), (int(fields[11]) + int(fields[12])) / TICK
        found = set(self.roots)
        while more := {child for child, parent in parents.items() if parent in found} - found:
            found |= more
        self.seconds.update(used[process] for process in found if process in used)
        return sum(self.seconds.values())


def measured(words, cluster=()):
    """Seconds of processor and of the clock that a command takes, with what it makes a cluster do."""
    clock = time.monotonic()
    meter = Meter(cluster)
    before = meter.look()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    meter.roots.add(process.pid)
    while process.poll() is None:
        after = meter.look()
        time.sleep(0.1)
    assert process.returncode == 0
    return after - before, time.monotonic() - clock


def main():
    rounds = sys.argv[1] if len(sys.argv) > 1 else "300"
    options = {
        "object_store_memory": 150 << 20,
        "node_ip_address": "127.0.0.1",
        "include_dashboard": False,
    }
    cores = os.cpu_count() or 2
    cluster = Cluster()
    for _ in range(2):
        cluster.add_node(num_cpus=max(1, cores // 2), **options)
    roots = [
        process.process.pid
        for node in cluster.list_all_nodes()
        for kind in node.all_processes.values()
        for process in kind
    ]
    try:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(3):
                local = measured(command(f"{folder}/local-{number}", rounds))
                there = ["--on", "ray", "--address", cluster.address]
                ray = measured(command(f"{folder}/ray-{number}", rounds, *there), roots)
                print(
                    f"local threads {local[0]:.1f} s of processor in {local[1]:.0f} s, "
                    f"Ray {ray[0]:.1f} s in {ray[1]:.0f} s: {100 * (ray[0] / local[0] - 1):+.1f} %",
                    flush=True,
                )
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
