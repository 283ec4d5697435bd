# Sourced by tests of the runner slurm, as root: a Slurm cluster on this machine. slurm_up DIR makes a configuration, a
# key and sockets of its own in DIR, and starts munged, slurmctld and slurmd for the nodes n1 and n2, with ports on
# 127.0.0.1; slurm_down ends them, by process id. Each node has four processors and two GPUs, which are terminals.

slurm_missing() { # prints what is not installed
    local program
    for program in munged slurmctld slurmd srun salloc squeue scontrol; do
        command -v "$program" >/dev/null || PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || echo "$program"
    done | paste -sd ' '
}

slurm_configure() { # DIR PORT
    local dir=$1 port=$2 host
    host=$(hostname -s)
    cat >"$dir/slurm.conf" <<EOF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SrunPortRange=$((port + 10))-$((port + 59))
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
TmpFS=$dir/tmp-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
CommunicationParameters=NoInAddrAny
ReturnToService=2
KillWait=1
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=100000
GresTypes=gpu
NodeName=n[1-2] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 2))] CPUs=4 Gres=gpu:2
PartitionName=main Nodes=n[1-2] Default=YES MaxTime=60 State=UP
EOF
    echo "NodeName=n[1-2] Name=gpu File=/dev/tty[1-2]" >"$dir/gres.conf"
}

slurm_munge() { # DIR
    mkdir -m 755 "$1/munge"
    (umask 077 && head -c 1024 /dev/urandom >"$1/munge/key")
    munged --key-file="$1/munge/key" --socket="$1/munge/socket" --pid-file="$1/munge/pid" --log-file="$1/munge/log" \
        --seed-file="$1/munge/seed" --num-threads=1 --force 2>"$1/munge/err"
}

slurm_up() { # DIR; false when it does not come up, with the reason on standard output
    local dir=$1 node
    PATH=$PATH:/usr/sbin
    chmod 755 "$dir"
    mkdir "$dir/state" "$dir"/{spool,tmp}-n{1,2}
    slurm_configure "$dir" $((20000 + RANDOM % 400 * 25))
    export SLURM_CONF=$dir/slurm.conf
    slurm_daemons=()
    slurm_munge "$dir" || { cat "$dir/munge/err"; return 1; }
    slurmctld -D >"$dir/out-ctld" 2>&1 &
    slurm_daemons+=($!)
    for node in n1 n2; do
        slurmd -D -N $node >"$dir/out-$node" 2>&1 &
        slurm_daemons+=($!)
    done
    for _ in {1..100}; do
        [ "$(sinfo -h -N -o %T 2>/dev/null | grep -c idle)" = 2 ] && return 0
        sleep 0.1
    done
    grep -h -E 'fatal|error' "$dir"/*.log | tail -3
    return 1
}

slurm_down() { # DIR
    local step
    for step in $(pgrep -x slurmstepd); do # of ours alone: its environment has the folder
        grep -qsF "SLURM_CONF=$1/" "/proc/$step/environ" && kill -KILL "$step" 2>/dev/null
    done
    kill "${slurm_daemons[@]}" 2>/dev/null
    wait "${slurm_daemons[@]}" 2>/dev/null
    local munge
    munge=$(cat "$1/munge/pid" 2>/dev/null) || return 0
    kill "$munge" 2>/dev/null
    for _ in {1..50}; do
        kill -0 "$munge" 2>/dev/null || break
        sleep 0.1
    done
}
