"""Runs the shards of a fleet with Dask: each machine runs one at a time, whatever number of workers it has.

    python with_dask.py ADDRESS SHARD-PROGRAM NORMC FOLDER SHARDS ARGUMENT...

An empty address is this machine alone. The shard of a worker that is lost is given to another one.
"""

import socket
import subprocess
import sys

from distributed import Client, LocalCluster, Lock, as_completed


def run(command):
    """Returns the exit code of a command, once no other shard runs on this machine."""
    with Lock("normc on " + socket.gethostname()):
        return subprocess.run(command, check=False).returncode


def main():
    address, program, normc, folder, shards, *arguments = sys.argv[1:]
    commands = [[program, normc, folder, shards, str(i), *arguments] for i in range(1, int(shards) + 1)]
    cluster = address or LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
    with Client(cluster) as client:
        futures = client.map(run, commands, pure=False, retries=2)
        return max(future.result() for future in as_completed(futures, raise_errors=False))


if __name__ == "__main__":
    sys.exit(main())
