/* See assets.h. The assembler reads the files, which the Makefile names as what this depends on; where one ends is a
 * label behind it. */
#include "service/http/pages/assets.h"

#define ASSET(name, file)                                                                                              \
    extern const char name##_begin[], name##_end[];                                                                    \
    __asm__(".pushsection .rodata\n" #name "_begin:\n.incbin \"service/http/pages/assets/" file "\"\n" #name           \
            "_end:\n.byte 0\n.popsection\n");                                                                          \
    struct asset name(void) {                                                                                          \
        return (struct asset){name##_begin, (size_t)(name##_end - name##_begin)};                                      \
    }

ASSET(asset_style, "page.css")
ASSET(asset_script, "page.js")
ASSET(asset_icon, "icon.svg")
ASSET(asset_llms, "llms.txt")
