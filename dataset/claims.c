/* A list of a few names, each an advisory lock of the store's connection (postgres_open.c). Cost: one exchange with the
 * server a claim. */
#include "dataset/claims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dataset/claims_internal.h"
#include "dataset/postgres_internal.h"
#include "dataset/store_internal.h"

static const double LOOK_AGAIN_US = 50e3;
static const char serving[] = "a service"; /* no name of a session: these have no blanks */

struct claim {
    struct claim *next;
    char name[256];
    bool together; /* others may have it too */
    bool lost;
};

/* Where the claim hangs in the list, or would. */
static struct claim **find(struct claim **list, const char *name) {
    while (*list && strcmp((*list)->name, name) != 0)
        list = &(*list)->next;
    return list;
}

bool store_is_shared(const struct store *store) {
    return store->postgres != NULL;
}

static enum status add(struct store *store, const char *name, bool together, struct error *err) {
    struct claim *claim = calloc(1, sizeof *claim);
    if (!claim)
        return error_no_memory(err);
    snprintf(claim->name, sizeof claim->name, "%s", name);
    claim->together = together;
    claim->next = store->claims;
    store->claims = claim;
    return ST_OK;
}

void store_unclaim(struct store *store, const char *name) {
    struct claim **at = find(&store->claims, name), *claim = *at;
    if (!claim)
        return;
    if (!claim->lost)
        postgres_unclaim(store, name, claim->together);
    *at = claim->next;
    free(claim);
}

enum status store_claim(struct store *store, const char *name, double patience_us, bool *taken, struct error *err) {
    const double end_us = clock_now_us() + patience_us;
    *taken = !store_is_shared(store) || store_has_claim(store, name);
    if (*taken)
        return ST_OK;
    store_unclaim(store, name); /* one that was lost */
    enum status status = postgres_claim(store, name, false, taken, err);
    while (!status && !*taken && clock_now_us() < end_us) {
        clock_sleep_us(LOOK_AGAIN_US);
        status = postgres_claim(store, name, false, taken, err);
    }
    return !status && *taken ? add(store, name, false, err) : status;
}

enum status store_claim_session(struct store *store, const char *session, double patience_us, struct error *err) {
    bool taken;
    enum status status = store_claim(store, session, patience_us, &taken, err);
    if (!status && !taken)
        status = error_at(err, ST_CONFLICT, store->path, "another process runs session %s", session);
    return status;
}

bool store_has_claim(const struct store *store, const char *name) {
    const struct claim *claim = store->claims;
    while (claim && strcmp(claim->name, name) != 0)
        claim = claim->next;
    return !store_is_shared(store) || (claim && !claim->lost);
}

enum status store_join(struct store *store, bool *alone, struct error *err) {
    bool joined = false;
    *alone = true;
    if (!store_is_shared(store))
        return ST_OK;
    enum status status = postgres_claim(store, serving, false, alone, err);
    if (!status)
        status = postgres_claim(store, serving, true, &joined, err);
    if (!status && *alone)
        postgres_unclaim(store, serving, false);
    if (!status && !joined)
        status = error_at(err, ST_CONFLICT, store->path, "another service is just starting; try again");
    return !status ? add(store, serving, true, err) : status;
}

enum status claims_take_again(struct store *store, struct error *err) {
    enum status status = ST_OK;
    for (struct claim *claim = store->claims; claim && !status; claim = claim->next) {
        bool taken = false;
        if (claim->lost)
            continue;
        status = postgres_claim(store, claim->name, claim->together, &taken, err);
        claim->lost = !status && !taken;
    }
    return status;
}

void claims_forget(struct store *store) {
    while (store->claims) {
        struct claim *claim = store->claims;
        store->claims = claim->next;
        free(claim);
    }
}
