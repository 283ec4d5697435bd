/* The notes of an importer in a test: empty before each one, released behind it. */
#ifndef TESTS_UNIT_INTEROP_IMPORT_NOTES_H
#define TESTS_UNIT_INTEROP_IMPORT_NOTES_H

#include "tests/support/check.h"
#include "tests/unit/interop/imports.h"

static struct arena arena;
static struct notes notes;

static inline int notes_begin(void **state) {
    *state = NULL;
    notes = (struct notes){.arena = &arena};
    return 0;
}

static inline int notes_end(void **state) {
    *state = NULL;
    arena_release(&arena);
    return 0;
}

#define WITH_NOTES(test) cmocka_unit_test_setup_teardown(test, notes_begin, notes_end)

#endif
