/* The tables of the live plays, from their records alone. */
#ifndef TESTS_EVALUATE_LIVE_TABLE_H
#define TESTS_EVALUATE_LIVE_TABLE_H

#include "tests/evaluate/live/records.h"

void live_tables(const struct records *records);

#endif
