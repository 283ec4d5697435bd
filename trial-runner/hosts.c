/* See hosts.h. */
#include "trial-runner/hosts.h"

#include <stdio.h>
#include <string.h>

enum status hosts_read_file(const char *path, uint32_t n, struct arena *arena, const char ***out, struct error *err) {
    char line[1024], name[256];
    uint32_t found = 0;
    const char **names = arena_alloc(arena, n, sizeof *names);
    if (!names)
        return error_no_memory(err);
    FILE *file = fopen(path, "r");
    if (!file)
        return error_set(err, ST_NOT_FOUND, "%s: %m", path);
    enum status status = ST_OK;
    while (fgets(line, sizeof line, file) && status == ST_OK) {
        line[strcspn(line, "#")] = '\0';
        if (sscanf(line, "%255s", name) != 1)
            continue;
        if (found < n && !(names[found] = arena_strdup(arena, name)))
            status = error_no_memory(err);
        found++;
    }
    fclose(file);
    if (status == ST_OK && found != n)
        return error_set(err, ST_INVALID,
                         "%s names %u hosts; the cluster has %u nodes: give one a line, in their order", path, found,
                         n);
    if (status == ST_OK)
        *out = names;
    return status;
}

unsigned hosts_ranks(size_t n, const struct host *hosts) {
    unsigned ranks = 0;
    for (size_t i = 0; i < n; i++)
        ranks += hosts[i].slots;
    return ranks;
}
