/* See tokens.h. */
#include "tuner/service/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "dataset/store.h"

enum { MAX_FILE_BYTES = 16 << 20, BUCKET_S = 2 };
static const double LOOK_AGAIN_US = 500000; /* how often the file's stamp is looked at */

static const char *const words[] = {
#define X(constant, word) #word,
    ROLE_TABLE(X)
#undef X
        NULL,
};

const char *role_word(enum role role) {
    return words[role];
}

bool role_parse(const char *word, enum role *out) {
    for (size_t i = ROLE_READ; i < ROLE_COUNT; i++)
        if (!strcmp(word, words[i])) {
            *out = (enum role)i;
            return true;
        }
    return false;
}

bool token_name_valid(const char *name) {
    return team_is_valid(name);
}

/* Reading. */

static bool is_hex(const char *text, size_t n) {
    return strlen(text) == n && strspn(text, "0123456789abcdef") == n;
}

static enum status read_token(const struct json_at *at, struct token *out, struct error *err) {
    static const char *const known[] = {"id",      "name",    "team",           "role",           "sha256",
                                        "created", "expires", "requests_per_s", "trials_per_day", NULL};
    const char *id = NULL, *name = NULL, *team = NULL, *hash = NULL, *created = "", *expires = "";
    struct token t = {0};
    size_t role = 0;
    enum status st = json_expect_object(at, known, err);
    st = st ? st : json_get_string(at, "id", JSON_REQUIRED, &id, err);
    st = st ? st : json_get_string(at, "name", JSON_REQUIRED, &name, err);
    st = st ? st : json_get_string(at, "team", JSON_REQUIRED, &team, err);
    st = st ? st : json_get_word(at, "role", JSON_REQUIRED, words, &role, err);
    st = st ? st : json_get_string(at, "sha256", JSON_REQUIRED, &hash, err);
    st = st ? st : json_get_string(at, "created", JSON_REQUIRED, &created, err);
    st = st ? st : json_get_string(at, "expires", JSON_OPTIONAL, &expires, err);
    st = st ? st : json_get_number(at, "requests_per_s", JSON_OPTIONAL, 0, 1e9, &t.principal.requests_per_s, err);
    st = st ? st
            : json_get_integer(at, "trials_per_day", JSON_OPTIONAL, 0, 1000000000, &t.principal.trials_per_day, err);
    if (st)
        return st;
    if (!is_hex(id, TOKEN_ID_LENGTH) || !is_hex(hash, ID_LENGTH) || !token_name_valid(name) || !team_is_valid(team) ||
        role == ROLE_NONE || !clock_is_utc(created) || (*expires && !clock_is_utc(expires)))
        return json_fail(at, err, "is no token; make tokens with \"syncopate serve token create\"");
    snprintf(t.id, sizeof t.id, "%s", id);
    snprintf(t.name, sizeof t.name, "%s", name);
    snprintf(t.sha256, sizeof t.sha256, "%s", hash);
    snprintf(t.created, sizeof t.created, "%s", created);
    snprintf(t.expires, sizeof t.expires, "%s", expires);
    snprintf(t.principal.token, sizeof t.principal.token, "%s", id);
    snprintf(t.principal.team, sizeof t.principal.team, "%s", team);
    t.principal.role = (enum role)role;
    *out = t;
    return ST_OK;
}

/* The whole file in the arena, "" when it is not there. */
static enum status read_text(const char *path, struct arena *arena, char **out, size_t *n, struct error *err) {
    struct stat at;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        *n = 0;
        *out = arena_strdup(arena, "");
        return *out ? ST_OK : error_no_memory(err);
    }
    enum status st = ST_OK;
    if (fd < 0 || fstat(fd, &at))
        st = error_set(err, ST_ENVIRONMENT, "%s: %s", path, strerror(errno));
    else if (at.st_mode & (S_IRWXG | S_IRWXO))
        st = error_set(err, ST_INVALID, "%s: others can read it; chmod 600 it, and revoke what is in it", path);
    else if (at.st_size > MAX_FILE_BYTES)
        st = error_set(err, ST_INVALID, "%s: too large for a file of tokens", path);
    char *text = st ? NULL : arena_alloc(arena, (size_t)at.st_size + 1, 1);
    size_t used = 0;
    for (ssize_t got = 1; text && got > 0 && used < (size_t)at.st_size; used += (size_t)(got > 0 ? got : 0))
        got = read(fd, text + used, (size_t)at.st_size - used);
    if (fd >= 0)
        close(fd);
    if (st)
        return st;
    if (!text)
        return error_no_memory(err);
    *out = text;
    *n = used;
    return ST_OK;
}

