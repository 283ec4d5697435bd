/* What may be kept of what others wrote: the one place that says so, for import, merge and check. */
#ifndef DATASET_VALIDATE_INTERNAL_H
#define DATASET_VALIDATE_INTERNAL_H

#include <cjson/cJSON.h>

#include "dataset/query.h"
#include "dataset/store.h"

/* Names, proposers, runners, clients: as long as a text of a description may be. Stamps and origins are shorter. A uid
 * that is made here is a word (record_uid_is_valid); files of other programs have other uids. */
enum { VALID_NAME_MAX = 4096, VALID_ORIGIN_MAX = 256, VALID_UID_MAX = 128, VALID_REASON_MAX = 16384 };

/* NULL is fine. Fails: ST_INVALID, with `what` before what is wrong. */
enum status validate_name(const char *what, const char *text, size_t most, struct error *err);
enum status validate_session_id(const char *id, struct error *err);

/* The names of a record that ended, and its uid. Fails: ST_INVALID. */
enum status validate_record(const struct record *record, struct error *err);

/* Whether an object is valid for its kind. A model and a cluster are read by their readers. A strategy, whose reader
 * needs both, must have the right "schema". No text in any object may hold what a terminal obeys; an environment may
 * have line ends and tabs, because commands of jobs have them. `content` is the parsed text. Cost: as reading the
 * description. Fails: ST_INVALID, ST_NO_MEMORY. */
enum status validate_object(enum store_kind kind, const char *name, const cJSON *content, struct error *err);

/* The texts of an environment: clean but for line ends and tabs, which commands have. Fails: ST_INVALID, ST_NO_MEMORY.
 */
enum status validate_environment(const char *json, struct error *err);

/* The environment made clean: each byte that is not allowed becomes a '?'. The caller frees *out, which is NULL where
 * nothing had to change. Fails: ST_INVALID (no JSON), ST_NO_MEMORY. */
enum status validate_clean_environment(const char *json, char **out, struct error *err);

/* Make a reason clean and no longer than VALID_REASON_MAX, in place. */
void validate_reason(char *reason);

#endif
