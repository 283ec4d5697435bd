/* What the ranks of a run said, kept in a file of its own: one a trial, in a folder that the user named.
 * Threads: one at a time. */
#ifndef TRIAL_RUNNER_TRANSCRIPT_H
#define TRIAL_RUNNER_TRANSCRIPT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum { TRANSCRIPT_PATH = 512 };

struct transcript {
    FILE *file; /* NULL: nothing is kept */
    char path[TRANSCRIPT_PATH];
};

/* Make sure that the folder is there and takes files. Fails: ST_ENVIRONMENT. */
enum status transcript_check_folder(const char *folder, struct error *err);

/* FOLDER/NUMBER-TITLE.log, or with number 0 FOLDER/TIME-TITLE.log; where one of that name is, -2, -3 ... is added.
 * Every character of the title but letters, digits, '-' and '.' becomes '_'. folder NULL: keep nothing. Fails:
 * ST_ENVIRONMENT. */
enum status transcript_open(struct transcript *out, const char *folder, uint64_t number, const char *title,
                            struct error *err);

void transcript_line(struct transcript *transcript, const char *text, size_t n);

/* The words of a command line, as a line. */
void transcript_command(struct transcript *transcript, const char *const *argv);

/* End the transcript; warns when not all of it could be written. */
void transcript_close(struct transcript *transcript);

#endif
