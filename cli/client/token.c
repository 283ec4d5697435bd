/* See token.h. The file is judged by what was opened, not by its name, so that it cannot be exchanged in between. */
#include "cli/client/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Visible ASCII only: it becomes a header line. */
static enum status check(const char *token, const char *where, struct error *err) {
    for (const char *c = token; *c; c++)
        if (*c < 0x21 || *c > 0x7e)
            return error_set(err, ST_INVALID, "%s: a token has no blanks and no special characters", where);
    return *token ? ST_OK : error_set(err, ST_INVALID, "%s: there is no token in it", where);
}

static enum status check_file(int file, const char *path, struct error *err) {
    struct stat st;
    if (fstat(file, &st))
        return error_at(err, ST_ENVIRONMENT, path, "%s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return error_at(err, ST_ENVIRONMENT, path, "a token is kept in a plain file");
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        return error_at(err, ST_ENVIRONMENT, path, "others can read this token; run: chmod 600 %s", path);
    return ST_OK;
}

static enum status read_file(const char *path, char out[CLIENT_TOKEN_ROOM], struct error *err) {
    char text[CLIENT_TOKEN_ROOM];
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return error_at(err, errno == ENOENT ? ST_NOT_FOUND : ST_ENVIRONMENT, path, "%s", strerror(errno));
    enum status st = check_file(file, path, err);
    ssize_t n = st ? 0 : read(file, text, sizeof text);
    close(file);
    if (n < 0)
        return error_at(err, ST_ENVIRONMENT, path, "%s", strerror(errno));
    if (st)
        return st;
    const size_t length = (size_t)n;
    size_t end = 0;
    while (end < length && text[end] != '\n' && text[end] != '\r')
        end++;
    if (end == sizeof text || memchr(text, 0, end))
        return error_at(err, ST_INVALID, path, "this is no token");
    memcpy(out, text, end);
    out[end] = 0;
    return check(out, path, err);
}

enum status client_token(const char *path, char out[CLIENT_TOKEN_ROOM], struct error *err) {
    const char *said = getenv("SYNCOPATE_TOKEN");
    if (path)
        return read_file(path, out, err);
    const size_t n = said ? strlen(said) : 0;
    if (n >= CLIENT_TOKEN_ROOM)
        return error_set(err, ST_INVALID, "SYNCOPATE_TOKEN: this is no token");
    enum status st = n ? check(said, "SYNCOPATE_TOKEN", err) : ST_OK;
    if (!st)
        memcpy(out, n ? said : "", n + 1);
    return st;
}
