/* Live requests lie densely, so that one MPI_Testsome serves as progress call and as test of all: O(live) a poll. */
#include "trial-runner/worker/requests.h"

#include <stdlib.h>
#include <string.h>

#include "trial-runner/worker/report.h"

static void grow(struct requests *requests) {
    int capacity = requests->capacity ? requests->capacity * 2 : 64;
    size_t n = (size_t)capacity;
    requests->live = realloc(requests->live, n * sizeof *requests->live);
    requests->what = realloc(requests->what, n * sizeof *requests->what);
    requests->done = realloc(requests->done, n * sizeof *requests->done);
    requests->index = realloc(requests->index, n * sizeof *requests->index);
    if (!requests->live || !requests->what || !requests->done || !requests->index)
        report_abort(ST_NO_MEMORY, "out of memory for %d requests", capacity);
    requests->capacity = capacity;
}

MPI_Request *requests_add(struct requests *requests, struct completion what) {
    if (requests->n == requests->capacity)
        grow(requests);
    requests->what[requests->n] = what;
    return &requests->live[requests->n++];
}

static void compact(struct requests *requests) {
    int kept = 0;
    for (int i = 0; i < requests->n; i++) {
        if (requests->live[i] == MPI_REQUEST_NULL)
            continue;
        requests->live[kept] = requests->live[i];
        requests->what[kept++] = requests->what[i];
    }
    requests->n = kept;
}

int requests_poll(struct requests *requests) {
    int n = 0;
    if (requests->n == 0)
        return 0;
    MPI_Testsome(requests->n, requests->live, &n, requests->index, MPI_STATUSES_IGNORE);
    if (n <= 0)
        return 0;
    for (int i = 0; i < n; i++)
        requests->done[i] = requests->what[requests->index[i]];
    compact(requests);
    return n;
}

void requests_send_copy(struct requests *requests, const void *data, size_t bytes, int rank, int tag, MPI_Comm comm) {
    void *copy = report_alloc(bytes, 1);
    memcpy(copy, data, bytes);
    MPI_Isend(copy, (int)bytes, MPI_BYTE, rank, tag, comm,
              requests_add(requests, (struct completion){.kind = DONE_CONTROL_SEND, .buffer = copy}));
}

void requests_forget(struct requests *requests, enum completion_kind kind) {
    for (int i = 0; i < requests->n; i++)
        if (requests->what[i].kind == kind)
            requests->live[i] = MPI_REQUEST_NULL;
    compact(requests);
}

void requests_release(struct requests *requests) {
    free(requests->live);
    free(requests->what);
    free(requests->done);
    free(requests->index);
    *requests = (struct requests){0};
}

void requests_end(struct requests *requests) {
    for (int i = 0; i < requests->n; i++)
        if (requests->what[i].kind == DONE_REPORT || requests->what[i].kind == DONE_GO)
            MPI_Cancel(&requests->live[i]);
    MPI_Waitall(requests->n, requests->live, MPI_STATUSES_IGNORE);
    for (int i = 0; i < requests->n; i++)
        if (requests->what[i].kind == DONE_CONTROL_SEND)
            free(requests->what[i].buffer);
    requests_release(requests);
}