static int compare_tokens(const void *a, const void *b) {
    return strcmp(((const struct token *)a)->id, ((const struct token *)b)->id);
}

static enum status read_line(const char *path, size_t number, const char *line, size_t n, struct token *out,
                             struct error *err) {
    char name[4200];
    cJSON *json;
    snprintf(name, sizeof name, "%.4096s:%zu", path, number);
    enum status st = json_parse(line, n, name, &json, err);
    if (st)
        return st;
    const struct json_at root = json_root(json, name);
    st = read_token(&root, out, err);
    cJSON_Delete(json);
    return st;
}

enum status tokens_read(const char *path, struct arena *arena, size_t *n, struct token **out, struct error *err) {
    char *text = NULL;
    size_t size = 0, lines = 0, count = 0;
    enum status st = read_text(path, arena, &text, &size, err);
    for (size_t i = 0; !st && i < size; i++)
        lines += text[i] == '\n';
    struct token *tokens = st ? NULL : arena_alloc(arena, lines + 1, sizeof *tokens);
    if (!st && !tokens)
        st = error_no_memory(err);
    for (size_t at = 0, number = 1; !st && at < size; number++) {
        size_t end = at;
        while (end < size && text[end] != '\n')
            end++;
        if (end > at)
            st = read_line(path, number, text + at, end - at, &tokens[count++], err);
        at = end + 1;
    }
    if (st)
        return st;
    qsort(tokens, count, sizeof *tokens, compare_tokens);
    *n = count;
    *out = tokens;
    return ST_OK;
}

/* Changing. */

static bool write_token(FILE *to, const struct token *t) {
    cJSON *json = cJSON_CreateObject();
    bool ok = json && cJSON_AddStringToObject(json, "id", t->id) && cJSON_AddStringToObject(json, "name", t->name) &&
              cJSON_AddStringToObject(json, "team", t->principal.team) &&
              cJSON_AddStringToObject(json, "role", role_word(t->principal.role)) &&
              cJSON_AddStringToObject(json, "sha256", t->sha256) &&
              cJSON_AddStringToObject(json, "created", t->created) &&
              (!*t->expires || cJSON_AddStringToObject(json, "expires", t->expires)) &&
              (t->principal.requests_per_s <= 0 ||
               cJSON_AddNumberToObject(json, "requests_per_s", t->principal.requests_per_s)) &&
              (!t->principal.trials_per_day ||
               cJSON_AddNumberToObject(json, "trials_per_day", (double)t->principal.trials_per_day));
    char *line = ok ? json_line(json) : NULL;
    ok = line && fprintf(to, "%s\n", line) > 0;
    free(line);
    cJSON_Delete(json);
    return ok;
}

