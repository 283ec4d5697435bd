/* Operations of ONNX's Einsum, a product of tensors that an equation describes: "bhid,bhjd->bhij". Threads: any. */
#ifndef INTEROP_IMPORT_ONNX_EINSUM_H
#define INTEROP_IMPORT_ONNX_EINSUM_H

#include "interop/import/onnx_graph.h"

/* 2 operations for each combination of the indices of a product that sums over some; 0 where nothing is summed over a
 * product, NaN when a size is missing or the equation is none of these tensors. O(length of the equation). */
double onnx_einsum_work(const struct onnx_node *node);

#endif
