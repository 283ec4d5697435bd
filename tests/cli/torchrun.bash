# Sourced. torchrun_of PYTHON FOLDER [REALLY]: write FOLDER/torchrun, which is that of PYTHON's torch, but for four
# things:
# - of the programs that it starts, the first of each kind of REALLY ("profile bench script") is started as users do; the
#   others, and their torchrun, are forked by FOLDER/forked (forks.bash), which saves them the import;
# - its ranks meet at a free port, not at 29500, since scripts run beside each other;
# - Debian's, 1.13 under Python 3.11, knows no Std.NONE and ends before it starts a rank, and here it knows it;
# - the bench, which pages tell people to run for a minute, measures small messages alone, and not what computing and
#   messages cost each other. tests/cli/pytorch.sh has the whole bench.
source tests/cli/forks.bash
torchrun_of() {
    local kind
    forks_of "$1" "$2"
    for kind in ${3-profile bench script}; do : >"$2/really_$kind"; done
    cat >"$2/torchrun.py" <<END
import socket, sys
from torch.distributed.elastic.multiprocessing.api import Std
from torch.distributed.run import main
Std.from_str = staticmethod(lambda text: Std(int(text)))
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    meet = ["--master_port", str(free.getsockname()[1])]
main(meet + sys.argv[1:] + ["--idle", "--max-bytes", "65536"] * ("syncopate_torch.bench" in sys.argv))
END
    cat >"$2/torchrun" <<END
#!/bin/sh
case " \$* " in
*" syncopate_torch.profile "*) kind=profile ;;
*" syncopate_torch.bench "*) kind=bench ;;
*) kind=script ;;
esac
if rm "$2/really_\$kind" 2>/dev/null; then exec $1 "$2/torchrun.py" "\$@"; fi
PYTHON_EXEC="$2/forked" exec "$2/forked" "$2/torchrun.py" "\$@"
END
    chmod +x "$2/torchrun"
}
