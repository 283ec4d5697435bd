/* How many operations a node of an ONNX graph needs, as far as its kind and the shapes that the file tells say it.
 * Threads: any. */
#ifndef INTEROP_IMPORT_ONNX_WORK_H
#define INTEROP_IMPORT_ONNX_WORK_H

#include "interop/import/onnx_graph.h"

/* Operations of one forward pass of the batch that the shapes have; 0 for kinds that multiply no matrices and for those
 * that are not known, NaN when a shape is missing. */
double onnx_work(const struct onnx_node *node);

/* Is anything known about nodes of this kind? */
bool onnx_is_known(const struct onnx_node *node);

/* What is to be multiplied with each position when a shape is missing: elements of the node's weights, 0 when it has
 * none. */
double onnx_weight_elements(const struct onnx_node *node);

#endif