/* Replace the file whole: a temporary one beside it, synced, renamed. */
static enum status write_tokens(const char *path, size_t n, const struct token *tokens, struct error *err) {
    char temporary[4096];
    if ((size_t)snprintf(temporary, sizeof temporary, "%s.new", path) >= sizeof temporary)
        return error_set(err, ST_ENVIRONMENT, "%.200s...: the path is too long", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
    bool ok = to && !fchmod(fd, 0600);
    for (size_t i = 0; i < n && ok; i++)
        ok = write_token(to, &tokens[i]);
    ok = ok && !fflush(to) && !fsync(fd);
    int problem = errno;
    if (to && fclose(to) && ok) {
        ok = false;
        problem = errno;
    }
    if (ok && !rename(temporary, path))
        return ST_OK;
    problem = ok ? errno : problem;
    unlink(temporary);
    return error_set(err, ST_ENVIRONMENT, "%s: %s", path, strerror(problem));
}

/* Changers come one after another. */
static enum status lock_file(const char *path, int *fd, struct error *err) {
    char name[4096];
    snprintf(name, sizeof name, "%.4080s.lock", path);
    *fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*fd >= 0 && !flock(*fd, LOCK_EX))
        return ST_OK;
    if (*fd >= 0)
        close(*fd);
    return error_set(err, ST_ENVIRONMENT, "%s: %s", name, strerror(errno));
}

static bool random_bytes(unsigned char *out, size_t n) {
    return getrandom(out, n, 0) == (ssize_t)n;
}

/* syn_ID_SECRET: 32 random bytes are 43 digits of 6 bits, the last with 4 of them. */
static enum status make_secret(char id[TOKEN_ID_LENGTH + 1], char out[TOKEN_LENGTH + 1], struct error *err) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char name[TOKEN_ID_LENGTH / 2], bytes[33] = {0};
    if (!random_bytes(name, sizeof name) || !random_bytes(bytes, 32))
        return error_set(err, ST_ENVIRONMENT, "no random numbers: %s", strerror(errno));
    for (size_t i = 0; i < sizeof name; i++)
        snprintf(id + 2 * i, 3, "%02x", name[i]);
    size_t n = (size_t)snprintf(out, TOKEN_LENGTH + 1, "syn_%s_", id);
    for (size_t i = 0; i < TOKEN_SECRET_LENGTH; i++) {
        const size_t bit = 6 * i, byte = bit / 8;
        const unsigned pair = (unsigned)bytes[byte] << 8 | bytes[byte + 1];
        out[n++] = digits[pair >> (10 - bit % 8) & 63];
    }
    out[n] = '\0';
    return ST_OK;
}

static bool has_team(size_t n, const struct token *tokens, const char *team) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(tokens[i].principal.team, team))
            return true;
    return false;
}

static enum status check_wanted(const struct token *wanted, size_t n, const struct token *tokens, struct error *err) {
    const char *team = wanted->principal.team;
    if (!token_name_valid(wanted->name) || !team_is_valid(team))
        return error_set(err, ST_INVALID, "names of tokens and teams are 1 to 64 letters, digits and . _ -");
    if (team_is_word(team) && !has_team(n, tokens, team))
        return error_set(err, ST_INVALID, "a team cannot be called %s: what is shared with \"%s\" is shared with %s",
                         team, team, !strcmp(team, "all") ? "everybody" : "one's own team");
    if (wanted->principal.role == ROLE_NONE)
        return error_set(err, ST_INVALID, "a token needs a role: read, submit, run or admin");
    if (*wanted->expires && !clock_is_utc(wanted->expires))
        return error_set(err, ST_INVALID, "\"%s\" is no UTC stamp like 2027-01-01T00:00:00.000Z", wanted->expires);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(tokens[i].name, wanted->name))
            return error_set(err, ST_CONFLICT, "there is a token called %s; revoke it first", wanted->name);
    return ST_OK;
}

static enum status add_token(const char *path, const struct token *wanted, struct arena *arena, struct token *out,
                             char secret[TOKEN_LENGTH + 1], struct error *err) {
    size_t n;
    struct token *old;
    struct token token = *wanted;
    struct id hash;
    enum status st = tokens_read(path, arena, &n, &old, err);
    if (!st && !*token.principal.team)
        strcpy(token.principal.team, has_team(n, old, "team") ? "team" : TOKEN_TEAM);
    st = st ? st : check_wanted(&token, n, old, err);
    st = st ? st : make_secret(token.id, secret, err);
    st = st ? st : id_of(secret, TOKEN_LENGTH, &hash, err);
    struct token *all = st ? NULL : arena_alloc(arena, n + 1, sizeof *all);
    if (!st && !all)
        st = error_no_memory(err);
    if (st)
        return st;
    snprintf(token.sha256, sizeof token.sha256, "%s", hash.hex);
    snprintf(token.principal.token, sizeof token.principal.token, "%s", token.id);
    clock_utc(token.created, sizeof token.created);
    memcpy(all, old, n * sizeof *all);
    all[n] = token;
    st = write_tokens(path, n + 1, all, err);
    if (!st)
        *out = token;
    return st;
}

