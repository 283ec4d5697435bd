/* See trial-runner/hosts.h. */
#include "trial-runner/hosts.h"

#include <stdio.h>
#include <string.h>

enum { MOST_NAME = 255 };

static const char alphanumeric[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

/* How many characters of a name stand at the beginning; 0: none. */
static size_t name_length(const char *text) {
    return *text && strchr(alphanumeric, *text) ? strspn(text, all) : 0;
}

enum status hosts_check_name(const char *name, struct error *err) {
    const size_t first = name_length(name), second = first && name[first] == '@' ? name_length(name + first + 1) : 0;
    const size_t whole = second ? first + 1 + second : first;
    if (whole && !name[whole] && whole <= MOST_NAME)
        return ST_OK;
    return error_set(
        err, ST_INVALID,
        "\"%.80s\" is no name of a host: letters, digits, '.', '-' and '_', the first a letter or a digit; "
        "say where the nodes are by --hosts FILE",
        name);
}

enum status hosts_read_file(const char *path, uint32_t n, struct arena *arena, const char ***out, struct error *err) {
    char line[1024], name[256];
    uint32_t found = 0;
    const char **names = arena_alloc(arena, n, sizeof *names);
    if (!names)
        return error_no_memory(err);
    FILE *file = fopen(path, "r");
    if (!file)
        return error_at(err, ST_NOT_FOUND, path, "%m");
    enum status status = ST_OK;
    while (fgets(line, sizeof line, file) && !status) {
        line[strcspn(line, "#")] = '\0';
        if (sscanf(line, "%255s", name) != 1)
            continue;
        status = hosts_check_name(name, err);
        if (status)
            error_prefix(err, status, "%s", path);
        else if (found < n && !(names[found] = arena_strdup(arena, name)))
            status = error_no_memory(err);
        found++;
    }
    fclose(file);
    if (!status && found != n)
        return error_set(err, ST_INVALID,
                         "%s names %u hosts; the cluster has %u nodes: give one a line, in their order", path, found,
                         n);
    if (!status)
        *out = names;
    return status;
}

unsigned hosts_ranks(size_t n, const struct host *hosts) {
    unsigned ranks = 0;
    for (size_t i = 0; i < n; i++)
        ranks += hosts[i].slots;
    return ranks;
}
