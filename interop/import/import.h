/* Models, clusters and strategies from the files of other tools.
 *
 * A kind of file is recognised by its contents. What a file does not tell is taken from the settings. If it is not
 * there either, the file is refused or the figure is estimated; notes tell what was estimated and what was left out. A
 * model with estimated times has a name that ends in "-estimate" unless the caller names it. A byte order mark before
 * text is skipped. Threads: any, each with an arena of its own. */
#ifndef INTEROP_IMPORT_IMPORT_H
#define INTEROP_IMPORT_IMPORT_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "interop/import/notes.h"
#include "interop/import/settings.h"
#include "interop/import/source.h"

struct measurement; /* strategy/cluster.h */
struct cluster;
struct model;    /* strategy/model.h */
struct strategy; /* strategy/strategy.h */

struct import_kind {
    const char *name, *summary;
    unsigned options; /* a set of enum import_option: those that this kind takes */
};

/* The kinds in the order in which they are tried; ends with a NULL name. */
const struct import_kind *import_model_kinds(void);
const struct import_kind *import_cluster_kinds(void);
const struct import_kind *import_strategy_kinds(void);

/* A model description from one file. `kind` is a name of import_model_kinds, or NULL: by contents. *out is the caller's
 * and passes model_read. Fails: ST_USAGE (an unknown kind, a setting that is missing or that the kind does not
 * take), ST_INVALID with file and line or offset, ST_TOO_LARGE, ST_NO_MEMORY. */
enum status import_model(const struct source *source, const char *kind, const struct import_settings *settings,
                         struct notes *notes, cJSON **out, struct error *err);

/* Make one cluster description from n files. Each file gives a part of it: nodes, rates or measured curves. Where two
 * files give the same figure, the later file counts; of several measurements of one size the median counts. *out, kind
 * and failures as import_model. */
enum status import_cluster(size_t n, const struct source *sources, const char *kind,
                           const struct import_settings *settings, struct notes *notes, cJSON **out, struct error *err);

/* A strategy for this model and cluster from one file of a framework's settings: what the framework makes of them,
 * sealed and named after the file. Kind and failures as import_model. Release with strategy_release. */
enum status import_strategy(const struct source *source, const char *kind, const struct model *model,
                            const struct cluster *cluster, struct notes *notes, struct strategy *out,
                            struct error *err);

/* A cluster file of ours with n all-reduces added to it, of algorithm auto; those of that algorithm among as many
 * devices are replaced. *out and failures as import_model. */
enum status import_measurements(const struct source *cluster, size_t n, const struct measurement *measured,
                                struct notes *notes, cJSON **out, struct error *err);

#endif
