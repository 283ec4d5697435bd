/* The token that a client shows to its service: from a file that nobody else can read, or from the environment. */
#ifndef CLI_CLIENT_TOKEN_H
#define CLI_CLIENT_TOKEN_H

#include <stddef.h>

#include "base/error.h"

enum { CLIENT_TOKEN_ROOM = 512 };

/* The first line of the file at `path`; path NULL: the variable SYNCOPATE_TOKEN, or an empty text without it.
 * Fails: ST_NOT_FOUND, ST_ENVIRONMENT (others can read the file, or it is no plain file), ST_INVALID (no token: blanks,
 * control characters, too long, nothing). */
enum status client_token(const char *path, char out[CLIENT_TOKEN_ROOM], struct error *err);

#endif
