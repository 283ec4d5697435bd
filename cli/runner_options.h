/* The options that say how a runner starts workers; --runner itself and --logs stand in the tables of their
 * commands, whose words for them differ. */
#ifndef CLI_RUNNER_OPTIONS_H
#define CLI_RUNNER_OPTIONS_H

#include "tuner/session/runners.h"

#define RUNNER_NAMES "lab|local|mpirun|slurm"

#define RUNNER_OPTIONS(w)                                                                                              \
    {"hosts", OPTION_TEXT, &(w).hosts, "FILE",                                                                         \
     "the hosts for mpirun or slurm, a line each, in the order of the cluster's nodes (default: the nodes' names)"},   \
        {"worker", OPTION_TEXT, &(w).worker, "mpi|nccl",                                                               \
         "what moves the gradients (default: nccl for mpirun and slurm on GPUs, else mpi); or a worker program's "     \
         "path"},                                                                                                      \
        {"share-gpu", OPTION_FLAG, &(w).share_gpu, NULL, "all ranks on one GPU, talking by NCCL's sockets"},           \
        {"partition", OPTION_TEXT, &(w).partition, "NAME",                                                             \
         "slurm's partition, where it asks for an allocation itself"},                                                 \
        {"account", OPTION_TEXT, &(w).account, "NAME", "slurm's account, likewise"},                                   \
        {"launch-options", OPTION_TEXT, &(w).launch_options, "WORDS",                                                  \
         "more words for mpirun or srun: \"--mca btl_tcp_if_include eth0\", \"--gres=gpu:4 --qos=high\""},             \
    {                                                                                                                  \
        "pass", OPTION_TEXT, &(w).pass, "NAME,...",                                                                    \
            "environment variables that ranks on other machines get too, beside those of MPI, NCCL and CUDA"           \
    }

#endif
