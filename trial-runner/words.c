/* A full list is copied to one of twice the size; the old copies stay in the arena and take less room than the list. */
#include "trial-runner/words.h"

#include <string.h>

static bool reserve(struct words *words) {
    if (words->n + 1 < words->capacity)
        return true;
    const size_t capacity = words->capacity ? 2 * words->capacity : 64;
    const char **items = arena_alloc(words->arena, capacity, sizeof *items);
    if (!items)
        return false;
    if (words->n > 0)
        memcpy(items, words->items, words->n * sizeof *items);
    words->items = items;
    words->capacity = capacity;
    return true;
}

void words_add(struct words *words, const char *word) {
    if (words->failed || !word || !reserve(words)) {
        words->failed = true;
        return;
    }
    words->items[words->n++] = word;
    words->items[words->n] = NULL;
}

void words_add_text(struct words *words, const char *text) {
    static const char space[] = " \t\r\n";
    while (text && *(text += strspn(text, space))) {
        const size_t n = strcspn(text, space);
        words_add(words, arena_printf(words->arena, "%.*s", (int)n, text));
        text += n;
    }
}

size_t words_count(const char *const *list) {
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}
