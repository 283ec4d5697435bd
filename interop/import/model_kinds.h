/* The readers of model files, for interop/import/import.c and the tests. Each takes a source of its kind, checks all of
 * it, and makes a description that passes model_read; `is` functions look at the contents and never fail. Errors as
 * import_model. */
#ifndef INTEROP_IMPORT_MODEL_KINDS_H
#define INTEROP_IMPORT_MODEL_KINDS_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "interop/import/notes.h"
#include "interop/import/settings.h"
#include "interop/import/source.h"

typedef bool import_recognise(const struct source *source);
typedef enum status import_model_reader(const struct source *source, const struct import_settings *settings,
                                        struct notes *notes, cJSON **out, struct error *err);

import_recognise pipedream_is, espresso_is, safetensors_is, onnx_is, torch_trace_is, graph_item_is;
import_model_reader pipedream_read, espresso_read, safetensors_read, onnx_read, torch_trace_read, graph_item_read;

#endif
