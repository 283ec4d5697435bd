/* Operations of ONNX's Einsum, a product of tensors that an equation describes: "bhid,bhjd->bhij". Threads: any. */
#ifndef INTEROP_IMPORT_ONNX_EINSUM_H
#define INTEROP_IMPORT_ONNX_EINSUM_H

#include "interop/import/onnx_graph.h"

/* The operations of an Einsum: 2 for each combination of indices. 0 if it is no product or sums over nothing. NaN when
 * a size is missing or the equation does not fit these tensors. O(length of the equation). */
double onnx_einsum_work(const struct onnx_node *node);

#endif
