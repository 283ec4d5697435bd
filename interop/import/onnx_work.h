/* How many operations a node of an ONNX graph needs, by its kind and by the shapes that the file gives.
 * Threads: any. */
#ifndef INTEROP_IMPORT_ONNX_WORK_H
#define INTEROP_IMPORT_ONNX_WORK_H

#include "interop/import/onnx_graph.h"

/* Operations of one forward pass of the batch that the shapes have; 0 for kinds that multiply no matrices and for those
 * that are not known, NaN when a shape is missing. */
double onnx_work(const struct onnx_node *node);

/* Is anything known about nodes of this kind? */
bool onnx_is_known(const struct onnx_node *node);

/* When a shape is missing: how many elements of the node's weights are multiplied with each position; 0 when it has no
 * weights. */
double onnx_weight_elements(const struct onnx_node *node);

#endif
