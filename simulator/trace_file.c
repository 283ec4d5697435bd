/* See trace_file.h. */
#include "simulator/trace_file.h"

#include <string.h>

#include "base/text.h"

void trace_file_begin(struct trace_file *file) {
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", file->out);
}

void trace_file_event(struct trace_file *file) {
    fputs(file->any ? ",\n" : "\n", file->out);
    file->any = true;
}

void trace_file_text(struct trace_file *file, const char *text) {
    fputc('"', file->out);
    char shown[TEXT_SHOWN];
    for (size_t i = 0, n = strlen(text); i < n;) {
        const bool special = text[i] == '"' || text[i] == '\\';
        i += text_show_json(text + i, n - i, shown);
        fprintf(file->out, "%s%s", special ? "\\" : "", shown);
    }
    fputc('"', file->out);
}

void trace_file_name(struct trace_file *file, const char *what, uint32_t process, unsigned row, const char *name) {
    trace_file_event(file);
    fprintf(file->out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":", what, process, row);
    trace_file_text(file, name);
    fputs("}}", file->out);
}

unsigned trace_file_row(double *free_us, unsigned *n_rows, unsigned most_rows, double start_us, double end_us) {
    unsigned row = 0;
    while (row < *n_rows && free_us[row] > start_us + 1e-6)
        row++;
    if (row == *n_rows && row < most_rows)
        ++*n_rows;
    else if (row == *n_rows)
        row--;
    free_us[row] = end_us;
    return row;
}

enum status trace_file_end(struct trace_file *file, struct error *err) {
    fputs("\n]}\n", file->out);
    if (fflush(file->out) != 0 || ferror(file->out))
        return error_set(err, ST_ENVIRONMENT, "the trace could not be written; is the disk full?");
    return ST_OK;
}
