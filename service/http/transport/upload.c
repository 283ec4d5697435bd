/* See upload.h. */
#include "service/http/transport/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char KEPT[] = "kept in TMPDIR, or in /var/tmp where that is not set";

static enum status fail(const char *what, struct error *err) {
    return error_set(err, ST_ENVIRONMENT, "an upload cannot be %s: %s", what, strerror(errno));
}

static enum status open_file(struct upload *u, struct error *err) {
    char path[4096];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%.4000s/syncopate-XXXXXX", folder && *folder ? folder : "/var/tmp");
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return fail(KEPT, err);
    unlink(path);
    u->file = fdopen(fd, "w+b");
    if (u->file)
        return ST_OK;
    close(fd);
    return error_no_memory(err);
}

enum status upload_add(struct upload *u, const char *data, size_t n, struct error *err) {
    enum status st = u->file ? ST_OK : open_file(u, err);
    if (st)
        return st;
    if (fwrite(data, 1, n, u->file) != n)
        return fail(KEPT, err);
    u->n += n;
    return ST_OK;
}

enum status upload_map(struct upload *u, struct error *err) {
    if (!u->n)
        return ST_OK;
    if (fflush(u->file))
        return fail(KEPT, err);
    char *text = mmap(NULL, u->n, PROT_READ, MAP_PRIVATE, fileno(u->file), 0);
    if (text == MAP_FAILED)
        return fail("mapped", err);
    u->text = text;
    return ST_OK;
}

void upload_release(struct upload *u) {
    if (u->text)
        munmap(u->text, u->n);
    if (u->file)
        fclose(u->file);
    *u = (struct upload){0};
}
