/* sha256.h: SHA-256 of bytes (FIPS 180-4). */
#ifndef VLMPROF_CLI_SHA256_H
#define VLMPROF_CLI_SHA256_H
#include <stddef.h>

/* Writes 64 digits and a NUL. */
void sha256_text(const void *data, size_t bytes, char text[65]);

#endif
