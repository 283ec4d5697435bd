/* Holdings: which team put a model, cluster, strategy or ranker, under which name, and who may see it.
 *
 * An object is the same for all teams, since its id is the hash of what it says. A holding says that a team put it,
 * what the team calls it, and whom the team shares it with. A team sees what it holds, what is shared with it, and what
 * occurs in a trial or session that it may see; everything else is as if it were not there. What was put without a team
 * (the command line, a file of an earlier version) is of no team and shared with all. Errors and threads as in store.h.
 */
#ifndef DATASET_HOLDINGS_H
#define DATASET_HOLDINGS_H

#include "dataset/store.h"

/* Who asks. A NULL asker is whoever has the file: everything is seen, and nothing is anybody's own. */
struct viewer {
    const char *team;
    bool sees_all; /* an administrator: hidden things are seen, names still mean the own team's first */
};

/* `team` holds the object, which must be here. team NULL is no team; shared NULL is all. While a holding is shared with
 * nobody, a new name replaces the old one; once it is shared, its name stays. How it is shared can always be changed.
 * Fails: ST_NOT_FOUND (no such object), ST_INVALID (not a valid team). */
enum status holding_put(struct store *store, enum store_kind kind, const char *id, const char *team, const char *name,
                        const char *shared, struct error *err);

/* Put the object and hold it, as one step. `content` is known to be JSON, and `id` to be its SHA-256: neither is looked
 * at again. Fails as holding_put. */
enum status holding_make(struct store *store, enum store_kind kind, const struct id *id, const char *content,
                         const char *team, const char *name, const char *shared, struct error *err);

/* As store_get and store_has, of what the asker may see, with the name and the time of creation that it has for the
 * asker (names_internal.h); seen_name gives the name alone. Fails: ST_NOT_FOUND, also where it is hidden.
 * O(log n + teams that hold it). */
enum status seen_get(struct store *store, enum store_kind kind, const char *id, const struct viewer *asker,
                     struct arena *arena, struct stored_object *out, struct error *err);
enum status seen_name(struct store *store, enum store_kind kind, const char *id, const struct viewer *asker,
                      struct arena *arena, const char **name, struct error *err);
enum status seen_has(struct store *store, enum store_kind kind, const char *id, const struct viewer *asker,
                     struct error *err);

/* As seen_has; *row is the number that trials refer to it by, which never changes. */
enum status seen_row(struct store *store, enum store_kind kind, const char *id, const struct viewer *asker,
                     int64_t *row, struct error *err);

/* The same of n ids at once; rows[i] is 0 where there is none, or it is hidden, or ids[i] is NULL. */
enum status seen_rows(struct store *store, enum store_kind kind, size_t n, const char *const *ids,
                      const struct viewer *asker, int64_t *rows, struct error *err);

/* The one object that `word` means to the asker: the beginning of an id (4 hex digits at least) or else a name. Both
 * are looked for first among what the asker's team holds or made, then among what is of no team, then among all that
 * the asker may see. Of several objects with one name it is the newest. So no team can take over the names or short ids
 * of another. Fails: ST_NOT_FOUND, ST_USAGE when the digits fit several. */
enum status seen_find(struct store *store, enum store_kind kind, const char *word, const struct viewer *asker,
                      struct id *out, struct error *err);

#endif
