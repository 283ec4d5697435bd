"""A PostgreSQL of a test's own (tests/support/postgres.bash), which is killed and started again."""
import atexit
import os
import subprocess
import time

START = """source "$ROOT/tests/support/postgres.bash"
postgres_start "$0" || exit; echo "$postgres $postgres_url"; wait "$postgres" 2>/dev/null"""


class Postgres:
    """Its files are in `folder`. `url` is its address, without what chooses a schema; None, and `why`: it is not there."""

    def __init__(self, folder):
        self.folder, self.url, self.why = os.path.abspath(folder), None, ""
        atexit.register(lambda: self.url and self.stop())  # after a test that failed

    def start(self):
        self.shell = subprocess.Popen(["bash", "-c", START, self.folder], stdout=subprocess.PIPE, text=True)
        said = self.shell.stdout.readline().split(maxsplit=1)
        if said and said[0].isdigit():
            self.process, self.url = int(said[0]), said[1].strip()
        else:
            self.why = " ".join(said).strip()
        return self

    def parts(self):
        """The processes of its own that it started."""
        return children(self.process)

    def kill(self, part=None):
        """SIGKILL of the server, whose parts then end by themselves; or of one of them, after which it starts again by
        itself."""
        parts = self.parts()
        os.kill(part or self.process, 9)
        if not part:
            self.shell.wait(20)
            while any(os.path.exists(f"/proc/{p}") for p in parts):
                time.sleep(0.01)

    def wait_until_up(self):
        """Also where nobody has it started again."""
        if self.shell.poll() is not None:
            self.start()
            assert self.shell.poll() is None, self.why
        for _ in range(400):
            if not subprocess.run(["psql", "-X", "-q", self.url, "-c", "SELECT 1"], capture_output=True, check=False).returncode:
                return
            time.sleep(0.05)
        raise AssertionError("PostgreSQL does not come back")

    def stop(self):
        if self.shell.poll() is None:
            os.kill(self.process, 3)
            self.shell.wait(20)


def children(process):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                if file.read().rsplit(")", 1)[1].split()[1] == str(process):
                    found.append(int(pid))
        except OSError:  # it has ended
            pass
    return found