enum status tokens_create(const char *path, const struct token *wanted, struct token *out,
                          char secret[TOKEN_LENGTH + 1], struct error *err) {
    struct arena arena = {0};
    int fd;
    enum status st = lock_file(path, &fd, err);
    if (st)
        return st;
    st = add_token(path, wanted, &arena, out, secret, err);
    close(fd);
    arena_release(&arena);
    return st;
}

static enum status remove_token(const char *path, const char *word, struct arena *arena, struct error *err) {
    size_t n, kept = 0;
    struct token *tokens;
    enum status st = tokens_read(path, arena, &n, &tokens, err);
    for (size_t i = 0; i < n && !st; i++)
        if (strcmp(tokens[i].id, word) && strcmp(tokens[i].name, word))
            tokens[kept++] = tokens[i];
    if (!st && kept == n)
        return error_set(err, ST_NOT_FOUND, "%s: no token has the id or name \"%s\"", path, word);
    return st ? st : write_tokens(path, kept, tokens, err);
}

enum status tokens_revoke(const char *path, const char *word, struct error *err) {
    struct arena arena = {0};
    int fd;
    enum status st = lock_file(path, &fd, err);
    if (st)
        return st;
    st = remove_token(path, word, &arena, err);
    close(fd);
    arena_release(&arena);
    return st;
}

/* A running service. */

struct bucket {
    char id[TOKEN_ID_LENGTH + 1];
    double level, at_us;
};

struct tokens {
    char *path;
    pthread_mutex_t mutex;
    struct arena arena; /* of `rows` */
    size_t n;
    struct token *rows;     /* by id */
    struct bucket *buckets; /* of the rows; malloc'd */
    struct stat stamp;
    double looked_us;
};

/* Buckets keep their level over a change of the file. */
static struct bucket *carry_buckets(const struct tokens *t, size_t n, const struct token *rows) {
    struct bucket *buckets = calloc(n + 1, sizeof *buckets);
    for (size_t i = 0; buckets && i < n; i++) {
        memcpy(buckets[i].id, rows[i].id, sizeof buckets[i].id);
        buckets[i].level = INFINITY; /* full */
        for (size_t k = 0; k < t->n; k++)
            if (!strcmp(t->buckets[k].id, rows[i].id))
                buckets[i] = t->buckets[k];
    }
    return buckets;
}

static enum status load(struct tokens *t, struct error *err) {
    struct arena arena = {0};
    struct token *rows;
    struct bucket *buckets = NULL;
    struct stat stamp = {0};
    size_t n;
    if (stat(t->path, &stamp))
        stamp = (struct stat){0};
    enum status st = tokens_read(t->path, &arena, &n, &rows, err);
    if (!st && !(buckets = carry_buckets(t, n, rows)))
        st = error_no_memory(err);
    t->stamp = stamp; /* also when it failed: the same bad file is read and told of once */
    if (st) {
        arena_release(&arena);
        return st;
    }
    arena_release(&t->arena);
    free(t->buckets);
    t->arena = arena;
    t->rows = rows;
    t->n = n;
    t->buckets = buckets;
    return ST_OK;
}

static bool same_stamp(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_mode == b->st_mode;
}

/* With the mutex held. A file that has become unreadable leaves the tokens as they were, and is told of. */
static void refresh(struct tokens *t) {
    struct error err = {0};
    struct stat now = {0};
    const double at = clock_now_us();
    if (at - t->looked_us < LOOK_AGAIN_US)
        return;
    t->looked_us = at;
    if (stat(t->path, &now))
        now = (struct stat){0};
    if (!same_stamp(&now, &t->stamp) && load(t, &err))
        log_error("tokens stay as they were: %s", err.message);
}

