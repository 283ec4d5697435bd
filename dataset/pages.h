/* Lists a page at a time. The last page costs as much as the first. When the list grows meanwhile, no row is repeated
 * or skipped. A page gives the cursor of the next page: a text that only these functions understand, empty after the
 * last page. A cursor belongs to one list with the same conditions. Trials have pages of their own: query.h. Errors and
 * threads as in store.h. */
#ifndef DATASET_PAGES_H
#define DATASET_PAGES_H

#include "dataset/holdings.h"

enum { PAGE_CURSOR_ROOM = 192 };

struct object_list {
    enum store_kind kind;
    const char *name; /* only these; NULL: all */
    bool descending;  /* newest first */
    /* Who asks: only what this viewer may see, under the names that it is shown (holdings.h); `name` is compared with
     * these. NULL: all objects, under their first names. */
    const struct viewer *asker;
};

/* At most `limit` (1 to 10,000) objects without their contents after the cursor `after` (NULL: from the first).
 * Fails: ST_INVALID (a cursor of another list). */
enum status page_objects(struct store *store, const struct object_list *list, const char *after, size_t limit,
                         struct arena *arena, size_t *n, struct stored_object **out, char next[PAGE_CURSOR_ROOM],
                         struct error *err);

/* Every member narrows; {0} is every session. */
struct session_list {
    const char *viewer;          /* a team: only what it may see; NULL sees all */
    const char *model, *cluster; /* whole ids */
    const char *team;
    const enum stored_session_state *state;
    const enum stored_session_mode *mode;
};

/* Newest first. Fails as page_objects. */
enum status page_sessions(struct store *store, const struct session_list *list, const char *after, size_t limit,
                          struct arena *arena, size_t *n, struct stored_session **out, char next[PAGE_CURSOR_ROOM],
                          struct error *err);

#endif
