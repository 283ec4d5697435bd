/* JSON lines on standard output. A line goes out in one write: lines of several ranks share one pipe behind mpirun. */
#include "trial-runner/worker/report.h"

#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"

static void write_all(const char *text, size_t n) {
    while (n > 0) {
        ssize_t written = write(STDOUT_FILENO, text, n);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            MPI_Abort(MPI_COMM_WORLD, status_exit_code(ST_CANCELLED));
        text += written;
        n -= (size_t)written;
    }
}

cJSON *report_event(const char *event) {
    cJSON *line = cJSON_CreateObject();
    if (!line || !cJSON_AddStringToObject(line, "event", event))
        MPI_Abort(MPI_COMM_WORLD, status_exit_code(ST_NO_MEMORY));
    return line;
}

void report_send(cJSON *line) {
    char *text = json_line(line);
    cJSON_Delete(line);
    size_t n = text ? strlen(text) : 0;
    char *whole = text ? realloc(text, n + 2) : NULL;
    if (!whole)
        MPI_Abort(MPI_COMM_WORLD, status_exit_code(ST_NO_MEMORY));
    memcpy(whole + n, "\n", 2);
    write_all(whole, n + 1);
    free(whole);
}

void report_iteration(uint32_t index, double time_us) {
    char line[128];
    int n = snprintf(line, sizeof line, "{\"event\":\"iteration\",\"index\":%u,\"time_us\":%.3f}\n", index, time_us);
    write_all(line, (size_t)n);
}

void report_error(const struct error *err) {
    cJSON *line = report_event(err->status == ST_INFEASIBLE ? "infeasible" : "error");
    cJSON_AddStringToObject(line, "status", status_word(err->status));
    cJSON_AddStringToObject(line, "reason", ERROR_TEXT(err));
    report_send(line);
}

_Noreturn void report_end(enum status status) {
    MPI_Abort(MPI_COMM_WORLD, status_exit_code(status));
    abort();
}

_Noreturn void report_abort(enum status status, const char *format, ...) {
    struct error err = {.status = status};
    va_list args;
    va_start(args, format);
    vsnprintf(err.message, sizeof err.message, format, args);
    va_end(args);
    report_error(&err);
    report_end(status);
}

void *report_alloc(size_t n, size_t size) {
    void *memory = calloc(n ? n : 1, size);
    if (!memory)
        report_abort(ST_NO_MEMORY, "out of memory for %zu elements of %zu bytes", n, size);
    return memory;
}
