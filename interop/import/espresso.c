/* Tensor tables as Espresso's (Wang et al., EuroSys 2023) job configurations hold them: a line a tensor in the order in
 * which gradients become ready, with the time since the one before.
 *
 *     index,tensor,elements,bytes_fp32,ready_gap_us,ready_us
 *     0,classifier.6.bias,1000,4000,0,0
 *
 * The first line names the columns; needed are "tensor", "elements" and one of "ready_gap_us" and "ready_us". The
 * tables start when the first gradient is ready and have no forward times. Assumed are: nothing before the first
 * gradient, and a forward pass in the opposite order, each layer taking --forward-ratio of its backward time. One half
 * is usual, for a backward pass multiplies twice, by the weights and by the inputs. */
#include <math.h>
#include <string.h>

#include "interop/import/model_draft.h"
#include "interop/import/model_kinds.h"

static const double USUAL_RATIO = 0.5;
static const double MAX_US = 1e12;

/* X(name) */
#define COLUMN_TABLE(X) X(index) X(tensor) X(elements) X(bytes_fp32) X(ready_gap_us) X(ready_us)

enum column {
#define X(name) COLUMN_##name,
    COLUMN_TABLE(X)
#undef X
        COLUMN_COUNT,
};

#define X(name) #name,
static const char *const column_names[] = {COLUMN_TABLE(X)};
#undef X

struct tensor {
    const char *name;
    double gap_us;
};

struct table {
    enum column columns[COLUMN_COUNT]; /* of the file, in its order */
    size_t n_columns;
    bool has[COLUMN_COUNT];
    struct tensor *tensors;
    size_t n;
    double at_us; /* when the last gradient was ready */
};

bool espresso_is(const struct source *source) {
    const size_t n = strcspn(source->text, "\r\n");
    const char *tensor = strstr(source->text, "tensor,"), *ready = strstr(source->text, "ready_");
    return tensor && ready && tensor < source->text + n && ready < source->text + n;
}

static enum status read_header(const struct lines *lines, char *line, struct table *table, struct error *err) {
    for (char *name; (name = strsep(&line, ","));) {
        size_t c = 0;
        name = text_trim(name);
        while (c < COLUMN_COUNT && strcmp(name, column_names[c]) != 0)
            c++;
        if (c == COLUMN_COUNT)
            return lines_fail(lines, err,
                              "there is no column \"%.40s\"; known are index, tensor, elements, bytes_fp32, "
                              "ready_gap_us and ready_us",
                              name);
        if (table->has[c])
            return lines_fail(lines, err, "column \"%s\" twice", name);
        table->has[c] = true;
        table->columns[table->n_columns++] = (enum column)c;
    }
    if (!table->has[COLUMN_tensor] || !table->has[COLUMN_elements] ||
        !(table->has[COLUMN_ready_gap_us] || table->has[COLUMN_ready_us]))
        return lines_fail(lines, err, "needed are the columns tensor, elements, and ready_gap_us or ready_us");
    return ST_OK;
}

struct row {
    const char *text[COLUMN_COUNT]; /* NULL: no such column */
};

static enum status cut_row(const struct lines *lines, char *line, const struct table *table, struct row *out,
                           struct error *err) {
    size_t n = 0;
    *out = (struct row){{NULL}};
    for (char *field; (field = strsep(&line, ",")); n++)
        if (n < table->n_columns)
            out->text[table->columns[n]] = text_trim(field);
    return n == table->n_columns
               ? ST_OK
               : lines_fail(lines, err, "%zu fields where the first line names %zu", n, table->n_columns);
}

/* Where both a gap and a time are given, they must agree. */
static enum status read_gap(const struct lines *lines, const struct row *row, struct table *table, double *gap,
                            struct error *err) {
    double ready = 0;
    enum status st = ST_OK;
    if (row->text[COLUMN_ready_us])
        st = lines_number(lines, "ready_us", row->text[COLUMN_ready_us], table->at_us, MAX_US, &ready, err);
    if (st)
        return st;
    *gap = ready - table->at_us;
    if (row->text[COLUMN_ready_gap_us]) {
        st = lines_number(lines, "ready_gap_us", row->text[COLUMN_ready_gap_us], 0, MAX_US, gap, err);
        if (!st && row->text[COLUMN_ready_us] && fabs(table->at_us + *gap - ready) > 1e-3 + 1e-6 * ready)
            st = lines_fail(lines, err, "ready_us is %g, but the gaps so far add up to %g", ready, table->at_us + *gap);
    }
    table->at_us += st ? 0 : *gap;
    return st;
}

