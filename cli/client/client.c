/* See client.h. A call makes one or more tries, with waits between them (retry.h). A try is one transfer of libcurl.
 * All options are set anew for it, which costs microseconds; the connection stays open. */
#include "cli/client/client.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/version.h"
#include "cli/client/client_internal.h"
#include "cli/client/refusal.h"

static const double DEFAULT_DEADLINE_US = 120e6, CONNECT_US = 10e6, NAP_US = 50e3;

/* ---- a client ---- */

static void begin_libcurl(void) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* "http://" or "https://", a host, and neither query nor credentials, which would end up in messages. */
static enum status check_url(const char *url, struct error *err) {
    const char *host = strstr(url, "://");
    const bool http = !strncmp(url, "http://", 7) || !strncmp(url, "https://", 8);
    if (http && strchr(host, '@'))
        return error_set(err, ST_USAGE, "a service's URL has no user and no password; give --token-file");
    if (!http || !host[3] || host[3] == '/' || strpbrk(host, "?# "))
        return error_set(err, ST_USAGE, "\"%.200s\" is no service's URL; it looks like http://127.0.0.1:8642", url);
    return ST_OK;
}

static char *copy_url(const char *url) {
    size_t n = strlen(url);
    while (n && url[n - 1] == '/')
        n--;
    return strndup(url, n);
}

/* The file of certificates: the option's, else the one that curl's environment variables name. */
static const char *ca_file_of(const struct client_options *options) {
    const char *bundle = getenv("CURL_CA_BUNDLE"), *file = getenv("SSL_CERT_FILE");
    if (options->ca_file)
        return options->ca_file;
    return bundle && *bundle ? bundle : file && *file ? file : NULL;
}

static bool copy_text(char **out, const char *text) {
    *out = text ? strdup(text) : NULL;
    return *out || !text;
}

enum status client_open(const struct client_options *o, struct client **out, struct error *err) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t seed;
    enum status st = check_url(o->url, err);
    if (st)
        return st;
    pthread_once(&once, begin_libcurl);
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
        return error_set(err, ST_ENVIRONMENT, "this system gives no random numbers");
    struct client *c = calloc(1, sizeof *c);
    if (!c)
        return error_no_memory(err);
    c->deadline_us = o->deadline_us > 0 ? o->deadline_us : DEFAULT_DEADLINE_US;
    c->tries = o->tries;
    c->cancel = o->cancel;
    rng_seed(&c->rng, seed);
    if (o->token && *o->token)
        snprintf(c->authorization, sizeof c->authorization, "Bearer %s", o->token);
    c->calls = curl_easy_init();
    c->stream = curl_easy_init();
    c->url = copy_url(o->url);
    if (!c->calls || !c->stream || !c->url || !copy_text(&c->ca_file, ca_file_of(o)) ||
        !copy_text(&c->proxy, o->proxy)) {
        client_close(c);
        return error_no_memory(err);
    }
    *out = c;
    return ST_OK;
}

void client_close(struct client *c) {
    if (!c)
        return;
    curl_easy_cleanup(c->calls);
    curl_easy_cleanup(c->stream);
    free(c->url);
    free(c->ca_file);
    free(c->proxy);
    explicit_bzero(c->authorization, sizeof c->authorization);
    free(c);
}

const char *client_url(const struct client *c) {
    return c->url;
}

long client_last_status(const struct client *c) {
    return c->last_status;
}

bool client_may_come_back(const struct client *c) {
    return c->last_ending != TRY_DONE || c->last_status >= 500;
}

static bool is_cancelled(const struct client *c) {
    return c->cancel && *c->cancel;
}

enum status client_pause(const struct client *c, double us, struct error *err) {
    const double end_us = clock_now_us() + us;
    for (double left_us = us; left_us > 0 && !is_cancelled(c); left_us = end_us - clock_now_us())
        clock_sleep_us(left_us < NAP_US ? left_us : NAP_US);
    return is_cancelled(c) ? error_set(err, ST_CANCELLED, "interrupted") : ST_OK;
}

char *client_escape(const struct client *c, const char *text) {
    char *escaped = curl_easy_escape(c->calls, text, 0);
    char *copy = escaped ? strdup(escaped) : NULL;
    curl_free(escaped);
    return copy;
}

