/* See turns.h. */
#include "strategy/updates/turns.h"

#include "strategy/cluster.h"

/* Whether those on their way leave some of the server's rate. */
static bool server_is_free(uint32_t n, const struct turn *turns, uint32_t server, const double *rates) {
    double taken = 0;
    for (uint32_t i = 0; i < n; i++)
        if (turns[i].goes && turns[i].node != server)
            taken += rates[turns[i].node * DIRECTION_COUNT + DIRECTION_OUT];
    return taken < rates[server * DIRECTION_COUNT + DIRECTION_IN];
}

static uint64_t on_their_way(uint32_t n, const struct turn *turns) {
    uint64_t updates = 0;
    for (uint32_t i = 0; i < n; i++)
        updates += turns[i].goes ? turns[i].n : 0;
    return updates;
}

uint32_t turns_next(uint32_t n, const struct turn *turns, uint32_t server, uint64_t version, const double *rates) {
    const bool free = server_is_free(n, turns, server, rates);
    uint64_t before = version + on_their_way(n, turns); /* the version to which turn t is added, at the latest */
    uint64_t spare = UINT64_MAX;                        /* so many more bear all those before turn t */
    for (uint32_t t = 0; t < n; t++) {
        const struct turn *turn = &turns[t];
        if (turn->ready && !turn->goes && (free || turn->node == server) && turn->n <= spare)
            return t;
        before -= turn->goes ? turn->n : 0; /* it does not wait for itself */
        const uint64_t its = turn->last > before ? turn->last - before : 0;
        spare = its < spare ? its : spare;
        before += turn->n;
    }
    return n;
}
