/* Where the datasets of tests are: files, or schemas of the PostgreSQL that SYNCOPATE_TEST_POSTGRESQL names
 * (tests/postgresql.sh). */
#ifndef TESTS_SUPPORT_DATASET_PLACE_H
#define TESTS_SUPPORT_DATASET_PLACE_H

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dataset/sql_internal.h"
#include "dataset/store_internal.h"
#include "tests/support/check.h"

/* The address of the PostgreSQL; NULL: datasets are files. */
static inline const char *test_database(void) {
    return getenv("SYNCOPATE_TEST_POSTGRESQL");
}

/* A dataset of its own in test_dir(), valid until the fourth call after this one. In PostgreSQL it is a schema, which
 * is called as the folder and the file would be. */
__attribute__((format(printf, 1, 2))) static inline const char *dataset_path(const char *format, ...) {
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4], name[128], schema[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    if (!test_database()) {
        snprintf(path, sizeof paths[0], "%s/%s", test_dir(), name);
        return path;
    }
    const char *folder = strrchr(test_dir(), '/');
    snprintf(schema, sizeof schema, "t%ld_%s_%s", (long)getpid(), folder ? folder + 1 : "", name);
    for (char *c = schema; *c; c++)
        *c = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '_';
    snprintf(path, sizeof paths[0], "%s&options=-csearch_path%%3D%s", test_database(), schema);
    return path;
}

/* For tests of what only files have. */
#define SKIP_IN_POSTGRESQL()                                                                                           \
    do {                                                                                                               \
        if (test_database())                                                                                           \
            skip();                                                                                                    \
    } while (0)

/* There is none any more, and none is open. */
static inline void dataset_remove(const char *path) {
    struct error err = {0};
    struct store *store = NULL;
    if (!test_database()) {
        unlink(path);
        return;
    }
    assert_ok(store_open(path, STORE_READ_WRITE, &store, &err));
    assert_ok(sql_exec(store, "DO $$ BEGIN EXECUTE format('DROP SCHEMA %I CASCADE', current_schema()); END $$", &err));
    store_close(store);
}

/* Change a dataset as another program could, whatever its rules say. */
static inline void change_dataset(const char *path, const char *sql) {
    static const char *const without_rules[] = {
        "PRAGMA ignore_check_constraints = 1; PRAGMA foreign_keys = 0;"
        " DROP TRIGGER sessions_changed; DROP TRIGGER holdings_changed",
        "DO $$ DECLARE c record; BEGIN FOR c IN SELECT conrelid::regclass AS t, conname FROM pg_constraint"
        " WHERE connamespace = current_schema()::regnamespace AND contype IN ('c', 'f') ORDER BY contype DESC LOOP"
        " EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.t, c.conname); END LOOP;"
        " FOR c IN SELECT tgrelid::regclass AS t, tgname FROM pg_trigger"
        " WHERE tgfoid IN (SELECT oid FROM pg_proc WHERE pronamespace = current_schema()::regnamespace"
        " AND proname IN ('check_trials', 'check_trial', 'check_iterations', 'check_iteration', 'keep_referred')) LOOP"
        " EXECUTE format('DROP TRIGGER %I ON %s', c.tgname, c.t); END LOOP; END $$;"
        " DROP TRIGGER IF EXISTS sessions_changed ON sessions; DROP TRIGGER IF EXISTS holdings_changed ON holdings"};
    struct error err = {0};
    struct store *store = NULL;
    assert_ok(store_open(path, STORE_READ_WRITE, &store, &err));
    assert_ok(sql_exec(store, without_rules[test_database() != NULL], &err));
    assert_ok(sql_exec(store, sql, &err));
    store_close(store);
}

#endif
