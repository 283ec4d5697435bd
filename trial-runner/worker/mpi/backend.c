/* The MPI worker: nothing is needed but an MPI that lets a program choose its algorithms. */
#include "trial-runner/worker/backend.h"

#include <string.h>

#include "trial-runner/worker/mpi/collective.h"
#include "trial-runner/worker/report.h"

enum status backend_probe(struct error *err) {
    (void)err;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int n;
    MPI_Get_library_version(text, &n);
    text[strcspn(text, ",")] = '\0';
    cJSON *line = report_event("probe");
    cJSON_AddStringToObject(line, "mpi", text);
    report_send(line);
    return ST_OK;
}

enum status backend_open(struct error *err) {
    return collective_init(err);
}

enum status backend_check_plan(const struct plan *plan, struct error *err) {
    return collective_check_plan(plan, err);
}

enum status backend_join(struct world *world, struct error *err) {
    (void)world, (void)err;
    return ST_OK;
}

void backend_leave(struct world *world) {
    (void)world;
}

void backend_describe(const struct world *world, cJSON *ready) {
    (void)world, (void)ready;
}
