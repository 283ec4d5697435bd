/* The files of assets/, in the program. */
#ifndef SERVICE_HTTP_PAGES_ASSETS_H
#define SERVICE_HTTP_PAGES_ASSETS_H

#include <stddef.h>

struct asset {
    const char *text;
    size_t n;
};

struct asset asset_style(void), asset_script(void), asset_icon(void), asset_llms(void);

#endif
