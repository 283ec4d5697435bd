/* Runs a fuzz target over its stored inputs, once each, as part of `make test`: what fuzzing found stays found, with
 * any compiler and without libFuzzer. The program's name, replay_X, names its corpus tests/fuzz/corpus/fuzz_X. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int replay(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        return 1;
    const long size = ftell(f);
    rewind(f);
    /* Exactly as large as the input, so that a sanitizer sees one byte too far. */
    uint8_t *data = size < 0 ? NULL : malloc(size ? (size_t)size : 1);
    const int bad = !data || fread(data, 1, (size_t)size, f) != (size_t)size;
    if (!bad)
        LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    fclose(f);
    return bad;
}

int main(int argc, char **argv) {
    (void)argc;
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    char folder[PATH_MAX], path[PATH_MAX + 300];
    snprintf(folder, sizeof folder, "tests/fuzz/corpus/fuzz_%s", strncmp(name, "replay_", 7) == 0 ? name + 7 : name);
    struct dirent **entries;
    const int n = scandir(folder, &entries, NULL, alphasort);
    int inputs = 0, bad = 0;
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
            fprintf(stderr, "%s\n", path); /* seen only when this input crashes the target */
            bad += replay(path);
            inputs++;
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    if (inputs == 0 || bad > 0)
        printf("not ok %s: %d inputs in %s, %d of them unreadable\n", name, inputs, folder, bad);
    else
        printf("ok %s meets its %d stored inputs\n", name, inputs);
    return inputs == 0 || bad > 0;
}
