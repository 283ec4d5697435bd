/* See quota.h. A token has a list of minutes with their trials, oldest first; a minute older than a day is dropped when
 * the token is looked at. The file is rewritten when most of its lines are no longer needed.
 *
 * A day is counted by CLOCK_BOOTTIME, the time since the machine booted: nobody can set it, and it goes on while the
 * machine sleeps. A line has that time and the id of the boot, so a service that restarts knows the line's age. After a
 * reboot only the wall clock is left. So a line also has a wall time: what the clock showed or, if it was set back,
 * what it should have shown. A line from the future counts as written now. So, where a clock was wrong, a token gets
 * its trials back late by as much, at most by a day, and never early. */
#include "service/quota.h"

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

#include "base/file.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/stream.h"

enum { DAY_S = 86400, MINUTE_S = 60, MOST_LINES = 10000, BOOT_LENGTH = 8 };

struct minute {
    int64_t at_s; /* of its last trial, by CLOCK_BOOTTIME; below 0: before the boot */
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
    uint64_t lines;             /* of the file */
    uint64_t needed;            /* lines after the last rewrite */
    bool failing;               /* the last write was refused, and the log says so */
    char boot[BOOT_LENGTH + 1]; /* id of this boot, "" when unknown */
    int64_t opened_s, opened_wall_s;
};

static int64_t now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec;
}

static void read_boot(char out[BOOT_LENGTH + 1]) {
    FILE *from = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!from || fread(out, 1, BOOT_LENGTH, from) != BOOT_LENGTH || strspn(out, "0123456789abcdef") < BOOT_LENGTH)
        out[0] = '\0';
    out[BOOT_LENGTH] = '\0';
    if (from)
        fclose(from);
}

/* The time of the wall clock. Where the clock was set back since the file was opened, it is the time that it would show
 * otherwise. */
static int64_t later_wall_s(const struct quota *q, int64_t now) {
    const int64_t shown = (int64_t)time(NULL), due = q->opened_wall_s + now - q->opened_s;
    return shown > due ? shown : due;
}

/* NULL: there is none, or with `make` memory is out. */
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

static void forget_old(struct account *a, int64_t now) {
    size_t kept = 0;
    for (size_t i = 0; i < a->n; i++) {
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

static bool get_seconds(const cJSON *json, const char *key, int64_t *out) {
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(json, key);
    if (!cJSON_IsNumber(number) || !(number->valuedouble >= 0) || number->valuedouble >= 1e15)
        return false;
    *out = (int64_t)number->valuedouble;
    return true;
}

/* How long ago a line was written; 0 where a clock was set back since. */
static int64_t age_of(const struct quota *q, const cJSON *json, int64_t at_s) {
    const char *boot = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "boot"));
    int64_t boot_s;
    const bool exact = boot && *q->boot && !strcmp(boot, q->boot) && get_seconds(json, "boot_s", &boot_s);
    const int64_t age = exact ? q->opened_s - boot_s : q->opened_wall_s - at_s;
    return age > 0 ? age : 0;
}

static void read_line(struct quota *q, const char *line) {
    cJSON *json = cJSON_Parse(line);
    const char *token = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "token"));
    int64_t at_s, trials;
    const bool whole = token && strlen(token) == TOKEN_ID_LENGTH && get_seconds(json, "at_s", &at_s) &&
                       get_seconds(json, "trials", &trials);
    const int64_t age = whole ? age_of(q, json, at_s) : DAY_S;
    if (age < DAY_S) {
        struct account *a = find(q, token, true);
        if (a)
            add_trials(a, q->opened_s - age, (uint64_t)trials);
    }
    cJSON_Delete(json);
}

static enum status read_file(struct quota *q, struct error *err) {
    FILE *from = fopen(q->path, "re");
    char *line = NULL;
    size_t room = 0;
    if (!from && errno == ENOENT)
        return ST_OK;
    if (!from)
        return error_at(err, ST_ENVIRONMENT, q->path, "%s", strerror(errno));
    while (getline(&line, &room, from) > 0) {
        read_line(q, line);
        q->lines++;
    }
    free(line);
    fclose(from);
    return ST_OK;
}

static int write_line(const struct quota *q, FILE *to, const char *token, const struct minute *m) {
    const int64_t now = now_s();
    fprintf(to, "{\"token\":\"%s\",\"at_s\":%" PRId64 ",\"trials\":%" PRIu64, token,
            later_wall_s(q, now) - (now - m->at_s), m->trials);
    return *q->boot && m->at_s >= 0 ? fprintf(to, ",\"boot\":\"%s\",\"boot_s\":%" PRId64 "}\n", q->boot, m->at_s)
                                    : fprintf(to, "}\n");
}

/* NULL, and fd closed, when that cannot be. */
static FILE *stream_of(int fd, const char *mode) {
    FILE *stream = fd < 0 ? NULL : fdopen(fd, mode);
    if (!stream && fd >= 0)
        close(fd);
    return stream;
}

/* Write all that is still counted into a new file. */
static bool rewrite(struct quota *q) {
    char *text;
    size_t n;
    uint64_t lines = 0;
    FILE *to = stream_open(&text, &n);
    if (!to)
        return false;
    for (size_t i = 0; i < q->n; i++) {
        forget_old(&q->accounts[i], now_s());
        for (size_t k = 0; k < q->accounts[i].n; k++, lines++)
            write_line(q, to, q->accounts[i].token, &q->accounts[i].minutes[k]);
    }
    const bool whole = !stream_close(to, ST_OK, &text, NULL) && !file_write_private(q->path, n, text, NULL);
    free(text);
    if (whole)
        q->lines = q->needed = lines;
    return whole;
}

/* Append one line by one write. */
static bool append(struct quota *q, const char *token, int64_t at_s, uint64_t trials) {
    const int fd = open(q->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    FILE *to = stream_of(fd, "a");
    if (!to)
        return false;
    write_line(q, to, token, &(struct minute){at_s, trials});
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
    read_boot(q->boot);
    q->opened_s = now_s();
    q->opened_wall_s = (int64_t)time(NULL);
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

/* Seconds until `needed` trials are a day old or given back. Reserved trials may be given back at any time: 1 if they
 * suffice. */
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
