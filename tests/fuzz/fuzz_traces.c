/* Bytes as the traces of up to three ranks, with a NUL between two. What is accepted adds up, and is explained the same
 * again; what is refused has one line that says why. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interop/traces/explanation.h"
#include "tests/fuzz/require.h"

enum { MAX_RANKS = 3, CELLS = 7 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static size_t cut(char *text, size_t n, struct source sources[MAX_RANKS]) {
    static const char *const names[MAX_RANKS] = {"a", "b", "c"};
    size_t ranks = 0;
    for (char *at = text; ranks < MAX_RANKS; ranks++) {
        const size_t length = ranks + 1 < MAX_RANKS ? strlen(at) : n - (size_t)(at - text);
        sources[ranks] = (struct source){.name = names[ranks], .text = at, .n = length};
        at += length + 1;
        if (at > text + n)
            return ranks + 1;
    }
    return ranks;
}

static void check(const struct explanation *e) {
    for (size_t i = 0; i < e->n; i++) {
        const struct rank_account *a = &e->accounts[i];
        double sum = 0;
        for (int k = 0; k < TIME_COUNT; k++) {
            require(a->us[k] >= 0, "no time is negative");
            sum += a->us[k];
        }
        require(a->iteration_us >= 0, "no iteration is of negative length");
        require(sum >= a->iteration_us * (1 - 1e-9) - 1e-3, "an iteration is all accounted for");
        require(a->n_last <= a->n_met && a->n_met <= e->meetings.n,
                "nobody comes last more often than to all meetings");
    }
    for (size_t i = 0; i < e->meetings.n; i++)
        require(!(e->meetings.items[i].cost_us < 0) && e->meetings.items[i].gap_us >= 0, "no cost is negative");
    require(e->most_won_us >= 0 && e->most_won_us <= e->iteration_us, "no more is won than an iteration");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    char *text = malloc(n + 1);
    struct source sources[MAX_RANKS];
    struct explanation first, second;
    struct error err = {0};
    enum time_kind cells[CELLS];
    size_t step;
    require(text != NULL, "memory for the input");
    memcpy(text, data, n);
    text[n] = 0;
    const size_t ranks = cut(text, n, sources);
    const enum status st = explanation_of(ranks, sources, &first, &err);
    if (st) {
        require(err.status == st && err.message[0] && !strchr(ERROR_TEXT(&err), '\n'), "a refusal is one line");
    } else {
        check(&first);
        require(!explanation_typical_step(&first.traces[0], &step, &err), "there is a typical step");
        require(!explanation_picture(&first, ranks - 1, 0, CELLS, cells, &err), "a step can be drawn");
        require(!explanation_of(ranks, sources, &second, &err), "what was read is read again");
        require(first.meetings.n == second.meetings.n && first.late == second.late, "the same is said twice");
        explanation_release(&first);
        explanation_release(&second);
    }
    free(text);
    return 0;
}
