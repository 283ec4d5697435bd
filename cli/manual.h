/* Manual pages, in the language of man(7), from the command and option tables. Both functions walk the commands
 * (commands_walk): one thread. */
#ifndef CLI_MANUAL_H
#define CLI_MANUAL_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* The page of the command that n words name, {"dataset", "query"} say; n = 0: of the program. After a failed write
 * ferror(to) is true. Fails: ST_USAGE (there is no such command; nothing is written). */
enum status manual_write(size_t n, const char *const *words, FILE *to, struct error *err);

/* Every page as folder/syncopate-dataset-query.1. Fails: ST_ENVIRONMENT (a file cannot be written). */
enum status manual_write_all(const char *folder, struct error *err);

#endif
