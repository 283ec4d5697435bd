/* The program syncopate. Data goes to standard output, words to standard error. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/options.h"

/* Data that could not be written is a failure, whatever the command returned. */
static enum status flush_output(enum status st, struct error *err) {
    if ((fflush(stdout) || ferror(stdout)) && !st)
        return error_set(err, ST_ENVIRONMENT, "standard output: %s", strerror(errno));
    return st;
}

int main(int argc, char **argv) {
    struct error err = {0};
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1 && !strcmp(argv[1], "--version")) {
        puts("syncopate " SYNCOPATE_VERSION);
        return 0;
    }
    enum status st = options_take_server(&argc, &argv, &err);
    if (!st)
        st = flush_output(commands_main(argc, argv, &err), &err);
    if (st)
        log_error("%s", ERROR_TEXT(&err));
    return status_exit_code(st);
}
