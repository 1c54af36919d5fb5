"""Runs the shards of a fleet with Ray: an actor on each machine takes one shard after another.

    python with_ray.py ADDRESS SHARD-PROGRAM NORMC FOLDER SHARDS ARGUMENT...

An empty address is this machine alone. A machine that is lost loses the shard at hand, which another one takes.
"""

import subprocess
import sys

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


@ray.remote(num_cpus=0)
class Machine:
    def run(self, command):
        """Returns the exit code of a command."""
        return subprocess.run(command, check=False).returncode


def main():
    address, program, normc, folder, shards, *arguments = sys.argv[1:]
    ray.init(address=address or None, include_dashboard=False, log_to_driver=True)
    free = [
        Machine.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote()
        for node in ray.nodes()
        if node["Alive"]
    ]
    waiting = [[program, normc, folder, shards, str(i), *arguments] for i in range(1, int(shards) + 1)]
    tries = {tuple(command): 0 for command in waiting}
    running, failed = {}, 0
    while running or (waiting and free):
        while waiting and free:
            machine, command = free.pop(), waiting.pop(0)
            running[machine.run.remote(command)] = machine, command
        (done,), _ = ray.wait(list(running), num_returns=1)
        machine, command = running.pop(done)
        try:
            code = ray.get(done)
            free.append(machine)
        except ray.exceptions.RayError:  # the machine is gone
            code = 1
        if code:
            tries[tuple(command)] += 1
            waiting.extend([command] if tries[tuple(command)] < 2 else [])
            failed += tries[tuple(command)] == 2
    return 1 if failed or waiting else 0


if __name__ == "__main__":
    sys.exit(main())
