/* Doubling: each item is moved once or twice over the array's life, however large it becomes. */
#include "base/grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

bool grow_array(void *array, size_t *room, size_t wanted, size_t size) {
    if (wanted <= *room)
        return true;
    const size_t least = *room ? 2 * *room : FIRST_ROOM, more = wanted > least ? wanted : least;
    void *items; /* copied with memcpy: the array's own pointer has another type than void */
    memcpy(&items, array, sizeof items);
    items = more <= PTRDIFF_MAX / size ? realloc(items, more * size) : NULL;
    if (!items)
        return false;
    memcpy(array, &items, sizeof items);
    *room = more;
    return true;
}
