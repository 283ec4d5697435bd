/* The name of an import. */
#include "interop/import/settings.h"

const char *import_name(const struct source *source, const struct import_settings *settings, bool estimated,
                        struct arena *arena) {
    if (settings->name)
        return settings->name;
    const char *stem = source_stem(source, arena);
    return stem && estimated ? arena_printf(arena, "%s-estimate", stem) : stem;
}
