/* The Chrome trace event format, as far as our traces use it: names of processes and rows, and events that others write
 * between trace_file_event and a closing brace. Times in a file are microseconds. */
#ifndef SIMULATOR_TRACE_FILE_H
#define SIMULATOR_TRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct trace_file {
    FILE *out;
    bool any; /* some event is written */
};

void trace_file_begin(struct trace_file *file);

/* Before each event: what comes between two. */
void trace_file_event(struct trace_file *file);

/* A JSON string. */
void trace_file_text(struct trace_file *file, const char *text);

/* what: "process_name" or "thread_name", of the row. */
void trace_file_name(struct trace_file *file, const char *what, uint32_t process, unsigned row, const char *name);

/* The first row from 0 on that is free at start_us, from then on busy until end_us; a new one if none is, and the last
 * when they run out. free_us has room for most_rows. */
unsigned trace_file_row(double *free_us, unsigned *n_rows, unsigned most_rows, double start_us, double end_us);

/* Fails: ST_ENVIRONMENT (it cannot be written). */
enum status trace_file_end(struct trace_file *file, struct error *err);

#endif