/* ---- what all transfers have in common ---- */

static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
    (void)a, (void)b, (void)c, (void)d;
    return is_cancelled(context);
}

static long whole_ms(double us) {
    return us < 1e3 ? 1 : us > 1e12 ? LONG_MAX / 2 : (long)(us / 1e3);
}

/* Options whose value libcurl copies; the first that fails is the answer. */
static CURLcode set_common(struct client *c, CURL *h, const char *url, double timeout_us, char *reason) {
    CURLcode code = curl_easy_setopt(h, CURLOPT_URL, url);
    code = code ? code : curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    code = code ? code : curl_easy_setopt(h, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    code = code ? code : curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    code = code ? code : curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    code = code ? code : curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    code = code ? code : curl_easy_setopt(h, CURLOPT_USERAGENT, "syncopate/" SYNCOPATE_VERSION);
    code = code ? code : curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, whole_ms(CONNECT_US));
    if (!code && timeout_us > 0)
        code = curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, whole_ms(timeout_us));
    if (!code && c->ca_file)
        code = curl_easy_setopt(h, CURLOPT_CAINFO, c->ca_file);
    if (!code && c->proxy)
        code = curl_easy_setopt(h, CURLOPT_PROXY, c->proxy);
    code = code ? code : curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
    code = code ? code : curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
    code = code ? code : curl_easy_setopt(h, CURLOPT_XFERINFODATA, (void *)c);
    return code ? code : curl_easy_setopt(h, CURLOPT_ERRORBUFFER, reason);
}

enum status client_prepare(struct client *c, CURL *handle, const char *path, double timeout_us,
                           char reason[CURL_ERROR_SIZE], struct error *err) {
    char *url;
    *reason = 0;
    curl_easy_reset(handle);
    if (asprintf(&url, "%s%s", c->url, path) < 0)
        return error_no_memory(err);
    CURLcode code = set_common(c, handle, url, timeout_us, reason);
    free(url);
    if (!code)
        return ST_OK;
    return error_set(err, code == CURLE_OUT_OF_MEMORY ? ST_NO_MEMORY : ST_ENVIRONMENT, "libcurl: %s",
                     curl_easy_strerror(code));
}

struct curl_slist *client_header(struct curl_slist *list, bool *whole, const char *name, const char *value) {
    char *line = NULL;
    *whole = *whole && asprintf(&line, "%s: %s", name, value) >= 0;
    struct curl_slist *grown = *whole ? curl_slist_append(list, line) : NULL;
    free(*whole ? line : NULL);
    *whole = *whole && grown;
    return grown ? grown : list;
}

static bool is_unsent(CURLcode code) {
    return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY;
}

static bool is_cut(CURLcode code) {
    return code == CURLE_OPERATION_TIMEDOUT || code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR ||
           code == CURLE_GOT_NOTHING || code == CURLE_PARTIAL_FILE || code == CURLE_SSL_CONNECT_ERROR;
}

enum try_ending client_try_ending(CURLcode code, long status) {
    if (code)
        return is_unsent(code) ? TRY_UNSENT : is_cut(code) ? TRY_UNCERTAIN : TRY_DONE;
    if (status == 429 || status == 503)
        return TRY_REFUSED;
    return status == 502 || status == 504 ? TRY_UNCERTAIN : TRY_DONE;
}

enum status client_no_answer(const struct client *c, CURLcode code, const char *reason, unsigned tries,
                             struct error *err) {
    if (is_cancelled(c))
        return error_set(err, ST_CANCELLED, "interrupted");
    if (code == CURLE_OUT_OF_MEMORY)
        return error_no_memory(err);
    const char *words = *reason ? reason : curl_easy_strerror(code);
    if (tries > 1)
        return error_set(err, ST_UNREACHABLE, "%.200s: %.200s (tried %u times)", c->url, words, tries);
    return error_set(err, ST_UNREACHABLE, "%.200s: %.200s", c->url, words);
}

/* ---- one try ---- */

