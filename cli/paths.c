/* See paths.h. */
#include "cli/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum status output_check(const char *path, struct error *err) {
    char folder[PATH_MAX];
    if (!strcmp(path, "-"))
        return ST_OK;
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (!slash)
        strcpy(folder, ".");
    else
        slash[slash == folder] = 0;
    if (access(folder, W_OK))
        return error_at(err, ST_ENVIRONMENT, path, "cannot write into %s: %s", folder, strerror(errno));
    return ST_OK;
}

enum status paths_make_folder(const char *path, struct error *err) {
    struct stat st;
    if (!mkdir(path, 0777) || (errno == EEXIST && !stat(path, &st) && S_ISDIR(st.st_mode)))
        return ST_OK;
    return error_at(err, ST_ENVIRONMENT, path, "cannot make this folder: %s", strerror(errno));
}
