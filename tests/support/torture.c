/* See torture.h. The linker turns malloc and its family into the __wrap_ functions here (-Wl,--wrap). Live allocations
 * are kept in a hash set of their addresses rather than counted, because memory that libc itself allocated may be freed
 * by our code and the other way round. The method is curl's torture mode. Cost: k runs of fn for k allocations. */
#include "tests/support/torture.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/check.h"

enum { SLOTS = 1 << 18, MOST_ROUNDS = 200000 };

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);
void __wrap_free(void *memory);

static struct {
    bool armed, failed;
    size_t until_failure; /* allocations that still succeed */
    size_t live;
} state;

/* Open addressing. What an earlier round left counts as empty, since clearing them all takes longer than many rounds.
 */
static struct slot {
    uintptr_t address; /* 0: was freed */
    size_t round;
} slots[SLOTS];
static size_t this_round;

static struct slot *slot_of(uintptr_t address) {
    size_t i = (size_t)((address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20) % SLOTS;
    while (slots[i].round == this_round && slots[i].address != address)
        i = (i + 1) % SLOTS;
    return &slots[i];
}

static void *remember(void *memory) {
    if (state.armed && memory) {
        if (state.live >= SLOTS / 2) {
            fprintf(stderr, "torture: more than %d live allocations; use a smaller case\n", SLOTS / 2);
            abort();
        }
        *slot_of((uintptr_t)memory) = (struct slot){(uintptr_t)memory, this_round};
        state.live++;
    }
    return memory;
}

static void forget(void *memory) {
    if (!state.armed || !memory)
        return;
    struct slot *slot = slot_of((uintptr_t)memory);
    if (slot->round == this_round) {
        slot->address = 0;
        state.live--;
    }
}

static bool fails_now(void) {
    if (!state.armed || state.failed || state.until_failure-- > 0)
        return false;
    state.failed = true;
    return true;
}

void *__wrap_malloc(size_t size) {
    return fails_now() ? NULL : remember(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size) {
    return fails_now() ? NULL : remember(__real_calloc(n, size));
}

void *__wrap_realloc(void *old, size_t size) {
    if (fails_now())
        return NULL;
    void *memory = __real_realloc(old, size);
    if (memory) {
        forget(old);
        remember(memory);
    }
    return memory;
}

char *__wrap_strndup(const char *text, size_t n) {
    const size_t length = strnlen(text, n);
    char *copy = __wrap_malloc(length + 1);
    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

char *__wrap_strdup(const char *text) {
    return __wrap_strndup(text, strlen(text));
}

void __wrap_free(void *memory) {
    forget(memory);
    __real_free(memory);
}

static void check_round(size_t round, enum status status, const struct error *err) {
    const enum status want = state.failed ? ST_NO_MEMORY : ST_OK;
    if (status != want) {
        print_error("allocation %zu %s: got %s (%s), not %s\n", round, state.failed ? "failed" : "was never asked for",
                    status_word(status), ERROR_TEXT(err), status_word(want));
        fail();
    }
    if (want == ST_NO_MEMORY && (err->status != ST_NO_MEMORY || err->message[0] == '\0')) {
        print_error("allocation %zu failed: no error was filled in\n", round);
        fail();
    }
    if (state.live > 0) {
        print_error("allocation %zu %s: %zu allocations were not freed\n", round,
                    state.failed ? "failed" : "was never asked for", state.live);
        fail();
    }
}

size_t torture(enum status (*fn)(void *arg, struct error *err), void *arg) {
    /* cJSON calls malloc inside its own library, where the linker does not reach. */
    cJSON_InitHooks(&(cJSON_Hooks){__wrap_malloc, __wrap_free});
    for (size_t round = 0; round < MOST_ROUNDS; round++) {
        struct error err = {0};
        memset(&state, 0, sizeof state);
        state.until_failure = round;
        this_round++; /* over all calls; 0 is none */
        state.armed = true;
        const enum status status = fn(arg, &err);
        state.armed = false;
        check_round(round + 1, status, &err);
        if (!state.failed) {
            cJSON_InitHooks(NULL);
            return round;
        }
    }
    print_error("still failing after %d allocations; use a smaller case\n", MOST_ROUNDS);
    fail();
    return 0;
}
