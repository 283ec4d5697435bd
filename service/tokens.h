/* Who may ask the service for what: tokens, their roles and teams, and how often each may ask.
 *
 * Tokens are kept beside the dataset in DATASET.tokens, never in it, since datasets are copied and merged. The file has
 * mode 0600 and is refused when anybody else can read it; a line is one JSON object
 *     {"id","name","team","role","sha256","created","expires","requests_per_s","trials_per_day"}
 * with the SHA-256 of the token, not the token, which is shown once when it is made: syn_ID_SECRET, ID being 12 hex
 * digits and SECRET 43 characters of base64url (256 random bits). A token is found by its id and compared in constant
 * time.
 * Changes replace the file by a rename under flock of DATASET.tokens.lock, so a reader sees the old file or the new
 * one. Where the disk has no room for another file, a token is revoked by overwriting its line with newlines. A running
 * service lets no token in while the file cannot be read: damaged, open to others, or gone. Threads: struct tokens may
 * be shared. */
#ifndef SERVICE_TOKENS_H
#define SERVICE_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* Each may do what those before it may. X(constant, word) */
#define ROLE_TABLE(X)                                                                                                  \
    X(ROLE_NONE, none)     /* without a token */                                                                       \
    X(ROLE_READ, read)     /* look */                                                                                  \
    X(ROLE_SUBMIT, submit) /* put models, clusters, strategies and measurements */                                     \
    X(ROLE_RUN, run)       /* open and steer sessions, serve trials */                                                 \
    X(ROLE_ADMIN, admin)

enum role {
#define X(constant, word) constant,
    ROLE_TABLE(X)
#undef X
        ROLE_COUNT
};
const char *role_word(enum role role);
bool role_parse(const char *word, enum role *out);

enum { TOKEN_ID_LENGTH = 12, TOKEN_SECRET_LENGTH = 43, TOKEN_LENGTH = 4 + TOKEN_ID_LENGTH + 1 + TOKEN_SECRET_LENGTH };
enum { TOKEN_NAME_MAX = 64, TEAM_NAME_MAX = 64 };

struct principal {
    char token[TOKEN_ID_LENGTH + 1]; /* "" without a token */
    char team[TEAM_NAME_MAX + 1];
    enum role role;
    double requests_per_s;   /* 0: no limit */
    uint64_t trials_per_day; /* 0: no limit */
};

struct token {
    char id[TOKEN_ID_LENGTH + 1];
    char name[TOKEN_NAME_MAX + 1];
    char sha256[65];
    char created[32], expires[32]; /* UTC stamps; expires "" is never */
    struct principal principal;
};

/* A team's or token's name: letters, digits, '.', '-' and '_', at most 64. */
bool token_name_valid(const char *name);

/* The file. Fails: ST_INVALID (somebody else can read it, or a line is wrong), ST_ENVIRONMENT, ST_NO_MEMORY. A file
 * that is not there has no tokens. */
enum status tokens_read(const char *path, struct arena *arena, size_t *n, struct token **out, struct error *err);

/* What a token's team is when nobody says: TOKEN_TEAM, or "team" where an earlier version made tokens of that name. */
#define TOKEN_TEAM "main"

/* Add a token with `wanted`'s name, team ("": as above), role, expiry and limits; *out is the whole of it, and `secret`
 * what its holder is told. Fails: ST_INVALID (a name or stamp that will not do), ST_CONFLICT (the name is taken), and
 * as tokens_read. */
enum status tokens_create(const char *path, const struct token *wanted, struct token *out,
                          char secret[TOKEN_LENGTH + 1], struct error *err);

/* Remove the token of this id or name, even when the disk is full. Fails: ST_NOT_FOUND, and as tokens_read. */
enum status tokens_revoke(const char *path, const char *word, struct error *err);

/* The tokens of a running service; read again when the file changes. */
struct tokens;
enum status tokens_open(const char *path, struct tokens **out, struct error *err);
void tokens_close(struct tokens *tokens); /* NULL is allowed */
size_t tokens_count(struct tokens *tokens);

/* Whether the file cannot be read, and why. While it cannot, tokens_check and tokens_confirm refuse every token. */
enum { TOKENS_WHY_MAX = 512 };
bool tokens_unreadable(struct tokens *tokens, char why[TOKENS_WHY_MAX]);
uint64_t tokens_faults(struct tokens *tokens); /* how often the file became unreadable */

/* Whether any token has this team. */
bool tokens_have_team(struct tokens *tokens, const char *team);

/* Find the principal of `secret`. False when there is no such token, or it is revoked or has expired. O(log tokens) and
 * one SHA-256. */
bool tokens_check(struct tokens *tokens, const char *secret, struct principal *out);

/* Whether a request that tokens_check let in would still be: for what goes on for long. *principal becomes what it
 * would be now. False: the token is revoked or has expired. O(log tokens). */
bool tokens_confirm(struct tokens *tokens, struct principal *principal);

/* Take one request from the token's bucket, which fills at requests_per_s up to two seconds' worth (one request at
 * least). False: it is empty, and *wait_s (whole seconds, at least 1) is when to come again. */
bool tokens_spend(struct tokens *tokens, const struct principal *principal, unsigned *wait_s);

#endif
