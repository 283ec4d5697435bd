/* CUDA_VISIBLE_DEVICES is left out: within an allocation it is this node's, and the launcher gives each node its own. A
 * user who wants it everywhere names it. */
#include "trial-runner/passed.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "trial-runner/words.h"

/* One that ends in '_' stands for all names that begin so. */
static const char *const families[] = {
    "LD_LIBRARY_PATH", "LD_PRELOAD", "OPAL_PREFIX", "PMIX_PREFIX", "OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_", "NCCL_",
    "CUDA_",           "UCX_",       "UCC_",        "FI_",         "PSM2_",     "HWLOC_",    "OMP_"};

static bool is_in_family(const char *name, size_t n) {
    static const char per_node[] = "CUDA_VISIBLE_DEVICES";
    if (n == sizeof per_node - 1 && strncmp(name, per_node, n) == 0)
        return false;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const size_t length = strlen(families[i]);
        const bool whole = families[i][length - 1] != '_';
        if ((whole ? n == length : n > length) && strncmp(name, families[i], length) == 0)
            return true;
    }
    return false;
}

static bool is_named(const char *list, const char *name, size_t n) {
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && strncmp(at, name, n) == 0)
            return true;
    return false;
}

static enum status check(const char *list, struct error *err) {
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',') {
        const size_t n = strcspn(at, ",");
        bool ok = n > 0 && !isdigit((unsigned char)*at);
        for (size_t i = 0; i < n; i++)
            ok = ok && (isalnum((unsigned char)at[i]) || at[i] == '_');
        if (!ok)
            return error_set(err, ST_INVALID, "\"%.*s\" is no name of an environment variable", (int)n, at);
    }
    return ST_OK;
}

enum status passed_names(const char *more, struct arena *arena, const char *const **out, struct error *err) {
    static const char *const none[] = {NULL};
    struct words names = {.arena = arena};
    enum status status = check(more, err);
    if (status)
        return status;
    for (char **variable = environ; variable && *variable; variable++) {
        const size_t n = strcspn(*variable, "=");
        if (n > 0 && (is_in_family(*variable, n) || is_named(more, *variable, n)))
            words_add(&names, arena_printf(arena, "%.*s", (int)n, *variable));
    }
    if (names.failed)
        return error_no_memory(err);
    *out = names.items ? names.items : none;
    return ST_OK;
}
