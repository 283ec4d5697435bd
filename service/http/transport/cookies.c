/* See cookies.h. */
#include "service/http/transport/cookies.h"

#include <stdio.h>
#include <string.h>

#include "service/http/transport/server.h"

static const char *cookie_name(const struct request *rq) {
    return server_is_tls(rq->server) ? "__Host-syncopate" : "syncopate_session";
}

/* Behind "name=" in "a=1; name=value; b=2"; NULL: it is not there. */
static const char *find_cookie(const char *text, const char *name) {
    const size_t n = strlen(name);
    while (text && (strncmp(text, name, n) || text[n] != '=')) {
        text = strchr(text, ';');
        text = text ? text + 1 + strspn(text + 1, " ") : NULL;
    }
    return text ? text + n + 1 : NULL;
}

bool cookie_read(const struct request *rq, char value[SIGN_IN_LENGTH + 1]) {
    const char *at = find_cookie(rq->cookie, cookie_name(rq));
    return at && snprintf(value, SIGN_IN_LENGTH + 1, "%.*s", (int)strcspn(at, "; "), at) == SIGN_IN_LENGTH;
}

enum status cookie_set(struct request *rq, const char *value, int seconds, struct response *rs, struct error *err) {
    const char *text = arena_printf(&rq->arena, "%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict%s",
                                    cookie_name(rq), value, seconds, server_is_tls(rq->server) ? "; Secure" : "");
    if (!text)
        return error_no_memory(err);
    response_header(rs, HEADER_SET_COOKIE, text);
    if (find_cookie(rq->cookie, "syncopate_token"))
        response_header(rs, HEADER_SET_COOKIE, "syncopate_token=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
    return ST_OK;
}

bool cookie_principal(struct request *rq, struct principal *out) {
    char value[SIGN_IN_LENGTH + 1], why[TOKENS_WHY_MAX];
    struct principal who = {0};
    if (!cookie_read(rq, value) || !sign_ins_find(rq->service->sign_ins, value, who.token))
        return false;
    if (tokens_confirm(rq->service->tokens, &who)) {
        *out = who;
        return true;
    }
    if (!tokens_unreadable(rq->service->tokens, why)) /* revoked or expired, for good */
        sign_ins_end(rq->service->sign_ins, value);
    return false;
}
