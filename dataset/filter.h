/* The language of `filter=`: which trials are wanted, in words.
 *
 *     model = resnet50 AND (measured_us < 90000 OR proposer IN (horovod, byteps)) AND NOT state = failed
 *
 *     filter     = any ;
 *     any        = all { OR all } ;
 *     all        = one { AND one } ;
 *     one        = NOT one | "(" any ")" | comparison ;
 *     comparison = column ( "=" | "!=" | "<" | "<=" | ">" | ">=" | "~" ) value
 *                | column IN "(" value { "," value } ")" ;
 *     value      = word | "text" | 'text' ;
 *
 * Words are letters, digits and . _ : + - * / @ % and bytes over 127; a quoted text may hold anything, with \ before a
 * quote or a \. AND, OR, NOT and IN are written in capitals or small letters.
 *
 * | columns                                       | values, and how they compare                                     |
 * |-----------------------------------------------|------------------------------------------------------------------|
 * | model cluster strategy                        | = != IN: a name, or 4 or more first digits of an id; ~: the      |
 * |                                               | beginning of a name or id                                        |
 * | session runner proposer team client uid       | = != IN, and ~ for the beginning                                 |
 * | shared                                        | = != IN: all, team (its own alone), or a team that it names      |
 * | state                                         | = != IN: waiting running complete failed infeasible cancelled    |
 * | queued started ended                          | = != < <= > >= IN: UTC stamps, or ~ for their beginning          |
 * | predicted_us measured_us mean_us low_us       | = != < <= > >= IN: numbers; measured_us and median_us are one    |
 * | high_us median_us number round attempt        |                                                                  |
 * | seed                                          | = != IN: whole numbers up to 2^64 - 1                            |
 *
 * A comparison with a value that a trial lacks is false. != is the opposite of =, and NOT inverts what follows it. So
 * `NOT measured_us < 5` keeps trials without a measurement, and `measured_us >= 5` does not.
 * Limits: 4096 bytes, 64 comparisons (each value of an IN counts), 32 deep. */
#ifndef DATASET_FILTER_H
#define DATASET_FILTER_H

#include "base/error.h"

enum { FILTER_MAX_BYTES = 4096, FILTER_MAX_VALUES = 64, FILTER_MAX_DEPTH = 32 };

/* The names of all columns, with a blank before each. */
extern const char filter_column_names[];

/* Is `text` a filter? Fails: ST_USAGE with the place, counted in bytes from 1, and what could stand there. */
enum status filter_check(const char *text, struct error *err);

#endif
