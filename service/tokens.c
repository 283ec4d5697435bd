/* See tokens.h. */
#include "service/tokens.h"

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
#include "base/file.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stream.h"
#include "dataset/store.h"

enum { MAX_FILE_BYTES = 16 << 20, BUCKET_S = 2, SETTLED_S = 2 };
static const double LOOK_AGAIN_US = 500000; /* how often the file's stamp is looked at */
static const double TELL_AGAIN_US = 60e6;   /* how often the log says that the file cannot be read */

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

/* False: a time is written that is none. */
static bool set_times(struct token *t, const char *created, const char *expires) {
    snprintf(t->created, sizeof t->created, "%s", created);
    snprintf(t->expires, sizeof t->expires, "%s", expires);
    return clock_is_utc(created) && (!*expires || clock_is_utc(expires));
}

static enum status read_token(const struct json_at *at, struct token *out, struct error *err) {
    static const char *const known[] = {"id",      "name",    "team",           "role",           "sha256",
                                        "created", "expires", "requests_per_s", "trials_per_day", NULL};
    const char *id = NULL, *name = NULL, *team = NULL, *hash = NULL, *created = "", *expires = "";
    struct token t = {0};
    size_t role = 0;
    enum status st = json_expect_object(at, known, err);
    if (!st)
        st = json_get_string(at, "id", JSON_REQUIRED, &id, err);
    if (!st)
        st = json_get_string(at, "name", JSON_REQUIRED, &name, err);
    if (!st)
        st = json_get_string(at, "team", JSON_REQUIRED, &team, err);
    if (!st)
        st = json_get_word(at, "role", JSON_REQUIRED, words, &role, err);
    if (!st)
        st = json_get_string(at, "sha256", JSON_REQUIRED, &hash, err);
    if (!st)
        st = json_get_string(at, "created", JSON_REQUIRED, &created, err);
    if (!st)
        st = json_get_string(at, "expires", JSON_OPTIONAL, &expires, err);
    if (!st)
        st = json_get_number(at, "requests_per_s", JSON_OPTIONAL, 0, 1e9, &t.principal.requests_per_s, err);
    if (!st)
        st = json_get_integer(at, "trials_per_day", JSON_OPTIONAL, 0, 1000000000, &t.principal.trials_per_day, err);
    if (st)
        return st;
    if (!is_hex(id, TOKEN_ID_LENGTH) || !is_hex(hash, ID_LENGTH) || !token_name_valid(name) || !team_is_valid(team) ||
        role == ROLE_NONE || !set_times(&t, created, expires))
        return json_fail(at, err, "is no token; make tokens with \"syncopate serve token create\"");
    snprintf(t.id, sizeof t.id, "%s", id);
    snprintf(t.name, sizeof t.name, "%s", name);
    snprintf(t.sha256, sizeof t.sha256, "%s", hash);
    snprintf(t.principal.token, sizeof t.principal.token, "%s", id);
    snprintf(t.principal.team, sizeof t.principal.team, "%s", team);
    t.principal.role = (enum role)role;
    *out = t;
    return ST_OK;
}

static enum status cannot(const char *path, struct error *err) {
    return error_at(err, ST_ENVIRONMENT, path, "%s", strerror(errno));
}

static enum status check_file(int fd, const char *path, struct stat *at, struct error *err) {
    if (fd < 0 || fstat(fd, at))
        return cannot(path, err);
    if (at->st_mode & (S_IRWXG | S_IRWXO))
        return error_at(err, ST_INVALID, path, "others can read it; chmod 600 it, and revoke what is in it");
    if (at->st_size > MAX_FILE_BYTES)
        return error_at(err, ST_INVALID, path, "too large for a file of tokens");
    return ST_OK;
}

