/* What `nvidia-smi topo -m` prints: a matrix of how the devices of a node are linked. The matrix gives the number
 * of GPUs. If NVLinks join every pair of GPUs, it also gives a rate: that of the pair with the fewest links ("NV12" is
 * a pair with 12). A link carries 25 GB/s one way in NVLink 2, 3 and 4 (NVIDIA's data sheets of V100, A100 and H100).
 * The matrix does not give the rate of PCIe (PIX, PXB, PHB, NODE, SYS). */
#include <ctype.h>
#include <string.h>

#include "interop/import/cluster_kinds.h"

static const double NVLINK_GBYTE_PER_S = 25;

struct matrix {
    struct lines lines;
    uint64_t gpus, rows;
    uint64_t fewest_links; /* between two GPUs that NVLinks join; 0: none yet */
    char slowest[16];      /* a pair that none joins */
};

bool topology_is(const struct source *source) {
    const char *row = strstr(source->text, "GPU0");
    return row && strstr(row + 4, "GPU0") && strstr(row, " X") && strstr(source->text, "Affinity");
}

/* Remove the terminal's "\033[4m". */
static void strip_colours(char *line) {
    char *to = line;
    while (*line)
        if (*line == '\033')
            line += strcspn(line, "m") + (line[strcspn(line, "m")] == 'm');
        else
            *to++ = *line++;
    *to = 0;
}

static bool is_gpu(const char *word) {
    return !strncmp(word, "GPU", 3) && isdigit((unsigned char)word[3]) && !word[3 + strspn(word + 3, "0123456789")];
}

/* One cell between two different GPUs. */
static enum status read_cell(struct matrix *matrix, const char *cell, struct error *err) {
    static const char *const others[] = {"PIX", "PXB", "PSB", "PHB", "NODE", "SYS", "SOC", NULL};
    uint64_t links;
    if (!strncmp(cell, "NV", 2) && word_integer(cell + 2, &links) && links) {
        if (!matrix->fewest_links || links < matrix->fewest_links)
            matrix->fewest_links = links;
        return ST_OK;
    }
    for (size_t i = 0; others[i]; i++)
        if (!strcmp(cell, others[i])) {
            strcpy(matrix->slowest, cell);
            return ST_OK;
        }
    return lines_fail(&matrix->lines, err, "\"%.20s\" is no kind of link", cell);
}

static enum status read_row(struct matrix *matrix, size_t n, char **words, struct error *err) {
    const uint64_t row = matrix->rows++;
    if (row >= matrix->gpus || n < 1 + matrix->gpus)
        return lines_fail(&matrix->lines, err, "a row that the heading has no %s for",
                          row < matrix->gpus ? "end" : "column");
    for (uint64_t i = 0; i < matrix->gpus; i++) {
        const bool self = !strcmp(words[1 + i], "X");
        if (self != (i == row))
            return lines_fail(&matrix->lines, err, "\"%.20s\" in column %lu of row %lu", words[1 + i], (unsigned long)i,
                              (unsigned long)row);
        enum status st = self ? ST_OK : read_cell(matrix, words[1 + i], err);
        if (st)
            return st;
    }
    return ST_OK;
}

static enum status read_matrix(struct matrix *matrix, struct error *err) {
    enum status st = ST_OK;
    for (char *line; !st && (line = lines_next(&matrix->lines));) {
        char *words[SOURCE_MAX_WORDS];
        strip_colours(line);
        const size_t n = words_split(line, words);
        if (!n || !is_gpu(words[0]))
            continue;
        if (matrix->gpus)
            st = read_row(matrix, n, words, err);
        else
            while (matrix->gpus < n && is_gpu(words[matrix->gpus]))
                matrix->gpus++;
    }
    if (!st && (!matrix->gpus || matrix->rows != matrix->gpus))
        st = error_at(err, ST_INVALID, matrix->lines.name,
                      "%lu rows of GPUs under a heading of %lu; give all that it printed", (unsigned long)matrix->rows,
                      (unsigned long)matrix->gpus);
    return st;
}

enum status topology_read(const struct source *source, const struct import_settings *settings, struct notes *notes,
                          struct cluster_draft *draft, struct error *err) {
    struct matrix matrix = {.gpus = 0};
    if (!lines_init(&matrix.lines, source, draft->arena))
        return error_no_memory(err);
    enum status st = read_matrix(&matrix, err);
    if (st)
        return st;
    if (*matrix.slowest && settings->device_link_gbyte_per_s <= 0 &&
        !notes_add(notes, "%s: GPUs are joined by %s, whose rate it does not tell", source->name, matrix.slowest))
        return error_no_memory(err);
    draft->devices_a_node = matrix.gpus;
    draft->device_link_gbyte_per_s = *matrix.slowest ? 0 : (double)matrix.fewest_links * NVLINK_GBYTE_PER_S;
    return ST_OK;
}
