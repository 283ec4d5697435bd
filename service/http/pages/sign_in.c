/* Signing in: a token is sent once, and the browser keeps a cookie in its place (cookies.h). Also the pages' style
 * sheet, script and icon. */
#include <stdio.h>
#include <string.h>

#include "report/html.h"
#include "service/http/pages/assets.h"
#include "service/http/pages/page.h"
#include "service/http/pages/pages.h"
#include "service/http/transport/cookies.h"
#include "service/http/transport/server.h"

enum { KEPT_S = 7 * 86400 }; /* the service ends the sign-in by then, too */

enum status page_sign_in(struct request *rq, struct response *rs, struct error *err) {
    if (*rq->principal.token)
        return page_redirect(rs, "/");
    return problem_fail(err, PROBLEM_UNAUTHORIZED, "sign in");
}

/* End the browser's earlier sign-in, if there is one. */
static void end_sign_in(struct request *rq) {
    char value[SIGN_IN_LENGTH + 1];
    if (cookie_read(rq, value))
        sign_ins_end(rq->service->sign_ins, value);
}

/* Whether a text is a path here, and not "//elsewhere" in any spelling. */
static const char *way_back(const char *to) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
    return to && *to == '/' && to[1] != '/' && !to[strspn(to, plain)] ? to : "/";
}

static enum status refuse(struct request *rq, struct error *err) {
    char why[TOKENS_WHY_MAX];
    if (tokens_unreadable(rq->service->tokens, why))
        return problem_fail(err, PROBLEM_TOKENS_UNREADABLE, PROBLEM_TOKENS_DETAIL);
    return problem_fail(err, PROBLEM_UNAUTHORIZED, "the token is unknown, revoked or expired");
}

enum status page_sign_in_send(struct request *rq, struct response *rs, struct error *err) {
    struct principal who;
    char value[SIGN_IN_LENGTH + 1];
    const char *token = form_field(rq, "token");
    if (!token || !tokens_check(rq->service->tokens, token, &who))
        return refuse(rq, err);
    end_sign_in(rq);
    enum status st = sign_ins_begin(rq->service->sign_ins, who.token, value, err);
    if (!st)
        st = cookie_set(rq, value, KEPT_S, rs, err);
    return st ? st : page_redirect(rs, way_back(form_field(rq, "to")));
}

enum status page_sign_out(struct request *rq, struct response *rs, struct error *err) {
    end_sign_in(rq);
    enum status st = cookie_set(rq, "", 0, rs, err);
    return st ? st : page_redirect(rs, "/sign-in");
}

/* ---- assets ---- */

static enum status answer_asset(struct request *rq, const char *type, const char *text, size_t n, struct response *rs,
                                struct error *err) {
    struct id id;
    enum status st = id_of(text, n, &id, err);
    const char *tag = st ? NULL : arena_printf(&rq->arena, "%.16s", id.hex);
    if (!st && !tag)
        st = error_no_memory(err);
    if (st)
        return st;
    rs->etag = tag;
    rs->cache_control = "no-cache";
    response_bytes(rs, 200, type, text, n);
    return ST_OK;
}

enum status page_style(struct request *rq, struct response *rs, struct error *err) {
    const char *sheet = html_stylesheet();
    const struct asset ours = asset_style();
    const size_t n = strlen(sheet), more = ours.n;
    char *text = arena_alloc(&rq->arena, n + more + 1, 1);
    if (!text)
        return error_no_memory(err);
    memcpy(text, sheet, n);
    memcpy(text + n, ours.text, more);
    return answer_asset(rq, "text/css; charset=utf-8", text, n + more, rs, err);
}

enum status page_script(struct request *rq, struct response *rs, struct error *err) {
    const struct asset file = asset_script();
    return answer_asset(rq, "text/javascript; charset=utf-8", file.text, file.n, rs, err);
}

enum status page_icon(struct request *rq, struct response *rs, struct error *err) {
    const struct asset file = asset_icon();
    return answer_asset(rq, "image/svg+xml", file.text, file.n, rs, err);
}

enum status page_llms(struct request *rq, struct response *rs, struct error *err) {
    const struct asset file = asset_llms();
    return answer_asset(rq, rq->route->media, file.text, file.n, rs, err);
}
