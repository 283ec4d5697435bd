/* See quota.h. A token has a list of minutes with their trials, oldest first; one older than a day is dropped when the
 * token is looked at. The file is written anew when most of it is of no use. */
#include "tuner/service/quota.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/log.h"

enum { DAY_S = 86400, MINUTE_S = 60, MOST_LINES = 10000 };

struct minute {
    int64_t at_s; /* of its last trial */
    uint64_t trials;
};

struct account {
    char token[TOKEN_ID_LENGTH + 1];
    uint64_t reserved;
    size_t n, room;
    struct minute *minutes;
};

struct quota {
    char *path;
    pthread_mutex_t mutex;
    size_t n;
    struct account *accounts;
    uint64_t lines;  /* of the file */
    uint64_t needed; /* of them, when it was last rewritten */
    bool failing;    /* the last write was refused, and that was told */
};

static int64_t now_s(void) {
    return (int64_t)time(NULL);
}

/* NULL: not there, or (with `make`) no memory. */
static struct account *find(struct quota *q, const char *token, bool make) {
    for (size_t i = 0; i < q->n; i++)
        if (!strcmp(q->accounts[i].token, token))
            return &q->accounts[i];
    struct account *grown = make ? realloc(q->accounts, (q->n + 1) * sizeof *grown) : NULL;
    if (!grown)
        return NULL;
    q->accounts = grown;
    struct account *a = &grown[q->n++];
    *a = (struct account){0};
    snprintf(a->token, sizeof a->token, "%s", token);
    return a;
}

/* A clock that was set back leaves minutes that are still to come; they are of now. */
static void forget_old(struct account *a, int64_t now) {
    size_t kept = 0;
    for (size_t i = 0; i < a->n; i++) {
        if (a->minutes[i].at_s > now)
            a->minutes[i].at_s = now;
        if (now - a->minutes[i].at_s < DAY_S)
            a->minutes[kept++] = a->minutes[i];
    }
    a->n = kept;
}

static void add_trials(struct account *a, int64_t at_s, uint64_t trials) {
    struct minute *last = a->n ? &a->minutes[a->n - 1] : NULL;
    if (last && last->at_s / MINUTE_S == at_s / MINUTE_S) {
        last->at_s = at_s > last->at_s ? at_s : last->at_s;
        last->trials += trials;
    } else if (GROW(&a->minutes, &a->room, a->n + 1)) {
        a->minutes[a->n++] = (struct minute){at_s, trials};
    }
}

static uint64_t used(const struct account *a) {
    uint64_t sum = a->reserved;
    for (size_t i = 0; i < a->n; i++)
        sum += a->minutes[i].trials;
    return sum;
}

/* ---- the file ---- */

static void read_line(struct quota *q, const char *line, int64_t now) {
    cJSON *json = cJSON_Parse(line);
    const char *token = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "token"));
    const cJSON *at = cJSON_GetObjectItemCaseSensitive(json, "at_s");
    const cJSON *trials = cJSON_GetObjectItemCaseSensitive(json, "trials");
    const bool whole = token && strlen(token) == TOKEN_ID_LENGTH && cJSON_IsNumber(at) && cJSON_IsNumber(trials) &&
                       at->valuedouble >= 0 && at->valuedouble < 1e15 && trials->valuedouble >= 0 &&
                       trials->valuedouble < 1e15;
    if (whole && now - (int64_t)at->valuedouble < DAY_S) {
        struct account *a = find(q, token, true);
        if (a)
            add_trials(a, (int64_t)at->valuedouble < now ? (int64_t)at->valuedouble : now,
                       (uint64_t)trials->valuedouble);
    }
    cJSON_Delete(json);
}

static enum status read_file(struct quota *q, struct error *err) {
    FILE *from = fopen(q->path, "re");
    char *line = NULL;
    size_t room = 0;
    const int64_t now = now_s();
    if (!from && errno == ENOENT)
        return ST_OK;
    if (!from)
        return error_set(err, ST_ENVIRONMENT, "%s: %s", q->path, strerror(errno));
    while (getline(&line, &room, from) > 0) {
        read_line(q, line, now);
        q->lines++;
    }
    free(line);
    fclose(from);
    return ST_OK;
}

static int write_line(FILE *to, const char *token, int64_t at_s, uint64_t trials) {
    return fprintf(to, "{\"token\":\"%s\",\"at_s\":%" PRId64 ",\"trials\":%" PRIu64 "}\n", token, at_s, trials);
}

/* NULL, and fd closed, when that cannot be. */
static FILE *stream_of(int fd, const char *mode) {
    FILE *stream = fd < 0 ? NULL : fdopen(fd, mode);
    if (!stream && fd >= 0)
        close(fd);
    return stream;
}

