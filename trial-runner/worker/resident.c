/* Lines of /proc/self/status; writing 5 to /proc/self/clear_refs makes the peak begin anew. */
#include "trial-runner/worker/resident.h"

#include <stdio.h>
#include <string.h>

/* The number in the line that begins with `key`, which is in KiB. */
static uint64_t read_line(const char *key) {
    char line[256];
    unsigned long long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), "%llu", &kib) == 1)
            break;
    if (status)
        fclose(status);
    return (uint64_t)kib << 10;
}

uint64_t resident_begin(void) {
    FILE *forget = fopen("/proc/self/clear_refs", "w");
    if (forget) {
        fputs("5", forget);
        fclose(forget);
    }
    return read_line("VmRSS:");
}

uint64_t resident_most_bytes(void) {
    return read_line("VmHWM:");
}
