/* The report of a session: one self-contained HTML file that begins with the answer. Its sections serve other pages
 * too; each is appended to the element that is open in `m`. The id of a section is its name, the ids of its charts
 * begin with "chart-". */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/error.h"
#include "report/delays.h"
#include "report/findings.h"
#include "report/markup.h"

/* `f` needs FINDINGS_ALL. `command` is what to type to have the best strategy as a file. *out is malloc'd. Equal
 * findings give equal bytes. Fails: ST_NO_MEMORY. */
enum status report_write(struct findings *f, const char *command, char **out, size_t *length, struct error *err);

/* What to use, how sure that is and how to get it, by `command`. */
void report_answer(struct markup *m, const struct findings *f, const char *command);

/* Trials one by one, and predicted against measured. `trials` are findings_trials(). */
void report_progress(struct markup *m, const struct findings *f, const struct chart_trial *trials);

/* The best baseline and the best on one time axis, in weather with the rates of NICs; nothing without a best.
 * report_lanes_table has what n timelines show as tables. */
void report_timelines(struct markup *m, const struct findings *f);
void report_lanes_table(struct markup *m, size_t n, const struct chart_timeline *timelines);

/* How late the updates of n strategies come (report_delays.c); nothing where n is 0. */
void report_delays(struct markup *m, size_t n, const struct delays *delays);

/* What the two do, side by side; nothing without a best. */
enum status report_strategy(struct markup *m, const struct findings *f, struct error *err);

/* Which knobs mattered and who earned the trials; nothing where there was no search. */
void report_lessons(struct markup *m, const struct findings *f);

void report_provenance(struct markup *m, const struct findings *f);

#endif