/* All of it, through a temporary file and a rename. */
static bool rewrite(struct quota *q) {
    char path[4200];
    snprintf(path, sizeof path, "%.4100s.new", q->path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *to = stream_of(fd, "w");
    if (!to)
        return false;
    uint64_t lines = 0;
    for (size_t i = 0; i < q->n; i++) {
        forget_old(&q->accounts[i], now_s());
        for (size_t k = 0; k < q->accounts[i].n; k++, lines++)
            write_line(to, q->accounts[i].token, q->accounts[i].minutes[k].at_s, q->accounts[i].minutes[k].trials);
    }
    const bool failed = ferror(to) || fflush(to) || fsync(fd);
    if (fclose(to) || failed || rename(path, q->path)) {
        unlink(path);
        return false;
    }
    q->lines = q->needed = lines;
    return true;
}

/* One line, with one write. */
static bool append(struct quota *q, const char *token, int64_t at_s, uint64_t trials) {
    const int fd = open(q->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    FILE *to = stream_of(fd, "a");
    if (!to)
        return false;
    write_line(to, token, at_s, trials);
    q->lines++;
    return !fclose(to);
}

static void keep(struct quota *q, const char *token, int64_t at_s, uint64_t trials) {
    const bool fits = q->lines < MOST_LINES || q->lines < 2 * q->needed;
    const bool done = fits ? append(q, token, at_s, trials) : rewrite(q);
    if (!done && !q->failing)
        log_error("%s: %s; until it can be written, a restart forgets what tokens have used", q->path, strerror(errno));
    q->failing = !done;
}

/* ---- the interface ---- */

enum status quota_open(const char *path, struct quota **out, struct error *err) {
    struct quota *q = calloc(1, sizeof *q);
    if (!q || !(q->path = strdup(path))) {
        free(q);
        return error_no_memory(err);
    }
    pthread_mutex_init(&q->mutex, NULL);
    enum status st = read_file(q, err);
    if (st)
        quota_close(q);
    else
        *out = q;
    return st;
}

void quota_close(struct quota *q) {
    if (!q)
        return;
    for (size_t i = 0; i < q->n; i++)
        free(q->accounts[i].minutes);
    free(q->accounts);
    pthread_mutex_destroy(&q->mutex);
    free(q->path);
    free(q);
}

uint64_t quota_used(struct quota *q, const char *token) {
    pthread_mutex_lock(&q->mutex);
    struct account *a = find(q, token, false);
    if (a)
        forget_old(a, now_s());
    const uint64_t sum = a ? used(a) : 0;
    pthread_mutex_unlock(&q->mutex);
    return sum;
}

/* Until `needed` trials are a day old; what is only reserved may be given back at any time. */
static unsigned wait_for(const struct account *a, uint64_t needed, int64_t now) {
    uint64_t freed = a->reserved;
    for (size_t i = 0; i < a->n && freed < needed; i++) {
        freed += a->minutes[i].trials;
        if (freed >= needed)
            return (unsigned)(a->minutes[i].at_s + DAY_S - now);
    }
    return 1;
}

bool quota_reserve(struct quota *q, const struct principal *who, uint64_t least, uint64_t most, uint64_t *granted,
                   unsigned *wait_s) {
    const uint64_t limit = who->trials_per_day;
    const int64_t now = now_s();
    *granted = most;
    *wait_s = 0;
    if (!*who->token || !limit)
        return true;
    if (least > limit)
        return false;
    pthread_mutex_lock(&q->mutex);
    struct account *a = find(q, who->token, true);
    bool enough = false;
    *wait_s = 1;
    if (a && GROW(&a->minutes, &a->room, a->n + 1)) { /* so that add_trials cannot fail */
        forget_old(a, now);
        const uint64_t sum = used(a), left = sum < limit ? limit - sum : 0;
        enough = least <= left;
        *granted = most < left ? most : left;
        if (enough)
            a->reserved += *granted;
        else
            *wait_s = wait_for(a, sum + least - limit, now);
    }
    pthread_mutex_unlock(&q->mutex);
    return enough;
}

void quota_settle(struct quota *q, const struct principal *who, uint64_t granted, uint64_t trials) {
    if (!*who->token || !who->trials_per_day || !granted)
        return;
    pthread_mutex_lock(&q->mutex);
    struct account *a = find(q, who->token, false);
    if (a) {
        const int64_t now = now_s();
        a->reserved -= granted < a->reserved ? granted : a->reserved;
        if (trials) {
            add_trials(a, now, trials);
            keep(q, who->token, now, trials);
        }
    }
    pthread_mutex_unlock(&q->mutex);
}
