#!/usr/bin/env python3
"""The MPI worker, but the rank KILL_RANK is killed (SIGKILL) KILL_MS after it has told KILL_ROUNDS rounds. With STOP_MS
it is stopped for so long instead (SIGSTOP), as a machine that hangs, and then goes on. With FAULT the worker strikes as its
own --fault says."""
import os
import signal
import subprocess
import sys
import time

worker = os.environ["KILL_WORKER"]
if "FAULT" in os.environ:
    sys.argv[sys.argv.index("--fault") + 1] = os.environ["FAULT"]
if os.environ["OMPI_COMM_WORLD_RANK"] != os.environ["KILL_RANK"]:
    os.execv(worker, [worker] + sys.argv[1:])

rounds = int(os.environ["KILL_ROUNDS"])
process = subprocess.Popen([worker] + sys.argv[1:], stdout=subprocess.PIPE)
for line in process.stdout:
    os.write(1, line)
    rounds -= line.startswith(b'{"event":"iteration"')
    if rounds == 0:
        time.sleep(float(os.environ["KILL_MS"]) / 1000)
        if "STOP_MS" in os.environ:
            process.send_signal(signal.SIGSTOP)
            time.sleep(float(os.environ["STOP_MS"]) / 1000)
            process.send_signal(signal.SIGCONT)
            continue
        process.kill()
        os.kill(os.getpid(), signal.SIGKILL)
sys.exit(process.wait())