enum status tokens_open(const char *path, struct tokens **out, struct error *err) {
    struct tokens *t = calloc(1, sizeof *t);
    if (!t || !(t->path = strdup(path))) {
        free(t);
        return error_no_memory(err);
    }
    pthread_mutex_init(&t->mutex, NULL);
    enum status st = load(t, err);
    if (st) {
        tokens_close(t);
        return st;
    }
    t->looked_us = clock_now_us();
    *out = t;
    return ST_OK;
}

void tokens_close(struct tokens *t) {
    if (!t)
        return;
    pthread_mutex_destroy(&t->mutex);
    arena_release(&t->arena);
    free(t->buckets);
    free(t->path);
    free(t);
}

size_t tokens_count(struct tokens *t) {
    pthread_mutex_lock(&t->mutex);
    refresh(t);
    size_t n = t->n;
    pthread_mutex_unlock(&t->mutex);
    return n;
}

bool tokens_have_team(struct tokens *t, const char *team) {
    pthread_mutex_lock(&t->mutex);
    refresh(t);
    const bool found = has_team(t->n, t->rows, team);
    pthread_mutex_unlock(&t->mutex);
    return found;
}

static const struct token *find(const struct tokens *t, const char *id) {
    struct token key = {0};
    snprintf(key.id, sizeof key.id, "%s", id);
    return t->n ? bsearch(&key, t->rows, t->n, sizeof *t->rows, compare_tokens) : NULL;
}

static bool has_expired(const struct token *token) {
    char now[32];
    if (!*token->expires)
        return false;
    clock_utc(now, sizeof now);
    return strcmp(now, token->expires) >= 0;
}

bool tokens_check(struct tokens *t, const char *secret, struct principal *out) {
    struct id hash;
    char id[TOKEN_ID_LENGTH + 1];
    if (strlen(secret) != TOKEN_LENGTH || strncmp(secret, "syn_", 4) || id_of(secret, TOKEN_LENGTH, &hash, NULL))
        return false;
    snprintf(id, sizeof id, "%s", secret + 4);
    pthread_mutex_lock(&t->mutex);
    refresh(t);
    const struct token *token = find(t, id);
    const bool valid = token && !CRYPTO_memcmp(token->sha256, hash.hex, ID_LENGTH) && !has_expired(token);
    if (valid)
        *out = token->principal;
    pthread_mutex_unlock(&t->mutex);
    return valid;
}

bool tokens_confirm(struct tokens *t, struct principal *principal) {
    if (!*principal->token)
        return true;
    pthread_mutex_lock(&t->mutex);
    refresh(t);
    const struct token *token = find(t, principal->token);
    const bool valid = token && !has_expired(token);
    if (valid)
        *principal = token->principal;
    pthread_mutex_unlock(&t->mutex);
    return valid;
}

static bool spend(struct bucket *bucket, double rate, double now_us, unsigned *wait_s) {
    const double most = fmax(1, rate * BUCKET_S);
    const double filled = bucket->level + fmax(0, now_us - bucket->at_us) * 1e-6 * rate;
    bucket->level = fmin(most, filled);
    bucket->at_us = now_us;
    if (bucket->level >= 1) {
        bucket->level -= 1;
        return true;
    }
    *wait_s = (unsigned)fmin(3600, ceil((1 - bucket->level) / rate));
    return false;
}

bool tokens_spend(struct tokens *t, const struct principal *principal, unsigned *wait_s) {
    if (!*principal->token || principal->requests_per_s <= 0)
        return true;
    bool granted = true;
    pthread_mutex_lock(&t->mutex);
    const struct token *token = find(t, principal->token);
    if (token)
        granted = spend(&t->buckets[token - t->rows], principal->requests_per_s, clock_now_us(), wait_s);
    pthread_mutex_unlock(&t->mutex);
    return granted;
}
