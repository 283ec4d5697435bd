"""Python programs that need not import torch first, which takes seconds of processor time: a process that has imported
it forks for each of them.

    forks.py serve SOCKET             forks for whoever asks
    forks.py run SOCKET ARGUMENT...   is `python3 ARGUMENT...`, in a process forked by the one that serves there

The second needs no torch. It has the environment, folder, input, outputs and exit status that `python3` would have; where
it is ended, so is the forked process. Of Python's options it knows -m, -c and -u. tests/cli/forks.bash has both."""

import os
import signal
import socket
import sys
import time

GRACE_S = 5  # from the request to end to the end


# ---- who asks ----


def connect(server, path):
    """To a process that may be importing torch still."""
    for _ in range(2000):
        try:
            return server.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.05)
    sys.exit(f"forks.py: nobody serves at {path}")


def run(path, arguments):
    with socket.socket(socket.AF_UNIX) as server:
        connect(server, path)
        said = repr((arguments, os.getcwd(), dict(os.environ))).encode()
        socket.send_fds(server, [len(said).to_bytes(8, "big")], [0, 1, 2])
        server.sendall(said)
        status = int(server.recv(20) or b"1")
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


# ---- who forks ----


def read_request(connection):
    """What was asked for, and three open files."""
    size, files, _, _ = socket.recv_fds(connection, 8, 3)
    said = bytearray()
    while len(said) < int.from_bytes(size, "big"):
        part = connection.recv(1 << 16)
        if not part:
            raise ConnectionError("cut short")
        said += part
    return ast.literal_eval(said.decode()), files


def become(request, files):
    """Of the forked process: what its user sees of a new one. -> the arguments"""
    arguments, folder, environment = request
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return arguments


class Forks:
    """The processes that were asked for."""

    def __init__(self, path):
        self.watch, self.users, self.ending = selectors.DefaultSelector(), {}, {}
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        self.watch.register(self.listener, selectors.EVENT_READ)

    def serve(self):
        """Returns in a forked process, with its arguments. This process ends, with all others, on SIGTERM or where its
        parent is gone."""
        parent = os.getppid()
        signal.signal(signal.SIGTERM, self.stop)
        while os.getppid() == parent:
            for key, _ in self.watch.select(0.5):
                if key.fileobj is self.listener:
                    arguments = self.fork()
                    if arguments is not None:
                        return arguments
                elif isinstance(key.fileobj, int):
                    self.ended(key.fileobj, key.data)
                else:
                    self.end(key.fileobj, key.data)
            for process in [process for process, when in self.ending.items() if time.monotonic() > when]:
                os.killpg(process, signal.SIGKILL)
        self.stop()

    def stop(self, *_):
        for process in (*self.users, *self.ending):
            os.killpg(process, signal.SIGKILL)
        os._exit(0)

    def fork(self):
        user, _ = self.listener.accept()
        request, files = read_request(user)
        process = os.fork()
        if process == 0:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            for key in list(self.watch.get_map().values()):
                os.close(key.fd)
            user.close()
            self.watch.close()
            return become(request, files)
        for file in files:
            os.close(file)
        self.users[process] = user
        self.watch.register(user, selectors.EVENT_READ, process)
        self.watch.register(os.pidfd_open(process), selectors.EVENT_READ, process)
        return None

    def ended(self, watched, process):
        self.watch.unregister(watched)
        os.close(watched)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        self.ending.pop(process, None)
        user = self.users.pop(process, None)
        if user:
            self.watch.unregister(user)
            with user, contextlib.suppress(ConnectionError):
                user.send(str(status).encode())

    def end(self, user, process):
        """Its user is gone."""
        if self.users.pop(process, None):
            self.watch.unregister(user)
            user.close()
            self.ending[process] = time.monotonic() + GRACE_S
            os.killpg(process, signal.SIGTERM)


def execute(arguments):
    """As `python3 ARGUMENT...` does."""
    while arguments and arguments[0] == "-u":
        arguments = arguments[1:]
    kind = arguments[0] if arguments else "-"
    own = {"-": "", "-c": "", "-m": os.getcwd()}.get(kind, os.path.dirname(os.path.abspath(kind)))
    sys.path[0:1] = [own]
    sys.path[1:1] = [folder for folder in os.environ.get("PYTHONPATH", "").split(":") if folder]
    if kind == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif kind in ("-", "-c"):
        sys.argv = [kind, *arguments[2 if kind == "-c" else 1 :]]
        code = arguments[1] if kind == "-c" else sys.stdin.read()
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        runpy.run_path(kind, run_name="__main__")


def finish(arguments):
    """Execute, and end as Python does, but for freeing all that there is, which would be copied for it first."""
    status = 0
    try:
        execute(arguments)
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:  # whatever a program may raise
        status = 1
        traceback.print_exc()
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 255)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2], sys.argv[3:])
    import ast
    import atexit
    import contextlib
    import gc
    import runpy
    import selectors
    import threading
    import traceback

    import torch
    import torch.distributed.run
    import torch.nn.parallel

    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)  # PyTorch 2 imports much for the first one
    if hasattr(torch, "compile"):
        import torch.distributed.fsdp
    gc.collect()
    gc.freeze()  # so that forked processes need not copy what nobody changes
    finish(Forks(sys.argv[2]).serve())
