/* Host files as MPI launchers read them: a host a line, with "slots=N" (Open MPI), ":N" (MPICH) or nothing behind it; a
 * host that is named again has one slot more. '#' starts a comment. A slot is a device. */
#include <ctype.h>
#include <string.h>

#include "interop/import/cluster_kinds.h"

static bool is_host(const char *word, size_t n) {
    bool letters = false;
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)word[i]) && !strchr("._-", word[i]))
            return false;
        letters = letters || isalnum((unsigned char)word[i]);
    }
    return letters;
}

static bool is_host_line(const char *line, size_t n) {
    const size_t blank = strspn(line, " \t"), stop = strcspn(line, "#\r\n") < n ? strcspn(line, "#\r\n") : n;
    if (blank >= stop)
        return true;
    const size_t host = strcspn(line + blank, " \t:#\r\n");
    const char *rest = line + blank + host;
    if (!is_host(line + blank, host))
        return false;
    rest += strspn(rest, " \t");
    return rest >= line + stop || !strncmp(rest, "slots=", 6) || !strncmp(rest, "max_slots=", 10) ||
           !strncmp(rest, "max-slots=", 10) || (*rest == ':' && isdigit((unsigned char)rest[1]));
}

bool hostfile_is(const struct source *source) {
    size_t n, hosts = 0;
    for (const char *line = source->text; *line; line += n + (line[n] == '\n')) {
        n = strcspn(line, "\n");
        if (!is_host_line(line, n))
            return false;
        hosts += strcspn(line, "#\r\n \t") > 0;
    }
    return hosts > 0;
}

/* The words after the host; *slots stays 0 when no word gives them. */
static enum status read_slots(const struct lines *lines, size_t n, char **words, uint64_t *slots, struct error *err) {
    enum status st = ST_OK;
    for (size_t i = 0; i < n && !st; i++) {
        if (!strncmp(words[i], "slots=", 6))
            st = lines_integer(lines, "slots", words[i] + 6, 1, CLUSTER_MAX_DEVICES_PER_NODE, slots, err);
        else if (strncmp(words[i], "max_slots=", 10) != 0 && strncmp(words[i], "max-slots=", 10) != 0)
            st = lines_fail(lines, err, "\"%.60s\" after a host; known are slots=N and max_slots=N", words[i]);
    }
    return st;
}

static enum status read_host(const struct lines *lines, char *line, struct cluster_draft *met, struct error *err) {
    char *words[SOURCE_MAX_WORDS];
    uint64_t slots = 0;
    line[strcspn(line, "#")] = 0;
    const size_t n = words_split(line, words);
    if (!n)
        return ST_OK;
    char *colon = strchr(words[0], ':');
    enum status st = read_slots(lines, n - 1, words + 1, &slots, err);
    if (!st && colon) {
        *colon = 0;
        st = lines_integer(lines, "slots", colon + 1, 1, CLUSTER_MAX_DEVICES_PER_NODE, &slots, err);
    }
    if (!st && !is_host(words[0], strlen(words[0])))
        st = lines_fail(lines, err, "\"%.60s\" is not the name of a host", words[0]);
    if (st)
        return st;
    const size_t before = met->nodes.n;
    struct draft_node *node = cluster_draft_node(met, words[0], strlen(words[0]));
    if (!node)
        return error_no_memory(err);
    if (slots)
        node->devices += slots;
    else if (met->nodes.n == before)
        node->devices = (node->devices ? node->devices : 1) + 1;
    return ST_OK;
}

enum status hostfile_read(const struct source *source, const struct import_settings *settings, struct notes *notes,
                          struct cluster_draft *draft, struct error *err) {
    (void)settings;
    (void)notes;
    struct cluster_draft met;
    struct lines lines;
    enum status st = ST_OK;
    if (!lines_init(&lines, source, draft->arena))
        return error_no_memory(err);
    cluster_draft_init(&met, draft->arena);
    for (char *line; !st && (line = lines_next(&lines));)
        st = read_host(&lines, line, &met, err);
    if (!st && !met.nodes.n)
        st = error_at(err, ST_INVALID, source->name, "no host is named there");
    if (!st && !cluster_draft_take(draft, &met.nodes, DRAFT_LISTED))
        st = error_no_memory(err);
    cluster_draft_release(&met);
    return st;
}
