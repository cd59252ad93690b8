/* loopback.h: servers of tests listen on 127.0.0.1. In some sandboxes that address cannot be reached; tests that need it are skipped there. */
#ifndef LOOPBACK_H
#define LOOPBACK_H
#include "check.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static inline int loopback_works(void) {
    struct sockaddr_in address;
    socklen_t bytes = sizeof address;
    const int from = socket(AF_INET, SOCK_STREAM, 0), to = socket(AF_INET, SOCK_STREAM, 0);
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int works = from >= 0 && to >= 0 && bind(to, (struct sockaddr *)&address, sizeof address) == 0 && listen(to, 1) == 0
                && getsockname(to, (struct sockaddr *)&address, &bytes) == 0 && connect(from, (struct sockaddr *)&address, sizeof address) == 0;
    if (from >= 0) close(from);
    if (to >= 0) close(to);
    return works;
}
/* Ends the test here, with a skip, if there is none. */
static inline void loopback_or_skip(void) {
    if (loopback_works()) return;
    check_skip("the rest, which asks servers", "127.0.0.1 cannot be reached here");
    exit(check_done("no_loopback"));
}
#endif
