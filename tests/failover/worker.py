#!/usr/bin/env python3
"""The MPI worker, but that the rank KILL_RANK is killed (SIGKILL) KILL_MS after it has told KILL_ROUNDS rounds."""
import os
import signal
import subprocess
import sys
import time

worker = os.environ["KILL_WORKER"]
if os.environ["OMPI_COMM_WORLD_RANK"] != os.environ["KILL_RANK"]:
    os.execv(worker, [worker] + sys.argv[1:])

rounds = int(os.environ["KILL_ROUNDS"])
process = subprocess.Popen([worker] + sys.argv[1:], stdout=subprocess.PIPE)
for line in process.stdout:
    os.write(1, line)
    rounds -= line.startswith(b'{"event":"iteration"')
    if rounds == 0:
        time.sleep(float(os.environ["KILL_MS"]) / 1000)
        process.kill()
        os.kill(os.getpid(), signal.SIGKILL)
sys.exit(process.wait())
