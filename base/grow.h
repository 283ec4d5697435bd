/* Arrays that grow: malloc'd, doubled when they are full. The caller frees them. */
#ifndef BASE_GROW_H
#define BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>

/* Room for `wanted` items in *array, which has room for *room of them; NULL has room for none.
 * False: out of memory, and the array stands as it was. */
#define GROW(array, room, wanted) ((wanted) <= *(room) || grow_array((array), (room), (wanted), sizeof **(array)))

/* The same for items of `size` bytes that have no type; array: the address of the pointer to them. */
bool grow_array(void *array, size_t *room, size_t wanted, size_t size);

#endif
