/* page_hash.h: the hash by which a page names its own script. */
#ifndef VLMPROF_CLI_PAGE_HASH_H
#define VLMPROF_CLI_PAGE_HASH_H
#include <stddef.h>

/* The SHA-256 of a text in base 64, as a Content-Security-Policy has it behind "sha256-". */
enum { PAGE_HASH_BYTES = 45 }; /* 44 letters and a NUL */
void page_hash(const char *text, size_t bytes, char out[PAGE_HASH_BYTES]);

#endif
