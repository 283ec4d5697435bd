#!/bin/bash
# The NCCL worker on a real GPU: are sums right, and do predictions come true? `make accuracy-nccl`. Needs one GPU, root
# for the lab, and ten minutes. All ranks share the GPU, under MPS (which this starts and ends, if none runs), and talk by
# NCCL's sockets: on this machine's loopback for the sums, through a lab of 4 nodes at 1 Gbit/s for the times.
# One rank alone shows that kernels, gates, buffers and checks work on that GPU; NCCL then only copies, or does nothing.
#
#   OUT=build/release WORKER=nccl tests/accuracy-nccl.sh [sums]     (WORKER: the path of another worker; sums: a minute,
#                                                                    no lab and no root)
set -u
cd "$(dirname "$0")/.." || exit 1
syncopate=${OUT:-build/release}/bin/syncopate worker=${WORKER:-nccl}
dir=$(mktemp -d)
mkdir "$dir/mps" "$dir/log"
finish() {
    [ -z "${started:-}" ] || echo quit | nvidia-cuda-mps-control >/dev/null 2>&1
    rm -rf "$dir"
}
trap finish EXIT
if [ "$worker" = nccl ]; then
    said=$("${OUT:-build/release}/bin/syncopate-worker-nccl" probe) || { echo "accuracy-nccl: $said" >&2; exit 1; }
    echo "$said"
    if [[ $said == *'"mps":false'* ]] && command -v nvidia-cuda-mps-control >/dev/null; then
        export CUDA_MPS_PIPE_DIRECTORY=$dir/mps CUDA_MPS_LOG_DIRECTORY=$dir/log
        nvidia-cuda-mps-control -d && started=1
    fi
fi
options="--share-gpu --worker $worker"

# cluster NODES DEVICES: a cluster file's path
cluster() {
    cat >"$dir/$1x$2.json" <<END
{"schema":"syncopate.cluster/1","name":"gpu-$1x$2","nodes":[{"name":"n","count":$1,"devices":$2,"device":"gpu",
 "nic_gbit_per_s":10,"nic_latency_us":50,"device_link_gbyte_per_s":25}]}
END
    echo "$dir/$1x$2.json"
}

# ended STATUS: what is left of a run's last lines
ended() {
    [ "$1" = 0 ] && echo "every sum right" || echo "FAILED ($1): $(grep -m 1 error "$dir/said" || echo "no end in a minute")"
}

failed=0
# sums MODEL NODES DEVICES NAME OPTION...: a trial of what the options say
sums() {
    local model=$1 nodes=$2 devices=$3 name=$4 status
    shift 4
    NCCL_SOCKET_IFNAME=lo timeout 60 "$syncopate" trial "$model" "$(cluster "$nodes" "$devices")" $options --runner local \
        "$@" --iterations 4 >"$dir/said" 2>&1
    status=$?
    [ $status = 0 ] || failed=1
    printf '%-12s %s nodes of %s  %-30s %s\n' "$model" "$nodes" "$devices" "$name" "$(ended $status)"
}

echo "Sums, on loopback:"
while read -r model nodes devices baseline; do
    sums "$model" "$nodes" "$devices" "$baseline" --baseline "$baseline"
done <<'END'
cnn-small 2 1 pytorch-ddp
cnn-small 8 1 pytorch-ddp
cnn-small 4 1 bytescheduler-all-reduce
cnn-small 2 2 horovod-tuned
cnn-small 4 1 ps
cnn-small 4 1 ps-load-balanced
cnn-small 2 2 ps-load-balanced
mlp-small 2 1 ps-partitioned
ncf-sparse 2 1 parallax
cnn-small 1 1 dear
cnn-small 1 1 fsdp-optimal
cnn-small 4 1 dear
mlp-small 3 1 zero-2
cnn-small 3 1 fsdp-optimal
cnn-small 4 1 fsdp-per-block
cnn-small 2 2 fsdp-whole
cnn-small 2 2 hsdp
END
# Half of the buckets with an encoder.
for nodes in 1 4; do
    "$syncopate" strategy show cnn-small "$(cluster $nodes 1)" --baseline pytorch-ddp --json >"$dir/plain.json" || exit 1
    for encoder in int8:block_size:256 topk:part:0.01 powersgd:rank:2; do
        python3 - "$dir/plain.json" ${encoder//:/ } >"$dir/encoded.json" <<'END'
import json, sys
strategy, (kind, figure, number) = json.load(open(sys.argv[1])), sys.argv[2:]
for v in strategy["variables"]:
    if v["sync"]["group"] % 2 == 0:
        v["encoding"] = {"kind": kind, figure: float(number)}
json.dump(strategy, sys.stdout)
END
        sums cnn-small $nodes 1 "pytorch-ddp, half as ${encoder%%:*}" --strategy "$dir/encoded.json"
    done
done
[ "${1:-}" != sums ] || exit $failed

echo "Times, in the lab:"
"$syncopate" bench lab-4x1g $options --time 20s --max-bytes 8M --out "$dir/lab.json" || exit 1
for run in {cnn-small,resnet18}:{pytorch-ddp,horovod,wfbp,mg-wfbp,pace,bytescheduler-all-reduce,ps,dear,fsdp-optimal,fsdp-whole} \
    cnn-small:ps-load-balanced; do
    timeout 60 "$syncopate" trial "${run%:*}" "$dir/lab.json" $options --baseline "${run#*:}" --iterations 6 --warmup 2 \
        >"$dir/said" 2>&1
    status=$?
    [ $status = 0 ] && said=$(tail -n 1 "$dir/said") || said="${run#*:}: $(ended $status)"
    [ $status = 0 ] || failed=1
    printf '%-10s %s\n' "${run%:*}" "$said"
done

if [ "$worker" = nccl ] && python3 -c 'import torch; torch.cuda.get_device_name()' 2>/dev/null; then
    echo "PyTorch on NCCL:"
    # Not under an MPS of ours: a way that is ended there may take the server with it.
    env -u CUDA_MPS_PIPE_DIRECTORY PYTHONPATH=interop/pytorch:examples/pytorch PYTHONWARNINGS=ignore \
        python3 tests/accuracy/nccl_pytorch.py "$syncopate" "$dir" || failed=1
else
    echo "PyTorch on NCCL was not tried: python3 has no torch that sees a GPU"
fi
exit $failed
