/* See sharing.h. Names of teams hold no character that JSON would escape. */
#include "dataset/sharing.h"

#include <string.h>

#include "dataset/store_internal.h"

/* The next name of a list from *at on, n bytes; NULL behind the last. */
static const char *next_team(const char **at, size_t *n) {
    const char *name = *at + 1;
    if (!**at || !*name)
        return NULL;
    *n = strcspn(name, "|");
    *at = name + *n;
    return name;
}

/* A file from elsewhere may have another text: that counts as "", its own team alone. */
static const char *one_word(const char *shared) {
    if (!shared_is_valid(shared))
        return "team";
    return !strcmp(shared, "*") ? "all" : !*shared ? "team" : NULL;
}

static void print_list(const char *shared, const char *quote, const char *between, FILE *out) {
    const char *begin = shared, *name;
    size_t n;
    while ((name = next_team(&shared, &n)))
        fprintf(out, "%s%s%.*s%s", name == begin + 1 ? "" : between, quote, (int)n, name, quote);
}

void shared_print_json(const char *shared, FILE *out) {
    const char *word = one_word(shared);
    if (word) {
        fprintf(out, "\"%s\"", word);
        return;
    }
    putc('[', out);
    print_list(shared, "\"", ",", out);
    putc(']', out);
}

void shared_print_words(const char *shared, FILE *out) {
    const char *word = one_word(shared);
    if (word)
        fputs(word, out);
    else
        print_list(shared, "", " ", out);
}

cJSON *shared_json(const char *shared) {
    const char *word = one_word(shared), *name;
    if (word)
        return cJSON_CreateString(word);
    cJSON *list = cJSON_CreateArray();
    for (size_t n; list && (name = next_team(&shared, &n));) {
        char team[72];
        snprintf(team, sizeof team, "%.*s", (int)n, name);
        cJSON *item = cJSON_CreateString(team);
        if (!item || !cJSON_AddItemToArray(list, item)) {
            cJSON_Delete(item);
            cJSON_Delete(list);
            return NULL;
        }
    }
    return list;
}

static enum status read_list(const cJSON *json, struct arena *arena, const char **out, struct error *err) {
    const cJSON *item;
    char *text = arena_strdup(arena, json->child ? "|" : "");
    cJSON_ArrayForEach(item, json) {
        if (!cJSON_IsString(item) || !*item->valuestring || strchr(item->valuestring, '|'))
            return error_set(err, ST_INVALID, "shared: a list has names of teams");
        text = text ? arena_printf(arena, "%s%s|", text, item->valuestring) : NULL;
    }
    *out = text;
    return text ? ST_OK : error_no_memory(err);
}

enum status shared_read(const cJSON *json, struct arena *arena, const char **out, struct error *err) {
    if (cJSON_IsArray(json))
        return read_list(json, arena, out, err);
    if (!cJSON_IsString(json))
        return error_set(err, ST_INVALID, "shared: must be \"all\", \"team\" or a list of teams");
    const char *word = json->valuestring;
    *out = arena_strdup(arena, !strcmp(word, "all") ? "*" : !strcmp(word, "team") ? "" : word);
    return *out ? ST_OK : error_no_memory(err);
}

/* Whether `b` names every team that `a` names. Names are compared with the bars around them, so that none is found
 * within another. */
static bool is_within(const char *a, const char *b) {
    const char *name;
    for (size_t n; (name = next_team(&a, &n));) {
        char bounded[72];
        snprintf(bounded, sizeof bounded, "|%.*s|", (int)n, name);
        if (!strstr(b, bounded))
            return false;
    }
    return true;
}

bool shared_same(const char *a, const char *b) {
    if (one_word(a) || one_word(b))
        return !strcmp(a, b);
    return is_within(a, b) && is_within(b, a);
}

void shared_narrow(const char *a, const char *b, char *out) {
    const char *name;
    size_t n;
    if (!strcmp(a, "*") || !strcmp(b, "*")) {
        strcpy(out, strcmp(a, "*") ? a : b);
        return;
    }
    char *end = out;
    while ((name = next_team(&a, &n))) {
        char bounded[72];
        snprintf(bounded, sizeof bounded, "|%.*s|", (int)n, name);
        if (strstr(b, bounded)) {
            end += end == out;
            end = mempcpy(end, name, n);
            *end++ = '|';
        }
    }
    *out = end == out ? '\0' : '|';
    *end = '\0';
}

/* ---- what may be kept ---- */

bool team_is_valid(const char *team) {
    const size_t n = strlen(team);
    return n >= 1 && n <= 64 && strspn(team, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

bool team_is_word(const char *team) {
    return !strcmp(team, "all") || !strcmp(team, "team");
}

bool shared_is_valid(const char *shared) {
    char team[72];
    if (!strcmp(shared, "*") || !*shared)
        return true;
    if (*shared != '|' || !shared[1])
        return false;
    while (shared[1]) {
        const size_t n = strcspn(shared + 1, "|");
        if (n >= sizeof team || shared[1 + n] != '|')
            return false;
        memcpy(team, shared + 1, n);
        team[n] = '\0';
        if (!team_is_valid(team))
            return false;
        shared += 1 + n;
    }
    return true;
}

/* The message quotes what the user wrote: the first invalid name of a list, or the whole text. */
static enum status refuse_shared(const char *shared, struct error *err) {
    char team[72];
    if (*shared != '|')
        return error_set(err, ST_INVALID, "shared: \"%.70s\" is neither all, nor team, nor a list of teams", shared);
    do {
        shared++;
        snprintf(team, sizeof team, "%.*s", (int)strcspn(shared, "|"), shared);
        shared += strcspn(shared, "|");
    } while (team_is_valid(team) && *shared);
    return error_set(err, ST_INVALID, "shared: team \"%s\" is not 1 to 64 letters, digits and . _ -", team);
}

enum status check_team(const char *team, const char *shared, struct error *err) {
    if (team && !team_is_valid(team))
        return error_set(err, ST_INVALID, "team: \"%.70s\" is not 1 to 64 letters, digits and . _ -", team);
    return !shared || shared_is_valid(shared) ? ST_OK : refuse_shared(shared, err);
}
