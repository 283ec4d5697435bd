/* Shared by the tests of this folder: is anything left of what a test started? */
#ifndef TESTS_UNIT_TRIAL_RUNNER_LEFT_BEHIND_H
#define TESTS_UNIT_TRIAL_RUNNER_LEFT_BEHIND_H

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"

/* From here on every orphan below this process becomes its child, so that none can hide. A setup of cmocka's. */
static inline int adopt_orphans(void **state) {
    (void)state;
    return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* True when this process has no descendant at all, not even a dead one. */
static inline bool no_descendants(void) {
    return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

/* Reap until none is left, at most 20 s: after a SIGKILL the guard and the kernel end the rest in their own time. */
static inline bool descendants_vanish(void) {
    for (int i = 0; i < 20000; i++) {
        pid_t reaped = waitpid(-1, NULL, WNOHANG);
        if (reaped < 0 && errno == ECHILD)
            return true;
        if (reaped == 0)
            clock_sleep_us(1000);
    }
    return false;
}

/* Entries of a folder whose name starts with `prefix`; 0 for a folder that is not there. */
static inline int entries_with(const char *folder, const char *prefix) {
    int found = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        found += strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return found;
}

#endif
