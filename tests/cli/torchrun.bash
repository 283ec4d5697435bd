# Sourced. torchrun_of PYTHON FOLDER: write FOLDER/torchrun, which is that of PYTHON's torch, but for three things:
# - its ranks meet at a free port, not at 29500, since scripts run beside each other;
# - Debian's, 1.13 under Python 3.11, knows no Std.NONE and ends before it starts a rank, and here it knows it;
# - the bench, which pages tell people to run for a minute, measures small messages alone, and not what computing and
#   messages cost each other. tests/cli/pytorch.sh has the whole bench.
torchrun_of() {
    mkdir -p "$2"
    cat >"$2/torchrun" <<END
#!$1
import socket, sys
from torch.distributed.elastic.multiprocessing.api import Std
from torch.distributed.run import main
Std.from_str = staticmethod(lambda text: Std(int(text)))
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    meet = ["--master_port", str(free.getsockname()[1])]
main(meet + sys.argv[1:] + ["--idle", "--max-bytes", "65536"] * ("syncopate_torch.bench" in sys.argv))
END
    chmod +x "$2/torchrun"
}
