/* The files of assets/, in the program. */
#ifndef TUNER_HTTP_ASSETS_H
#define TUNER_HTTP_ASSETS_H

#include <stddef.h>

struct asset {
    const char *text;
    size_t n;
};

struct asset asset_style(void), asset_script(void), asset_icon(void);

#endif
