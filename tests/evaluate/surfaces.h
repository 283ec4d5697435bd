/* What the table of Bayesian optimization is played on: the known functions of landscapes.h, and ByteScheduler's
 * surface (its §4.3), the iteration time over partition size and credit that our simulator predicts.
 *
 * A point is u in [0, 1]^n; a surface stretches it over its box. Units: microseconds for ByteScheduler's surface, none
 * for the functions. Threads: one. */
#ifndef TESTS_EVALUATE_SURFACES_H
#define TESTS_EVALUATE_SURFACES_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/support/landscapes.h"

enum { SURFACE_DIMENSIONS = 6 };

struct surface {
    char name[64];
    size_t n;       /* dimensions, at most SURFACE_DIMENSIONS */
    double least;   /* of the truth */
    bool is_ratio;  /* times: what counts is their ratio to the least, and searchers are told logarithms */
    double *truth;  /* SURFACE_SIDE^2 times, partition sizes row by row; NULL for a landscape */
    double *belief; /* the same as the simulator has it before any trial */
    const struct landscape *landscape;
};

/* Partition size and credit lie on a lattice of eighths of an octave; a point stands for the nearest node. */
enum { SURFACE_SIDE = 97 };

void surface_of_landscape(struct surface *out, const struct landscape *landscape);

/* The iteration time of the model of that name on v100-16x10g under priority scheduling, every variable all-reduced by
 * itself with one partition size for all, 64 KiB to 256 MiB, as is the credit (which holds all of ByteScheduler's table
 * 1). The truth has 1.8 times the start-up and 1.25 times the transfer costs of the belief. Reads examples/; ends the
 * program with a message when that fails. */
void surface_of_model(struct surface *out, const char *name);
void surface_release(struct surface *surface);

double surface_at(const struct surface *surface, const double *u);
/* The logarithm of what the simulator believes, an optimizer's prior; `context` is the surface. */
double surface_prior(void *context, const double *u);

/* How much more than the least: the ratio less 1, or the difference. */
double surface_regret(const struct surface *surface, double value);
/* Of the point that the simulator believes to be best; not for a landscape. */
double surface_belief_regret(const struct surface *surface);
/* The part of the nodes whose regret is at most so much; not for a landscape. */
double surface_share_within(const struct surface *surface, double regret);

#endif
