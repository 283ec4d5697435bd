/* There are few: the list is searched. */
#include "trial-runner/worker/mpi/update_kept.h"

#include <stdlib.h>

#include "trial-runner/worker/report.h"

struct kept {
    struct kept *next;
    char *buffer;
    bool asked;
};

char *update_kept_buffer(struct update_kept *k, const struct update_form *form) {
    return pool_take(&k->pool, update_bytes(form));
}

void update_kept_add(struct update_kept *k, char *buffer) {
    struct kept *kept = report_alloc(1, sizeof *kept), **end = &k->first;
    *kept = (struct kept){.buffer = buffer};
    while (*end)
        end = &(*end)->next;
    *end = kept;
}

static void ask(struct update_kept *k, struct kept *kept) {
    k->sent += !kept->asked;
    kept->asked = true;
}

void update_kept_ask(struct update_kept *k, uint32_t iteration) {
    for (struct kept *kept = k->first; kept; kept = kept->next)
        if (update_head_of(kept->buffer)->iteration == iteration)
            ask(k, kept);
}

void update_kept_ask_all(struct update_kept *k) {
    k->lost = true;
    for (struct kept *kept = k->first; kept; kept = kept->next)
        ask(k, kept);
}

void update_kept_send(struct update_kept *k, const struct update_run *run, struct requests *requests) {
    struct kept *kept = k->first;
    while (kept && !kept->asked)
        kept = kept->next;
    if (!kept || k->flying)
        return;
    k->flying = true;
    MPI_Isend(kept->buffer, run->forms[0].units, run->unit, run->replica, 0, run->world->pushes,
              requests_add(requests, (struct completion){.kind = DONE_COPY, .buffer = kept->buffer}));
}

void update_kept_left(struct update_kept *k, char *buffer) {
    struct kept **at = &k->first;
    while ((*at)->buffer != buffer)
        at = &(*at)->next;
    struct kept *kept = *at;
    *at = kept->next;
    free(kept);
    if (!k->lost)
        pool_give(&k->pool, buffer);
    k->flying = false;
}

void update_kept_release(struct update_kept *k) {
    while (k->first)
        update_kept_left(k, k->first->buffer);
    pool_release(&k->pool);
}