/* Read all n bytes. Fails when the file ends before, or cannot be read. */
static enum status read_bytes(int fd, const char *path, char *text, size_t n, struct error *err) {
    size_t used = 0;
    while (used < n) {
        const ssize_t got = read(fd, text + used, n - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return error_at(err, ST_ENVIRONMENT, path, "%s",
                            got < 0 ? strerror(errno) : "became shorter while it was read");
        used += (size_t)got;
    }
    return ST_OK;
}

/* Read the whole file into the arena, or "" when it is not there. */
static enum status read_text(const char *path, struct arena *arena, char **out, size_t *n, struct error *err) {
    struct stat at = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    enum status st = fd < 0 && errno == ENOENT ? ST_OK : check_file(fd, path, &at, err);
    char *text = st ? NULL : arena_alloc(arena, (size_t)at.st_size + 1, 1);
    if (!st && !text)
        st = error_no_memory(err);
    if (!st && fd >= 0)
        st = read_bytes(fd, path, text, (size_t)at.st_size, err);
    if (fd >= 0)
        close(fd);
    if (st)
        return st;
    *out = text;
    *n = (size_t)at.st_size;
    return ST_OK;
}

/* A line of the text: text[begin..end). Empty ones are those of tokens that were revoked in place. */
struct line {
    size_t begin, end, number;
};

static bool next_line(const char *text, size_t n, struct line *line) {
    do {
        line->begin = line->number++ ? line->end + 1 : 0;
        line->end = line->begin;
        while (line->end < n && text[line->end] != '\n')
            line->end++;
    } while (line->begin < n && line->end == line->begin);
    return line->begin < n;
}

static int compare_tokens(const void *a, const void *b) {
    return strcmp(((const struct token *)a)->id, ((const struct token *)b)->id);
}

static enum status read_line(const char *path, const char *text, const struct line *line, struct token *out,
                             struct error *err) {
    char name[4200];
    cJSON *json;
    snprintf(name, sizeof name, "%.4096s:%zu", path, line->number);
    enum status st = json_parse(text + line->begin, line->end - line->begin, name, &json, err);
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
    for (struct line line = {0}; !st && next_line(text, size, &line);)
        st = read_line(path, text, &line, &tokens[count++], err);
    if (st)
        return st;
    qsort(tokens, count, sizeof *tokens, compare_tokens);
    *n = count;
    *out = tokens;
    return ST_OK;
}

/* Changing. */

static char *token_line(const struct token *t) {
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
    cJSON_Delete(json);
    return line;
}

/* Write the tokens. A rename that is not on disk fails: after a crash it would bring the old file back, and a revoked
 * token with it. */
static enum status write_tokens(const char *path, size_t n, const struct token *tokens, struct error *err) {
    char *text;
    size_t size;
    FILE *to = stream_open(&text, &size);
    enum status st = ST_OK;
    for (size_t i = 0; i < n && to && !st; i++) {
        char *line = token_line(&tokens[i]);
        st = line ? ST_OK : error_no_memory(err);
        if (line)
            fprintf(to, "%s\n", line);
        free(line);
    }
    st = stream_close(to, st, &text, err);
    if (!st)
        st = file_write_private(path, size, text, err);
    free(text);
    return st;
}

/* Changers come one after another. Where the disk has no room for the lock's file, the file of tokens is locked. */
static enum status lock_file(const char *path, int *fd, struct error *err) {
    char name[4096];
    if ((size_t)snprintf(name, sizeof name, "%s.lock", path) >= sizeof name)
        return error_set(err, ST_ENVIRONMENT, "%.200s...: the path is too long", path);
    *fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*fd < 0 && (errno == ENOSPC || errno == EDQUOT))
        *fd = open(path, O_RDWR | O_CLOEXEC);
    if (*fd >= 0 && !flock(*fd, LOCK_EX))
        return ST_OK;
    enum status st = cannot(name, err);
    if (*fd >= 0)
        close(*fd);
    return st;
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
    if (!st)
        st = check_wanted(&token, n, old, err);
    if (!st)
        st = make_secret(token.id, secret, err);
    if (!st)
        st = id_of(secret, TOKEN_LENGTH, &hash, err);
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

static bool is_called(const struct token *token, const char *word) {
    return !strcmp(token->id, word) || !strcmp(token->name, word);
}

static bool write_newlines(int fd, const struct line *line) {
    char newlines[512];
    memset(newlines, '\n', sizeof newlines);
    for (size_t at = line->begin, n; at < line->end; at += n) {
        n = line->end - at < sizeof newlines ? line->end - at : sizeof newlines;
        if (pwrite(fd, newlines, n, (off_t)at) != (ssize_t)n)
            return false;
    }
    return true;
}

/* Overwrite the token's line, and no more, with newlines: that needs no room on the disk. A crash in the middle leaves
 * half a line, a file that cannot be read and lets nobody in. Where the token is not in the file any more, the file was
 * replaced but perhaps not synced: then *err, why replacing it failed, stays the error. */
static enum status blank_token(const char *path, const char *word, struct arena *arena, struct error *err) {
    char *text = NULL;
    size_t n = 0, blanked = 0;
    struct token token;
    const struct error first = *err;
    enum status st = read_text(path, arena, &text, &n, err);
    const int fd = st ? -1 : open(path, O_WRONLY | O_CLOEXEC);
    if (!st && fd < 0)
        st = cannot(path, err);
    for (struct line line = {0}; !st && next_line(text, n, &line);) {
        st = read_line(path, text, &line, &token, err);
        if (st || !is_called(&token, word))
            continue;
        blanked++;
        if (!write_newlines(fd, &line))
            st = cannot(path, err);
    }
    if (!st && fsync(fd))
        st = cannot(path, err);
    if (fd >= 0)
        close(fd);
    return st || blanked ? st : error_pass(err, &first);
}

static enum status remove_token(const char *path, const char *word, struct arena *arena, struct error *err) {
    size_t n, kept = 0;
    struct token *tokens;
    enum status st = tokens_read(path, arena, &n, &tokens, err);
    for (size_t i = 0; i < n && !st; i++)
        if (!is_called(&tokens[i], word))
            tokens[kept++] = tokens[i];
    if (!st && kept == n)
        return error_at(err, ST_NOT_FOUND, path, "no token has the id or name \"%s\"", word);
    if (!st)
        st = write_tokens(path, kept, tokens, err);
    return st == ST_ENVIRONMENT ? blank_token(path, word, arena, err) : st;
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
    double looked_us, told_us; /* when the stamp was looked at, and when a fault was last told of */
    bool seen;                 /* the file was there */
    bool settled;              /* the file is so old that another change of it has another stamp */
    uint64_t faults;
    struct error fault; /* why the file cannot be read; ST_OK: it can */
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

/* File systems stamp changes by a clock that ticks every few milliseconds: a file that changed just now may change
 * again under the same stamp. */
static bool has_settled(const struct stat *stamp) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return llabs((long long)now.tv_sec - (long long)stamp->st_mtim.tv_sec) > SETTLED_S;
}

/* Read the tokens. A file that was there and is gone is an error, and *rows stays as it was. */
static enum status read_rows(struct tokens *t, const struct stat *stamp, struct arena *arena, size_t *n,
                             struct token **rows, struct error *err) {
    if (!stamp->st_ino && t->seen)
        return error_at(err, ST_NOT_FOUND, t->path, "the file is gone; put it back, or make new tokens");
    return tokens_read(t->path, arena, n, rows, err);
}

static enum status load(struct tokens *t, struct error *err) {
    struct arena arena = {0};
    struct token *rows = NULL;
    struct bucket *buckets = NULL;
    struct stat stamp = {0};
    size_t n = 0;
    if (stat(t->path, &stamp))
        stamp = (struct stat){0};
    enum status st = read_rows(t, &stamp, &arena, &n, &rows, err);
    if (!st && !(buckets = carry_buckets(t, n, rows)))
        st = error_no_memory(err);
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
    t->stamp = stamp;
    t->settled = has_settled(&stamp);
    t->seen |= stamp.st_ino != 0;
    return ST_OK;
}

static bool same_stamp(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_mode == b->st_mode;
}

static void tell(struct tokens *t, const struct error *err, double now) {
    const bool news = strcmp(ERROR_TEXT(err), ERROR_TEXT(&t->fault)) != 0;
    t->faults += err->status && !t->fault.status;
    if (err->status && (news || now - t->told_us > TELL_AGAIN_US)) {
        log_error("the file of tokens cannot be read, so no token is good: %s", ERROR_TEXT(err));
        t->told_us = now;
    } else if (!err->status && t->fault.status) {
        log_info("the file of tokens can be read again");
    }
    t->fault = *err;
}

/* With the mutex held. A file that has become unreadable lets nobody in, since a token may have been revoked meanwhile.
 * Every look tries to read it again. */
static void refresh(struct tokens *t) {
    struct error err = {0};
    struct stat now = {0};
    const double at = clock_now_us();
    if (at - t->looked_us < LOOK_AGAIN_US)
        return;
    t->looked_us = at;
    if (stat(t->path, &now))
        now = (struct stat){0};
    if (t->fault.status || !t->settled || !same_stamp(&now, &t->stamp)) {
        load(t, &err);
        tell(t, &err, at);
    }
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

bool tokens_unreadable(struct tokens *t, char why[TOKENS_WHY_MAX]) {
    pthread_mutex_lock(&t->mutex);
    refresh(t);
    const bool unreadable = t->fault.status;
    if (unreadable)
        snprintf(why, TOKENS_WHY_MAX, "%s", ERROR_TEXT(&t->fault));
    pthread_mutex_unlock(&t->mutex);
    return unreadable;
}

uint64_t tokens_faults(struct tokens *t) {
    pthread_mutex_lock(&t->mutex);
    const uint64_t faults = t->faults;
    pthread_mutex_unlock(&t->mutex);
    return faults;
}

static const struct token *find(const struct tokens *t, const char *id) {
    struct token key = {0};
    snprintf(key.id, sizeof key.id, "%s", id);
    return t->n && !t->fault.status ? bsearch(&key, t->rows, t->n, sizeof *t->rows, compare_tokens) : NULL;
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