static enum status read_row(const struct lines *lines, char *line, struct table *table, struct model_draft *draft,
                            struct error *err) {
    struct row row;
    struct tensor *tensor = &table->tensors[table->n];
    uint64_t elements = 0, bytes = 0;
    enum status st = cut_row(lines, line, table, &row, err);
    if (!st && !*row.text[COLUMN_tensor])
        st = lines_fail(lines, err, "a tensor without a name");
    if (!st)
        st = lines_integer(lines, "elements", row.text[COLUMN_elements], 1, UINT64_C(1) << 40, &elements, err);
    if (!st && row.text[COLUMN_bytes_fp32])
        st = lines_integer(lines, "bytes_fp32", row.text[COLUMN_bytes_fp32], 1, UINT64_C(1) << 42, &bytes, err);
    if (!st && row.text[COLUMN_bytes_fp32] && bytes != 4 * elements)
        st = lines_fail(lines, err, "%lu elements are not %lu bytes", (unsigned long)elements, (unsigned long)bytes);
    if (!st)
        st = read_gap(lines, &row, table, &tensor->gap_us, err);
    if (st)
        return st;
    const struct shape shape = {.rank = 1, .sizes = {elements}};
    tensor->name = row.text[COLUMN_tensor];
    table->n++;
    model_draft_variable(draft, tensor->name, &shape, DTYPE_f32, lines->line);
    return ST_OK;
}

static enum status read_rows(struct lines *lines, struct table *table, struct model_draft *draft, struct error *err) {
    char *line = lines_next(lines);
    enum status st = line ? read_header(lines, line, table, err) : lines_fail(lines, err, "an empty table");
    while (!st && (line = lines_next(lines)))
        if (*line)
            st = read_row(lines, line, table, draft, err);
    if (!st && !table->n)
        st = lines_fail(lines, err, "a table without tensors");
    return st;
}

static void draft_layers(struct model_draft *draft, const struct table *table, double ratio) {
    for (size_t i = table->n; i-- && draft->ok;) {
        const struct tensor *t = &table->tensors[i];
        model_draft_layer(draft, t->name, round(t->gap_us * ratio * 1e3) / 1e3, t->gap_us, 1, &t->name);
    }
}

static bool add_notes(const struct source *source, const struct import_settings *settings, double ratio,
                      struct notes *notes) {
    return notes_add(notes,
                     "%s: the table has no forward times; each layer is taken to need %g of its backward time "
                     "(--forward-ratio)",
                     source->name, ratio) &&
           notes_add(notes, "%s: the time before the first gradient is not in the table and taken to be 0",
                     source->name) &&
           (settings->batch > 0 ||
            notes_add(notes, "%s: the table does not tell the batch size; give --batch", source->name));
}

enum status espresso_read(const struct source *source, const struct import_settings *settings, struct notes *notes,
                          cJSON **out, struct error *err) {
    struct table table = {.n = 0};
    struct model_draft draft;
    struct lines lines;
    const double ratio = settings->forward_ratio > 0 ? settings->forward_ratio : USUAL_RATIO;
    const size_t n = source_count_lines(source);
    table.tensors = arena_alloc(notes->arena, n, sizeof *table.tensors);
    const char *name = import_name(source, settings, true, notes->arena);
    if (!table.tensors || !name || !lines_init(&lines, source, notes->arena))
        return error_no_memory(err);
    model_draft_init(&draft, notes->arena, name, settings->batch, DRAFT_LAYERS);
    enum status st = read_rows(&lines, &table, &draft, err);
    if (!st && !add_notes(source, settings, ratio, notes))
        st = error_no_memory(err);
    if (st) {
        model_draft_release(&draft);
        return st;
    }
    draft_layers(&draft, &table, ratio);
    return model_draft_finish(&draft, source, out, err);
}
