/* Who sees a trial or a session, as the dataset keeps it and as it is said.
 *
 * | kept    | in JSON         | in words    | who sees it          |
 * |---------|-----------------|-------------|----------------------|
 * | "*"     | "all"           | all         | everybody            |
 * | ""      | "team"          | team        | its own team         |
 * | "|a|b|" | ["a","b"]       | a b         | its own team, a and b |
 *
 * Everything that people and programs are shown or send has the words; the kept form is for SQL alone. */
#ifndef DATASET_SHARING_H
#define DATASET_SHARING_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/error.h"

/* The kept form as JSON, the caller's. NULL when memory is out. */
cJSON *shared_json(const char *shared);

/* The same written, without a cJSON in between; and in words. */
void shared_print_json(const char *shared, FILE *out);
void shared_print_words(const char *shared, FILE *out);

/* What JSON says, as it is kept, in `arena`; also the kept form itself, which files had before. It may still name teams
 * that are none (shared_is_valid). Fails: ST_INVALID (what it should be), ST_NO_MEMORY. */
enum status shared_read(const cJSON *json, struct arena *arena, const char **out, struct error *err);

/* Whether both, as they are kept, say the same, in whatever order they name teams. */
bool shared_same(const char *a, const char *b);

/* Who both let see it: what is merged or imported into a session is shown to nobody that the session hides it from.
 * `out` has room for the longer of the two. */
void shared_narrow(const char *a, const char *b, char *out);

#endif