struct answer {
    char *text; /* malloc'd */
    size_t n, capacity;
    bool too_large, no_memory;
    long status;
    double asked_us; /* Retry-After */
    char media[64], next_page[256];
};

static size_t on_body(char *bytes, size_t one, size_t n, void *context) {
    struct answer *a = context;
    const size_t size = one * n;
    a->too_large = a->n + size > CLIENT_MOST_BYTES;
    if (a->too_large)
        return 0;
    a->no_memory = !GROW(&a->text, &a->capacity, a->n + size);
    if (a->no_memory)
        return 0;
    memcpy(a->text + a->n, bytes, size);
    a->n += size;
    return size;
}

/* Copy a header of the answer, or an empty text where it is absent. A header that is too long is cut, and is then no
 * value that a caller knows. */
static void read_header(CURL *h, const char *name, char *out, size_t n) {
    struct curl_header *header;
    const bool known = curl_easy_header(h, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK;
    snprintf(out, n, "%s", known ? header->value : "");
}

static void read_headers(CURL *h, struct answer *a) {
    curl_off_t seconds = 0;
    curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &a->status);
    if (!curl_easy_getinfo(h, CURLINFO_RETRY_AFTER, &seconds))
        a->asked_us = (double)seconds * 1e6;
    read_header(h, "Content-Type", a->media, sizeof a->media);
    read_header(h, "Next-Page-Token", a->next_page, sizeof a->next_page);
}

/* What a call sends, the same at each try. */
struct outgoing {
    const char *method;
    char *body;
    struct curl_slist *headers;
};

static CURLcode transfer(CURL *h, const struct outgoing *o, struct answer *a) {
    CURLcode code = curl_easy_setopt(h, CURLOPT_HTTPHEADER, o->headers);
    if (!code && strcmp(o->method, "GET") != 0) {
        code = curl_easy_setopt(h, CURLOPT_POSTFIELDS, o->body ? o->body : "");
        code = code ? code : curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, o->method);
    }
    code = code ? code : curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
    code = code ? code : curl_easy_setopt(h, CURLOPT_WRITEDATA, (void *)a);
    code = code ? code : curl_easy_perform(h);
    if (code)
        return a->no_memory ? CURLE_OUT_OF_MEMORY : code;
    read_headers(h, a);
    return CURLE_OK;
}

/* ---- a call ---- */

/* 128 random bits. */
static enum status make_key(char out[33], struct error *err) {
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return error_set(err, ST_ENVIRONMENT, "this system gives no random numbers");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return ST_OK;
}

static enum status pack(const struct client *c, const struct client_request *r, const char *media, struct outgoing *out,
                        struct error *err) {
    char made[33];
    const bool post = !strcmp(r->method, "POST") && !r->keyless;
    enum status st = post && !r->key ? make_key(made, err) : ST_OK;
    const char *key = r->key ? r->key : post ? made : NULL;
    bool whole = true;
    if (st)
        return st;
    *out = (struct outgoing){.method = r->method, .body = r->body ? json_line(r->body) : NULL};
    out->headers = client_header(NULL, &whole, "Accept", media);
    if (key)
        out->headers = client_header(out->headers, &whole, "Idempotency-Key", key);
    if (r->body)
        out->headers = client_header(out->headers, &whole, "Content-Type", "application/json");
    else /* libcurl would send the Content-Type of a form */
        out->headers = client_header(out->headers, &whole, "Content-Type", "");
    out->headers = client_header(out->headers, &whole, "Expect", "");
    if (*c->authorization)
        out->headers = client_header(out->headers, &whole, "Authorization", c->authorization);
    return whole && (!r->body || out->body) ? ST_OK : error_no_memory(err);
}

static void unpack(struct outgoing *o) {
    free(o->body);
    curl_slist_free_all(o->headers);
}

static enum status not_a_service(const struct client *c, const char *wanted, struct error *err) {
    return error_set(err, ST_UNREACHABLE, "%.200s did not answer with %s; is it a syncopate service?", c->url, wanted);
}

