/* Lines are flushed as they come, so that a run can be watched. */
#include "trial-runner/transcript.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { MOST_NAMESAKES = 1000 };

enum status transcript_check_folder(const char *folder, struct error *err) {
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return error_set(err, ST_ENVIRONMENT, "the folder for logs, %s, cannot be made: %s", folder, strerror(errno));
    struct stat info;
    if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
        return error_set(err, ST_ENVIRONMENT, "%s is no folder; logs need one", folder);
    if (access(folder, W_OK) != 0)
        return error_set(err, ST_ENVIRONMENT, "the folder for logs, %s, is not writable", folder);
    return ST_OK;
}

/* "0007-horovod", "20261122T013015-bench" */
static void make_stem(uint64_t number, const char *title, char *out, size_t n) {
    char stamp[32];
    clock_utc(stamp, sizeof stamp);
    int used = number ? snprintf(out, n, "%04lu-", (unsigned long)number)
                      : snprintf(out, n, "%.4s%.2s%.2sT%.2s%.2s%.2s-", stamp, stamp + 5, stamp + 8, stamp + 11,
                                 stamp + 14, stamp + 17);
    for (size_t i = (size_t)used; *title && i + 1 < n; title++, out[i] = '\0') {
        const unsigned char c = (unsigned char)*title;
        out[i++] = isalnum(c) || c == '-' || c == '.' ? (char)c : '_';
    }
}

enum status transcript_open(struct transcript *out, const char *folder, uint64_t number, const char *title,
                            struct error *err) {
    char stem[96];
    *out = (struct transcript){0};
    if (!folder)
        return ST_OK;
    make_stem(number, title, stem, sizeof stem);
    for (int i = 1; i <= MOST_NAMESAKES && !out->file; i++) {
        char suffix[16] = "";
        if (i > 1)
            snprintf(suffix, sizeof suffix, "-%d", i);
        if (snprintf(out->path, sizeof out->path, "%s/%s%s.log", folder, stem, suffix) >= TRANSCRIPT_PATH)
            return error_set(err, ST_ENVIRONMENT, "the path of the folder for logs is too long");
        out->file = fopen(out->path, "wxe");
        if (!out->file && errno != EEXIST)
            break;
    }
    return out->file ? ST_OK : error_set(err, ST_ENVIRONMENT, "cannot write %s: %s", out->path, strerror(errno));
}

void transcript_line(struct transcript *transcript, const char *text, size_t n) {
    if (!transcript->file)
        return;
    fwrite(text, 1, n, transcript->file);
    putc('\n', transcript->file);
    fflush(transcript->file);
}

void transcript_command(struct transcript *transcript, const char *const *argv) {
    if (!transcript->file)
        return;
    for (const char *const *word = argv; *word; word++)
        fprintf(transcript->file, "%s%s", word == argv ? "$ " : " ", *word);
    transcript_line(transcript, "", 0);
}

void transcript_close(struct transcript *transcript) {
    if (!transcript->file)
        return;
    const int failed = ferror(transcript->file) != 0;
    if (fclose(transcript->file) != 0 || failed)
        log_warn("%s is not whole: %s", transcript->path, strerror(errno));
    transcript->file = NULL;
}
