/* A command line in the making: a NULL-terminated list of words that grows in an arena.
 *
 * Functions that add return nothing. When memory runs out, or a word is NULL because making it failed, `failed` is set
 * and stays set; whoever uses the list checks it once. */
#ifndef TRIAL_RUNNER_WORDS_H
#define TRIAL_RUNNER_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

struct words {
    struct arena *arena;
    const char **items; /* NULL-terminated; NULL while empty */
    size_t n, capacity;
    bool failed;
};

/* `word` is borrowed. */
void words_add(struct words *words, const char *word);

/* Add the words of a text, which white space divides; NULL: none. */
void words_add_text(struct words *words, const char *text);

/* The number of words of a NULL-terminated list, which may be NULL. */
size_t words_count(const char *const *list);

#endif