/* Make an error of an answer that is not good. */
static enum status refused(const struct client *c, const struct answer *a, struct error *err) {
    cJSON *json = NULL;
    if (a->status >= 300 && a->status < 400)
        return error_set(err, ST_UNREACHABLE,
                         "%.200s answered with a redirect (HTTP status %ld), which is not followed: give the "
                         "service's own URL",
                         c->url, a->status);
    if (a->n && json_parse(a->text, a->n, "answer", &json, NULL))
        json = NULL;
    enum status st = client_refused(c->url, a->status, json, err);
    cJSON_Delete(json);
    return st;
}

/* Judge the last try. ST_OK: the answer is good. */
static enum status conclude(struct client *c, CURLcode code, const char *reason, const struct answer *a,
                            const struct retry *retry, struct error *err) {
    if (a->too_large)
        return error_set(err, ST_TOO_LARGE, "%.200s answered with more than %d bytes", c->url, CLIENT_MOST_BYTES);
    if (code)
        return client_no_answer(c, code, reason, retry->tries, err);
    return a->status >= 200 && a->status < 300 ? ST_OK : refused(c, a, err);
}

/* True: try again; it has waited. *st is set when it was interrupted meanwhile. */
static bool wait_for_next(struct client *c, struct retry *retry, CURLcode code, const struct answer *a, enum status *st,
                          struct error *err) {
    c->last_ending = client_try_ending(code, a->status);
    const double wait_us = retry_wait(retry, c->last_ending, a->asked_us, clock_now_us());
    if (wait_us < 0 || is_cancelled(c))
        return false;
    *st = client_pause(c, wait_us, err);
    c->rng = retry->rng;
    return !*st;
}

/* Until there is an answer, or no more tries. answer->text is the caller's, whatever came of it. */
static enum status call(struct client *c, const struct client_request *r, const char *media, struct answer *answer,
                        struct error *err) {
    const double deadline_us = clock_now_us() + (r->deadline_us > 0 ? r->deadline_us : c->deadline_us);
    struct retry retry = {.deadline_us = deadline_us, .most = c->tries, .rng = c->rng};
    struct outgoing outgoing = {0};
    char reason[CURL_ERROR_SIZE];
    CURLcode code = CURLE_OK;
    retry.repeatable = strcmp(r->method, "PATCH") != 0;
    c->last_ending = TRY_DONE;
    enum status st = pack(c, r, media, &outgoing, err);
    do {
        free(answer->text);
        *answer = (struct answer){0};
        if (!st)
            st = client_prepare(c, c->calls, r->path, deadline_us - clock_now_us(), reason, err);
        if (!st)
            code = transfer(c->calls, &outgoing, answer);
    } while (!st && wait_for_next(c, &retry, code, answer, &st, err));
    if (!st)
        st = conclude(c, code, reason, answer, &retry, err);
    c->last_status = answer->status;
    unpack(&outgoing);
    return st;
}

enum status client_call(struct client *c, const struct client_request *r, cJSON **out, struct error *err) {
    struct answer answer = {0};
    cJSON *json = NULL;
    enum status st = call(c, r, "application/json", &answer, err);
    if (!st && answer.n && (st = json_parse(answer.text, answer.n, "answer", &json, err)) == ST_INVALID)
        st = not_a_service(c, "JSON", err);
    if (!st)
        *out = json;
    free(answer.text);
    return st;
}

static bool is_media(const char *type, const char *wanted) {
    const size_t n = strlen(wanted);
    return !strncasecmp(type, wanted, n) && (!type[n] || type[n] == ';' || type[n] == ' ');
}

enum status client_text(struct client *c, const char *path, const char *media, struct client_text *out,
                        struct error *err) {
    const struct client_request request = {.method = "GET", .path = path};
    struct answer answer = {0};
    enum status st = call(c, &request, media, &answer, err);
    if (!st && !is_media(answer.media, media))
        st = not_a_service(c, media, err);
    char *text = st ? NULL : answer.text ? realloc(answer.text, answer.n + 1) : calloc(1, 1);
    if (!st && !text)
        st = error_no_memory(err);
    if (st) {
        free(answer.text);
        return st;
    }
    text[answer.n] = '\0';
    *out = (struct client_text){.text = text, .n = answer.n};
    memcpy(out->next_page, answer.next_page, sizeof out->next_page);
    return ST_OK;
}
