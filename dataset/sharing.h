/* Whom a trial, a session or a holding is shared with: the form in the dataset, and the words for people and programs.
 *
 * | kept    | in JSON         | in words    | who sees it          |
 * |---------|-----------------|-------------|----------------------|
 * | "*"     | "all"           | all         | everybody            |
 * | ""      | "team"          | team        | its own team         |
 * | "|a|b|" | ["a","b"]       | a b         | its own team, a and b |
 *
 * People and programs see and send the words or the JSON; the kept form is for SQL alone. */
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

/* JSON in the kept form, in `arena`. A text in the kept form is accepted too: earlier versions wrote it. Names of teams
 * are not checked here (shared_is_valid does that). Fails: ST_INVALID, ST_NO_MEMORY. */
enum status shared_read(const cJSON *json, struct arena *arena, const char **out, struct error *err);

/* Whether two kept forms say the same. The order of teams does not matter. */
bool shared_same(const char *a, const char *b);

/* The audience that both kept forms have in common. So a trial that is merged or imported into a session is shown to
 * nobody from whom the session is hidden. `out` has room for the longer of the two. */
void shared_narrow(const char *a, const char *b, char *out);

#endif
