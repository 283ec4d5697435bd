#!/usr/bin/env python3
"""The MPI worker, but that a rank is killed (SIGKILL) at some moment: the rank KILL_RANK, KILL_MS after the server, rank
SERVER_RANK, has told KILL_ROUNDS rounds. With STOP_MS it is stopped for so long instead (SIGSTOP), as a machine that hangs,
and then goes on. KILL_FLAG is a file that does not exist. With FAULT workers strike as their own --fault says."""
import os
import signal
import subprocess
import sys
import threading
import time

worker = os.environ["KILL_WORKER"]
if "FAULT" in os.environ:
    sys.argv[sys.argv.index("--fault") + 1] = os.environ["FAULT"]
rank, server, victim = (os.environ[name] for name in ("OMPI_COMM_WORLD_RANK", "SERVER_RANK", "KILL_RANK"))
if rank not in (server, victim):
    os.execv(worker, [worker] + sys.argv[1:])

flag = os.environ["KILL_FLAG"]
process = subprocess.Popen([worker] + sys.argv[1:], stdout=subprocess.PIPE)


def strike():
    """When the flag is there."""
    while not os.path.exists(flag):
        time.sleep(0.0005)
    time.sleep(float(os.environ["KILL_MS"]) / 1000)
    if "STOP_MS" in os.environ:
        process.send_signal(signal.SIGSTOP)
        time.sleep(float(os.environ["STOP_MS"]) / 1000)
        process.send_signal(signal.SIGCONT)
        return
    process.kill()
    os.kill(os.getpid(), signal.SIGKILL)


if rank == victim:
    threading.Thread(target=strike, daemon=True).start()
rounds = int(os.environ["KILL_ROUNDS"])
for line in process.stdout:
    os.write(1, line)
    rounds -= line.startswith(b'{"event":"iteration"')
    if rounds == 0 and rank == server:
        open(flag, "w").close()
        rounds = -1
sys.exit(process.wait())
