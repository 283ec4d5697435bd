/* How the service reaches its dataset: one connection writes, for all threads; each thread reads through its own.
 *
 * Every reader sees what is committed from its next statement on. Threads: any, for every function but open and
 * close. */
#ifndef SERVICE_ACCESS_H
#define SERVICE_ACCESS_H

#include <stdbool.h>

#include "base/error.h"
#include "dataset/store.h"
#include "dataset/writer.h"

struct access; /* opaque */

struct access_options {
    const char *dataset; /* path; created when it is not there */
    /* How long events, the audit and the answers stored for repeated requests are kept, in microseconds; 0: events for
     * ever, the audit for two years, answers for a day. Events of open sessions stay. */
    double keep_events_us, keep_audit_us, keep_answers_us;
};

/* Holds a file's lock until closed. Fails: as store_open and writer_new. */
enum status access_open(const struct access_options *options, struct access **out, struct error *err);
void access_close(struct access *access); /* NULL is allowed; every other thread must have stopped using it */

const char *access_path(const struct access *access);

/* Whether other services may write the dataset too, and whether none did when this one began. */
bool access_is_shared(const struct access *access);
bool access_was_alone(const struct access *access);

/* Take the dataset's path out of an error (may be NULL): clients must not read it. */
void access_hide_path(const struct access *access, struct error *err);

/* This thread's read-only store, borrowed. It is opened at its first use and closed when the thread ends. Fails: as
 * store_open. */
enum status access_read(struct access *access, struct store **out, struct error *err);

/* Run `step` in a transaction of the one connection that writes, as writer_run. */
enum status access_write(struct access *access, write_step *step, void *context, struct error *err);

/* Delete events, audit entries and answers that are older than the options say: a thousand rows of each. *more: others
 * are left. */
enum status access_forget(struct access *access, bool *more, struct error *err);

#endif
