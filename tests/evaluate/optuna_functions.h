/* Optuna's TPE as a searcher (tests/support/tuner/reference.h), so that it plays by the same rules as ours: it runs in
 * optuna_functions.py beside this file, over a socket. Threads: one. */
#ifndef TESTS_EVALUATE_OPTUNA_FUNCTIONS_H
#define TESTS_EVALUATE_OPTUNA_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "tests/support/tuner/reference.h"

struct optuna {
    char version[32];
    size_t d; /* of the study that is open */
    int socket;
    FILE *answers;
    pid_t child;
};

/* Start the program, from the project's root. False, and nothing to stop: there is no Python or no Optuna. */
bool optuna_start(struct optuna *out);
/* A new study on [0, 1]^d; one at a time. The searcher borrows the peer. A peer that dies ends the program with a
 * message. */
void optuna_open(struct optuna *peer, size_t d, uint64_t seed, struct searcher *out);
void optuna_stop(struct optuna *peer);

#endif
