/* vlmprof_server.c: implements what vlmprof_server.h declares */
#include "vlmprof_server.h"
#include <stdlib.h>
#include <string.h>
#if defined(__linux__) || defined(__APPLE__)
#define VP_IMPL_SERVER_POLLS 1
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#endif
#if defined(__linux__)
#include <sys/epoll.h>
#include <sys/timerfd.h>
#elif defined(__APPLE__)
#include <sys/event.h>
#endif

VP_API vp_server_options vp_server_options_default(void) {
    vp_server_options options = {0};
    options.connect_timeout_ms = 10000;
    options.idle_timeout_ms = 600000;
    options.total_timeout_ms = 3600000;
    options.max_retries = 2;
    options.most_bytes = (size_t)64 << 20;
    return options;
}
VP_API void vp_exchange_free(vp_exchange *exchange) { vp_chat_reply_free(&exchange->reply); }

#ifdef VP_IMPL_SERVER_POLLS
/* ---- libcurl: the parts used, by ABI. Numbers are from curl/curl.h and curl/multi.h of 7.62 and never change.
 * source: https://curl.se/libcurl/c/symbols-in-versions.html */
enum {
    VP_IMPL_CURL_GLOBAL_ALL = 3, VP_IMPL_CURL_ERROR_BYTES = 256,
    /* CURLcode */
    VP_IMPL_CURLE_UNSUPPORTED_PROTOCOL = 1, VP_IMPL_CURLE_COULDNT_CONNECT = 7, VP_IMPL_CURLE_WEIRD_SERVER_REPLY = 8,
    VP_IMPL_CURLE_PARTIAL_FILE = 18, VP_IMPL_CURLE_OUT_OF_MEMORY = 27, VP_IMPL_CURLE_GOT_NOTHING = 52,
    VP_IMPL_CURLE_SEND_ERROR = 55, VP_IMPL_CURLE_RECV_ERROR = 56, VP_IMPL_CURLE_BAD_CONTENT_ENCODING = 61,
    VP_IMPL_CURLE_CACERT_BADFILE = 77, VP_IMPL_CURLE_TOO_LARGE = 100,
    /* CURLoption: numbers start at 0, pointers at 10000, functions at 20000, 64-bit numbers at 30000 */
    VP_IMPL_CURLOPT_VERBOSE = 41, VP_IMPL_CURLOPT_POST = 47, VP_IMPL_CURLOPT_FOLLOWLOCATION = 52,
    VP_IMPL_CURLOPT_SSL_VERIFYPEER = 64, VP_IMPL_CURLOPT_HTTPGET = 80, VP_IMPL_CURLOPT_SSL_VERIFYHOST = 81,
    VP_IMPL_CURLOPT_HTTP_VERSION = 84, VP_IMPL_CURLOPT_NOSIGNAL = 99, VP_IMPL_CURLOPT_TCP_NODELAY = 121,
    VP_IMPL_CURLOPT_CONNECTTIMEOUT_MS = 156, VP_IMPL_CURLOPT_PROTOCOLS = 181, VP_IMPL_CURLOPT_TCP_KEEPALIVE = 213,
    VP_IMPL_CURLOPT_SUPPRESS_CONNECT_HEADERS = 265,
    VP_IMPL_CURLOPT_WRITEDATA = 10001, VP_IMPL_CURLOPT_URL = 10002, VP_IMPL_CURLOPT_PROXY = 10004,
    VP_IMPL_CURLOPT_ERRORBUFFER = 10010, VP_IMPL_CURLOPT_POSTFIELDS = 10015, VP_IMPL_CURLOPT_USERAGENT = 10018,
    VP_IMPL_CURLOPT_HTTPHEADER = 10023, VP_IMPL_CURLOPT_HEADERDATA = 10029, VP_IMPL_CURLOPT_CAINFO = 10065,
    VP_IMPL_CURLOPT_DEBUGDATA = 10095,
    VP_IMPL_CURLOPT_ACCEPT_ENCODING = 10102, VP_IMPL_CURLOPT_PRIVATE = 10103,
    VP_IMPL_CURLOPT_WRITEFUNCTION = 20011, VP_IMPL_CURLOPT_HEADERFUNCTION = 20079,
    VP_IMPL_CURLOPT_DEBUGFUNCTION = 20094,
    VP_IMPL_CURLOPT_POSTFIELDSIZE_LARGE = 30120,
    VP_IMPL_CURL_HTTP_VERSION_1_1 = 2, VP_IMPL_CURLPROTO_HTTP_AND_HTTPS = 3, VP_IMPL_CURLINFO_HEADER_OUT = 2,
    VP_IMPL_CURLINFO_DATA_OUT = 4,
    VP_IMPL_CURLINFO_PRIVATE = 0x100015, VP_IMPL_CURLINFO_NUM_CONNECTS = 0x20001A,
    /* CURLMoption, events of sockets, messages */
    VP_IMPL_CURLMOPT_MAXCONNECTS = 6, VP_IMPL_CURLMOPT_SOCKETDATA = 10002, VP_IMPL_CURLMOPT_TIMERDATA = 10005,
    VP_IMPL_CURLMOPT_SOCKETFUNCTION = 20001, VP_IMPL_CURLMOPT_TIMERFUNCTION = 20004,
    VP_IMPL_CURL_POLL_IN = 1, VP_IMPL_CURL_POLL_OUT = 2, VP_IMPL_CURL_POLL_REMOVE = 4,
    VP_IMPL_CURL_CSELECT_IN = 1, VP_IMPL_CURL_CSELECT_OUT = 2, VP_IMPL_CURL_CSELECT_ERR = 4,
    VP_IMPL_CURL_SOCKET_TIMEOUT = -1, VP_IMPL_CURLMSG_DONE = 1
};
typedef struct vp_impl_curl_list { char *data; struct vp_impl_curl_list *next; } vp_impl_curl_list;
typedef struct vp_impl_curl_message { int kind; void *easy; union { void *whatever; int result; } data; }
    vp_impl_curl_message;
/* The beginning of curl_version_info_data. curl_version() also starts LDAP and SASL, which crash without memory. */
typedef struct vp_impl_curl_version {
    int age; const char *version; unsigned number; const char *host; int features; const char *ssl_version;
} vp_impl_curl_version;
#define VP_IMPL_CURL_CALLS(X) \
    X(int, curl_global_init, (long)) \
    X(void, curl_global_cleanup, (void)) \
    X(const vp_impl_curl_version *, curl_version_info, (int)) \
    X(time_t, curl_getdate, (const char *, const time_t *)) \
    X(vp_impl_curl_list *, curl_slist_append, (vp_impl_curl_list *, const char *)) \
    X(void, curl_slist_free_all, (vp_impl_curl_list *)) \
    X(void *, curl_easy_init, (void)) \
    X(int, curl_easy_setopt, (void *, int, ...)) \
    X(int, curl_easy_getinfo, (void *, int, ...)) \
    X(const char *, curl_easy_strerror, (int)) \
    X(void, curl_easy_reset, (void *)) \
    X(void, curl_easy_cleanup, (void *)) \
    X(void *, curl_multi_init, (void)) \
    X(int, curl_multi_setopt, (void *, int, ...)) \
    X(int, curl_multi_add_handle, (void *, void *)) \
    X(int, curl_multi_remove_handle, (void *, void *)) \
    X(int, curl_multi_assign, (void *, int, void *)) \
    X(int, curl_multi_socket_action, (void *, int, int, int *)) \
    X(vp_impl_curl_message *, curl_multi_info_read, (void *, int *)) \
    X(const char *, curl_multi_strerror, (int)) \
    X(int, curl_multi_cleanup, (void *))
typedef struct vp_impl_curl {
#define VP_IMPL_CURL_MEMBER(type, name, arguments) type(*name) arguments;
    VP_IMPL_CURL_CALLS(VP_IMPL_CURL_MEMBER)
#undef VP_IMPL_CURL_MEMBER
} vp_impl_curl;

/* ---- the state of a request */
enum { VP_IMPL_SERVER_HEADERS_MAX = 65536, VP_IMPL_SERVER_REFUSAL_MAX = 65536, VP_IMPL_SERVER_WORDS_MAX = 300,
       VP_IMPL_SERVER_KEY_MAX = 2048, VP_IMPL_SERVER_SECRET_MIN = 8, VP_IMPL_SERVER_PAUSE_MAX_MS = 60000,
       VP_IMPL_SERVER_EVENTS = 128,
       VP_IMPL_SERVER_MONOTONIC = 1 }; /* Linux's CLOCK_MONOTONIC: strict ISO mode hides the name */
typedef struct vp_impl_flight {
    vp_server *server;
    void *easy;
    vp_exchange *exchange;
    struct vp_impl_flight *next;  /* in the list of free or of finished flights */
    int64_t at_ns; uint64_t order; /* due time of the next action; equal times are ordered by `order` */
    int is_waiting;               /* 1 if at_ns is set */
    int is_flying;                /* 1 if added to libcurl */
    char *get_url;                /* allocated URL of a GET; NULL: a POST */
    int64_t heard_ns;             /* time of the last byte of the answer */
    int status, headers_ended, has_reply;
    size_t header_bytes;
    int64_t answer_bytes;
    int64_t pause_ms;                                             /* time of Retry-After; -1: no such header */
    char content_type[128], location[2 * VP_IMPL_SERVER_KEY_MAX]; /* the key must fit, because a truncated key is not
                                                                   * found */
    char *body; size_t body_bytes, body_capacity; /* body of an error response or a GET */
    int is_enough;                /* 1 if the rest of an error response is not read */
    vp_error broken;              /* code: VP_OK, or the reason for cancelling it here */
    char curl_error[VP_IMPL_CURL_ERROR_BYTES];
} vp_impl_flight;

struct vp_server {
    vp_impl_curl curl;
    vp_server_options options;
    char *url, *post_url, *api_key, *ca_file, library[128];
    int is_global, is_loopback;
    vp_impl_curl_list *post_headers, *get_headers;
    void *multi;
    int poll, timer;              /* descriptors; poll: epoll's or kqueue's */
    int64_t armed_ns, curl_at_ns; /* 0: not set */
    vp_impl_flight **flights, *unused, *first_done, *last_done;
    size_t flight_count, flight_capacity, active_count;
    long connection_count; /* largest number of open connections */
    uint64_t order;
};

static void vp_impl_server_wipe(char *text) {
    volatile char *at = text; /* volatile, so that the compiler does not omit the writes */
    if (at) while (*at) *at++ = 0;
}
static int vp_impl_server_hex(const char *at, const char *end, int digits, unsigned *value) {
    for (*value = 0; digits > 0; digits--, at++) {
        const char letter = at < end ? (char)(*at | 0x20) : 0;
        if (letter >= '0' && letter <= '9') *value = *value * 16 + (unsigned)(letter - '0');
        else if (letter >= 'a' && letter <= 'f') *value = *value * 16 + (unsigned)(letter - 'a') + 10;
        else return 0;
    }
    return 1;
}
/* The decoding of a text: raw, with escapes of JSON and URLs, or with those of JSON inside JSON strings. */
typedef enum vp_impl_server_spelling { VP_IMPL_SERVER_PLAIN, VP_IMPL_SERVER_ESCAPED, VP_IMPL_SERVER_NESTED }
    vp_impl_server_spelling;
/* Reads a character. Returns its size. */
static size_t vp_impl_server_character(const char *at, const char *end, vp_impl_server_spelling spelling,
                                       unsigned *character) {
    const char *rest = at;
    *character = (unsigned char)*at;
    if (spelling == VP_IMPL_SERVER_PLAIN) return 1;
    if (*at == '%') return vp_impl_server_hex(at + 1, end, 2, character) ? 3 : (*character = '%', 1);
    if (*at != '\\') return 1;
    do rest++; while (spelling == VP_IMPL_SERVER_NESTED && rest < end && *rest == '\\');
    if (rest < end && *rest == 'u' && vp_impl_server_hex(rest + 1, end, 4, character)) return (size_t)(rest - at) + 5;
    *character = '\\';
    if (rest == end || !*rest || !strchr("/\"\\bfnrt", *rest)) return 1;
    *character = strchr("bfnrt", *rest) ? ' ' : (unsigned char)*rest;
    return (size_t)(rest - at) + 1;
}
/* Returns 1 if a text or a JSON string ends here, even inside an escape. */
static int vp_impl_server_is_end(const char *at, const char *end) {
    const char *rest = at;
    unsigned value;
    if (at < end && *at == '%') return end - at < 3;
    while (rest < end && *rest == '\\') rest++;
    if (rest == end || *rest == '"') return 1;
    return rest > at && *rest == 'u' && end - rest < 5
           && vp_impl_server_hex(rest + 1, end, (int)(end - rest) - 1, &value);
}
/* Length of the key at the start of a text, or of its first 8 or more characters if the text or a JSON string ends
 * after them; 0 if there is no key. Characters may be escaped, and separated by blanks, line ends or vp_text_copy's
 * replacement for them (?). */
static size_t vp_impl_server_key_bytes(const char *key, const char *text, const char *end,
                                       vp_impl_server_spelling spelling) {
    const char *at = text, *letter = key;
    while (at < end && *letter) {
        unsigned character;
        const size_t bytes = vp_impl_server_character(at, end, spelling, &character);
        if (character == (unsigned char)*letter) letter++;
        else if (letter == key || !(character <= ' ' || character == '?' || character == 127)) break;
        at += bytes;
    }
    if (!*letter) return (size_t)(at - text);
    if (letter - key < VP_IMPL_SERVER_SECRET_MIN) return 0;
    return vp_impl_server_is_end(at, end) ? (size_t)(at - text) : 0;
}
/* Removes the API key from a text in which a server may have echoed it. Every text from a server passes through here
 * before it is truncated. Shorter keys, which are words like "EMPTY", are ignored. Returns the new length of the
 * text. */
static size_t vp_impl_server_scrub(const vp_server *server, char *text, size_t bytes) {
    static const char mark[] = "[key]";
    const char *key = server->api_key;
    char *at = text, *out = text, *end = text ? text + bytes : text;
    if (!text || !key || strlen(key) < VP_IMPL_SERVER_SECRET_MIN) return bytes;
    while (at < end) {
        size_t found = 0;
        for (int spelling = VP_IMPL_SERVER_PLAIN; spelling <= VP_IMPL_SERVER_NESTED && !found; spelling++)
            if (*at == *key || *at == '\\' || *at == '%')
                found = vp_impl_server_key_bytes(key, at, end, (vp_impl_server_spelling)spelling);
        if (found) {
            memcpy(out, mark, sizeof mark - 1);
            out += sizeof mark - 1;
            at += found;
        } else {
            *out++ = *at++;
        }
    }
    *out = 0;
    return (size_t)(out - text);
}
/* The same for a message on one line, before it is truncated, because half a key would not be found. */
static void vp_impl_server_scrub_words(const vp_server *server, char *text) {
    size_t bytes = text ? vp_impl_server_scrub(server, text, strlen(text)) : 0, at = VP_IMPL_SERVER_WORDS_MAX;
    if (bytes <= at) return;
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80) at--; /* not inside a character */
    text[at] = 0;
}

/* ---- due times: requests in flight are few, so the next one is searched */
static vp_impl_flight *vp_impl_server_next(const vp_server *server) {
    vp_impl_flight *next = NULL;
    for (size_t i = 0; i < server->flight_count; i++) {
        vp_impl_flight *flight = server->flights[i];
        if (flight->is_waiting
            && (!next || flight->at_ns < next->at_ns || (flight->at_ns == next->at_ns && flight->order < next->order)))
            next = flight;
    }
    return next;
}
static void vp_impl_server_push(vp_impl_flight *flight, int64_t at_ns) {
    flight->at_ns = at_ns;
    flight->order = flight->server->order++;
    flight->is_waiting = 1;
}

/* ---- callbacks of libcurl */
static vp_result vp_impl_server_break(vp_impl_flight *flight, vp_result code, const char *text) {
    if (flight->broken.code == VP_OK) vp_error_set(&flight->broken, code, -1, flight->server->url, text);
    return code;
}
/* The value of a header line with this name; NULL if the name differs. */
static const char *vp_impl_server_header(const char *line, size_t bytes, const char *name, size_t *value_bytes) {
    size_t i = 0;
    for (; name[i]; i++) {
        if (i == bytes || ((unsigned char)line[i] | 0x20) != (unsigned char)name[i]) return NULL; /* names: a-z, - */
    }
    if (i == bytes || line[i++] != ':') return NULL;
    while (i < bytes && (line[i] == ' ' || line[i] == '\t')) i++;
    while (bytes > i && (unsigned char)line[bytes - 1] <= ' ') bytes--;
    *value_bytes = bytes - i;
    return line + i;
}
static void vp_impl_server_copy(char *out, size_t capacity, const char *text, size_t bytes) {
    if (bytes >= capacity) bytes = capacity - 1;
    memcpy(out, text, bytes);
    out[bytes] = 0;
}
/* Parses Retry-After, seconds or a date, into ms. */
static int64_t vp_impl_server_pause(const vp_server *server, const char *text) {
    int64_t seconds = 0;
    const char *at = text;
    time_t date;
    for (; *at >= '0' && *at <= '9' && seconds < 1000000000; at++) seconds = seconds * 10 + (*at - '0');
    if (at == text) {
        date = server->curl.curl_getdate(text, NULL);
        if (date < 0) return -1;
        seconds = (int64_t)date - (int64_t)time(NULL);
        if (seconds > 1000000000) seconds = 1000000000;
    }
    return seconds > 0 ? seconds * 1000 : 0;
}
static void vp_impl_server_take_header(vp_impl_flight *flight, const char *line, size_t bytes) {
    size_t value_bytes;
    const char *value;
    char text[64];
    if (bytes >= 12 && memcmp(line, "HTTP/", 5) == 0) {
        const char *at = (const char *)memchr(line, ' ', bytes);
        const size_t left = at ? bytes - (size_t)(at - line) : 0;
        flight->status = left > 3 && at[1] >= '1' && at[1] <= '9' && at[2] >= '0' && at[2] <= '9' && at[3] >= '0'
                                 && at[3] <= '9'
                             ? (at[1] - '0') * 100 + (at[2] - '0') * 10 + (at[3] - '0') : 0;
        flight->content_type[0] = flight->location[0] = 0;
        flight->pause_ms = -1;
    } else if ((value = vp_impl_server_header(line, bytes, "content-type", &value_bytes)) != NULL) {
        vp_impl_server_copy(flight->content_type, sizeof flight->content_type, value, value_bytes);
    } else if ((value = vp_impl_server_header(line, bytes, "location", &value_bytes)) != NULL) {
        vp_impl_server_copy(flight->location, sizeof flight->location, value, value_bytes);
    } else if ((value = vp_impl_server_header(line, bytes, "retry-after", &value_bytes)) != NULL) {
        vp_impl_server_copy(text, sizeof text, value, value_bytes);
        flight->pause_ms = vp_impl_server_pause(flight->server, text);
    }
}
static size_t vp_impl_server_on_header(char *line, size_t size, size_t count, void *user) {
    vp_impl_flight *flight = (vp_impl_flight *)user;
    const size_t bytes = size * count;
    flight->heard_ns = vp_clock_ns();
    flight->header_bytes += bytes;
    if (flight->header_bytes > VP_IMPL_SERVER_HEADERS_MAX) {
        vp_impl_server_break(flight, VP_ERR_FORMAT, "the server sent more than 64 KiB of headers");
        return 0;
    }
    if (flight->headers_ended) return bytes; /* trailers */
    if (bytes > 2 || (line[0] != '\r' && line[0] != '\n')) {
        vp_impl_server_take_header(flight, line, bytes);
    } else if (flight->status >= 200) { /* a lower status is an interim answer */
        flight->headers_ended = 1;
        flight->exchange->headers_ns = flight->heard_ns;
        flight->exchange->http_status = flight->status;
        flight->exchange->state = VP_EXCHANGE_ANSWERED;
    }
    return bytes;
}
/* Appends to a stored body. Returns 0 if it is too long or out of memory. */
static int vp_impl_server_keep(vp_impl_flight *flight, const char *data, size_t bytes, size_t most) {
    size_t capacity = flight->body_capacity ? flight->body_capacity : 4096;
    char *grown;
    if (bytes > most - flight->body_bytes) {
        vp_impl_server_break(flight, VP_ERR_RANGE, "the answer exceeds the size limit");
        return 0;
    }
    while (capacity <= flight->body_bytes + bytes) capacity *= 2;
    if (capacity != flight->body_capacity) {
        grown = (char *)VP_REALLOC(flight->body, capacity);
        if (!grown) {
            vp_impl_server_break(flight, VP_ERR_MEMORY, "not enough memory for the answer");
            return 0;
        }
        flight->body = grown;
        flight->body_capacity = capacity;
    }
    memcpy(flight->body + flight->body_bytes, data, bytes);
    flight->body_bytes += bytes;
    flight->body[flight->body_bytes] = 0;
    return 1;
}
static size_t vp_impl_server_on_body(char *data, size_t size, size_t count, void *user) {
    vp_impl_flight *flight = (vp_impl_flight *)user;
    vp_server *server = flight->server;
    const size_t bytes = size * count;
    const int64_t now = vp_clock_ns();
    flight->heard_ns = now;
    if (!flight->headers_ended) {
        vp_impl_server_break(flight, VP_ERR_FORMAT, "the server sent no HTTP headers");
        return 0;
    }
    if (flight->status >= 300 && !flight->get_url) {
        const size_t room = VP_IMPL_SERVER_REFUSAL_MAX - flight->body_bytes;
        flight->is_enough = bytes > room;
        return vp_impl_server_keep(flight, data, bytes < room ? bytes : room, VP_IMPL_SERVER_REFUSAL_MAX)
               && !flight->is_enough ? bytes : 0;
    }
    flight->answer_bytes += (int64_t)bytes;
    if (flight->get_url) return vp_impl_server_keep(flight, data, bytes, server->options.most_bytes) ? bytes : 0;
    if (!flight->has_reply) {
        if (vp_chat_reply_begin(&flight->exchange->reply, server->options.api,
                                flight->content_type[0] ? flight->content_type : NULL, server->options.most_bytes)
            != VP_OK) {
            vp_impl_server_break(flight, VP_ERR_MEMORY, "not enough memory for the answer");
            return 0;
        }
        flight->has_reply = 1;
    }
    return vp_chat_reply_feed(&flight->exchange->reply, data, bytes, now, &flight->broken) == VP_OK ? bytes : 0;
}
/* libcurl reports its writes to the socket. If it resends a request because a reused connection was closed, the request
 * is stamped again. A proxy's CONNECT does not count. */
static int vp_impl_server_on_debug(void *easy, int kind, char *data, size_t bytes, void *user) {
    vp_impl_flight *flight = (vp_impl_flight *)user;
    (void)easy;
    if (kind == VP_IMPL_CURLINFO_DATA_OUT) flight->exchange->uploaded_ns = vp_clock_ns();
    if (kind != VP_IMPL_CURLINFO_HEADER_OUT || bytes < 5) return 0;
    if (memcmp(data, "POST ", 5) != 0 && memcmp(data, "GET ", 4) != 0) return 0;
    flight->exchange->sent_ns = vp_clock_ns();
    flight->exchange->state = VP_EXCHANGE_SENT;
    return 0;
}
/* Watches a socket for the events that libcurl waits for. Returns 0, or -1 with errno. */
static int vp_impl_server_watch(vp_server *server, int socket, int what, int is_known) {
#if defined(__linux__)
    struct epoll_event event = {0};
    event.data.fd = socket;
    event.events = (what & VP_IMPL_CURL_POLL_IN ? (uint32_t)EPOLLIN : 0u)
                   | (what & VP_IMPL_CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0u);
    if (what != VP_IMPL_CURL_POLL_REMOVE)
        return epoll_ctl(server->poll, is_known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event);
    epoll_ctl(server->poll, EPOLL_CTL_DEL, socket, &event);
#else
    struct kevent change[2];
    const int is_removal = what == VP_IMPL_CURL_POLL_REMOVE;
    const int in = !is_removal && what & VP_IMPL_CURL_POLL_IN, out = !is_removal && what & VP_IMPL_CURL_POLL_OUT;
    (void)is_known;
    EV_SET(&change[0], socket, EVFILT_READ, in ? EV_ADD : EV_DELETE, 0, 0, NULL);
    EV_SET(&change[1], socket, EVFILT_WRITE, out ? EV_ADD : EV_DELETE, 0, 0, NULL);
    for (int i = 0; i < 2; i++) /* removing a missing filter fails */
        if (kevent(server->poll, &change[i], 1, NULL, 0, NULL) != 0 && change[i].flags == EV_ADD) return -1;
#endif
    return 0;
}
static int vp_impl_server_on_socket(void *easy, int socket, int what, void *user, void *known) {
    vp_server *server = (vp_server *)user;
    (void)easy;
    if (vp_impl_server_watch(server, socket, what, known != NULL) != 0) return -1;
    if (what != VP_IMPL_CURL_POLL_REMOVE) server->curl.curl_multi_assign(server->multi, socket, server);
    return 0;
}
static int vp_impl_server_on_timer(void *multi, long timeout_ms, void *user) {
    vp_server *server = (vp_server *)user;
    (void)multi;
    server->curl_at_ns = timeout_ms < 0 ? 0 : vp_clock_ns() + (int64_t)timeout_ms * 1000000;
    return 0;
}

/* ---- opening */
static vp_result vp_impl_server_load(vp_impl_curl *curl, vp_error *error) {
    static const struct { const char *name; size_t offset; } calls[] = {
#define VP_IMPL_CURL_ROW(type, name, arguments) {#name, offsetof(vp_impl_curl, name)},
        VP_IMPL_CURL_CALLS(VP_IMPL_CURL_ROW)
#undef VP_IMPL_CURL_ROW
    };
#if defined(__APPLE__)
    static const char *const names[] = {"libcurl.4.dylib"};
#else
    /* Debian, Ubuntu, Fedora, RHEL, SUSE, Alpine; Debian's and Ubuntu's other two; development files */
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4", "libcurl.so"};
#endif
    void *library = NULL, *call;
    long major = 0, minor = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, names[0],
                            "libcurl is not installed; requests to servers need"
                            " it (Debian, Ubuntu: apt install libcurl4; Fedora: dnf install libcurl)");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        call = dlsym(library, calls[i].name);
        if (!call) return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, calls[i].name, "this libcurl is too old");
        memcpy((char *)curl + calls[i].offset, &call, sizeof call);
    }
    if (sscanf(curl->curl_version_info(0)->version, "%4ld.%4ld", &major, &minor) != 2 || major < 7
        || (major == 7 && minor < 62))
        return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "libcurl", "libcurl 7.62 or later is needed");
    return VP_OK;
}
/* Length of "http://" or "https://" at the start; 0 for anything else. */
static size_t vp_impl_server_scheme(const char *url) {
    for (size_t i = 0; i < 8; i++) {
        static const char scheme[] = "https://";
        const char letter = url[i] >= 'A' && url[i] <= 'Z' ? (char)(url[i] + 32) : url[i];
        if (i == 4 && letter == ':') return url[5] == '/' && url[6] == '/' ? 7 : 0;
        if (letter != scheme[i]) return 0;
    }
    return 8;
}
/* The error in a URL, or NULL. */
static const char *vp_impl_server_bad_url(const char *url) {
    const size_t scheme = url ? vp_impl_server_scheme(url) : 0;
    const char *host, *end, *port, *at;
    if (scheme == 0) return "a URL must begin with http:// or https://";
    for (at = url; *at; at++)
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f || strchr("\"<>\\^`{|}", *at))
            return "the URL contains an invalid character";
    host = url + scheme;
    if (strpbrk(host, "?#")) return "the URL of a server must not contain ? or #";
    end = host + strcspn(host, "/");
    at = (const char *)memchr(host, '@', (size_t)(end - host));
    if (at) return "the URL must not contain a user name or password; use the API key";
    port = *host == '[' ? (const char *)memchr(host, ']', (size_t)(end - host)) : host - 1;
    if (!port) return "the URL's IPv6 address lacks its ]";
    port++;
    if (*host != '[') port += strcspn(port, ":/");
    if (port == host || (*host == '[' && port == host + 2)) return "the URL has no host";
    if (port != end) {
        int32_t number = 0;
        if (*port != ':') return "the URL's host is malformed";
        for (at = port + 1; at < end && *at >= '0' && *at <= '9' && number < 65536; at++)
            number = number * 10 + (*at - '0');
        if (at != end || number < 1 || number > 65535) return "the URL's port is not in 1..65535";
    }
    return NULL;
}
static int vp_impl_server_is_loopback(const char *url) {
    const char *host = url + vp_impl_server_scheme(url);
    const size_t bytes = strcspn(host, ":/");
    if (strncmp(host, "[::1]", 5) == 0) return 1;
    if (bytes == 9 && (strncmp(host, "localhost", 9) == 0 || strncmp(host, "LOCALHOST", 9) == 0)) return 1;
    return strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == bytes;
}
static char *vp_impl_server_join(const char *first, const char *second) {
    const size_t first_bytes = strlen(first), second_bytes = strlen(second);
    char *text = (char *)VP_MALLOC(first_bytes + second_bytes + 1);
    if (!text) return NULL;
    memcpy(text, first, first_bytes);
    memcpy(text + first_bytes, second, second_bytes + 1);
    return text;
}
static const char *vp_impl_server_bad_option(const vp_server_options *options) {
    const char *at;
    if (!vp_chat_api_name((int32_t)options->api)) return "api";
    if (options->connect_timeout_ms < 1) return "connect_timeout_ms";
    if (options->idle_timeout_ms < 1) return "idle_timeout_ms";
    if (options->total_timeout_ms < 1) return "total_timeout_ms";
    if (options->max_retries < 0 || options->max_retries > 100) return "max_retries";
    if (options->most_bytes < 1) return "most_bytes";
    if (!options->api_key) return NULL;
    for (at = options->api_key; *at > ' ' && *at < 0x7f; at++) {}
    return *at || at == options->api_key || at - options->api_key > VP_IMPL_SERVER_KEY_MAX ? "api_key" : NULL;
}
static int vp_impl_server_header_list(vp_server *server, vp_impl_curl_list **list, const char *first) {
    char *line = NULL;
    *list = server->curl.curl_slist_append(NULL, first);
    if (!*list || !server->api_key) return *list != NULL;
    line = vp_impl_server_join("Authorization: Bearer ", server->api_key);
    vp_impl_curl_list *longer = line ? server->curl.curl_slist_append(*list, line) : NULL;
    vp_impl_server_wipe(line);
    VP_FREE(line);
    return longer != NULL;
}
/* Opens the descriptors for waiting on sockets and on a time. Returns 0, or -1 with errno. */
static int vp_impl_server_open_poll(vp_server *server) {
#if defined(__linux__)
    struct epoll_event event = {0};
    server->poll = epoll_create1(EPOLL_CLOEXEC);
    server->timer = timerfd_create(VP_IMPL_SERVER_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    event.events = EPOLLIN;
    event.data.fd = server->timer;
    if (server->poll < 0 || server->timer < 0) return -1;
    return epoll_ctl(server->poll, EPOLL_CTL_ADD, server->timer, &event);
#else
    server->poll = kqueue();
    return server->poll < 0 ? -1 : 0;
#endif
}
static vp_result vp_impl_server_prepare(vp_server *server, const vp_server_options *options, vp_error *error) {
    vp_impl_curl *curl = &server->curl;
    int failed = 0;
    server->url = vp_impl_server_join(options->url, "");
    if (options->api_key) server->api_key = vp_impl_server_join(options->api_key, "");
    if (options->ca_file) server->ca_file = vp_impl_server_join(options->ca_file, "");
    if (server->url) server->url[vp_chat_base_bytes(server->url)] = 0;
    server->post_url = server->url ? vp_impl_server_join(server->url, vp_chat_api_path((int32_t)options->api)) : NULL;
    if (!server->post_url || (options->api_key && !server->api_key) || (options->ca_file && !server->ca_file))
        return vp_error_set(error, VP_ERR_MEMORY, -1, "server", "not enough memory for a server");
    snprintf(server->library, sizeof server->library, "libcurl/%.40s %.70s", curl->curl_version_info(0)->version,
             curl->curl_version_info(0)->ssl_version ? curl->curl_version_info(0)->ssl_version : "without TLS");
    server->is_loopback = vp_impl_server_is_loopback(server->url);
    server->options = *options;
    server->options.url = server->options.api_key = server->options.ca_file = NULL;
    if (curl->curl_global_init(VP_IMPL_CURL_GLOBAL_ALL) != 0)
        return vp_error_set(error, VP_ERR_DEVICE, -1, "curl_global_init", "libcurl failed to start");
    server->is_global = 1;
    server->multi = curl->curl_multi_init();
    /* An empty Expect removes the header; with it, a large body would wait for the server's "100 Continue". */
    if (!server->multi || !vp_impl_server_header_list(server, &server->get_headers, "Accept: application/json")
        || !vp_impl_server_header_list(server, &server->post_headers, "Content-Type: application/json")
        || !curl->curl_slist_append(server->post_headers, "Expect:"))
        return vp_error_set(error, VP_ERR_MEMORY, -1, "server", "not enough memory for a server");
    failed |= curl->curl_multi_setopt(server->multi, VP_IMPL_CURLMOPT_SOCKETFUNCTION, vp_impl_server_on_socket);
    failed |= curl->curl_multi_setopt(server->multi, VP_IMPL_CURLMOPT_SOCKETDATA, server);
    failed |= curl->curl_multi_setopt(server->multi, VP_IMPL_CURLMOPT_TIMERFUNCTION, vp_impl_server_on_timer);
    failed |= curl->curl_multi_setopt(server->multi, VP_IMPL_CURLMOPT_TIMERDATA, server);
    if (failed) return vp_error_set(error, VP_ERR_DEVICE, -1, "curl_multi_setopt", "libcurl rejected an option");
    if (vp_impl_server_open_poll(server) != 0)
        return vp_error_set(error, VP_ERR_DEVICE, -1, "epoll or kqueue", strerror(errno));
    return VP_OK;
}
VP_API vp_result vp_server_open(const vp_server_options *options, vp_server **server, vp_error *error) {
    const char *wrong = vp_impl_server_bad_url(options->url);
    vp_server *opened;
    if (wrong)
        return vp_error_set(error, VP_ERR_FORMAT, -1, "url", wrong); /* omits the URL, which may contain a password */
    wrong = vp_impl_server_bad_option(options);
    if (wrong)
        return vp_error_set(error, VP_ERR_RANGE, -1, wrong, "the value is outside its range (a key is one word)");
    opened = (vp_server *)VP_CALLOC(1, sizeof *opened);
    if (!opened) return vp_error_set(error, VP_ERR_MEMORY, -1, "server", "not enough memory for a server");
    opened->poll = opened->timer = -1;
    vp_result result = vp_impl_server_load(&opened->curl, error);
    if (result == VP_OK) result = vp_impl_server_prepare(opened, options, error);
    if (result != VP_OK) {
        vp_server_close(opened);
        return result;
    }
    *server = opened;
    return VP_OK;
}
VP_API const char *vp_server_url(const vp_server *server) { return server->url; }
VP_API const char *vp_server_library(const vp_server *server) { return server->library; }

/* ---- flights */
static int vp_impl_server_configure(vp_impl_flight *flight) {
    vp_server *server = flight->server;
    int (*const set)(void *, int, ...) = server->curl.curl_easy_setopt;
    void *easy = flight->easy;
    int failed = 0;
    failed |= set(easy, VP_IMPL_CURLOPT_NOSIGNAL, 1L);
    failed |= set(easy, VP_IMPL_CURLOPT_FOLLOWLOCATION, 0L);
    failed |= set(easy, VP_IMPL_CURLOPT_PROTOCOLS, (long)VP_IMPL_CURLPROTO_HTTP_AND_HTTPS);
    failed |= set(easy, VP_IMPL_CURLOPT_SSL_VERIFYPEER, 1L);
    failed |= set(easy, VP_IMPL_CURLOPT_SSL_VERIFYHOST, 2L);
    if (server->ca_file) failed |= set(easy, VP_IMPL_CURLOPT_CAINFO, server->ca_file);
    /* streams that share one HTTP/2 connection would wait for each other */
    failed |= set(easy, VP_IMPL_CURLOPT_HTTP_VERSION, (long)VP_IMPL_CURL_HTTP_VERSION_1_1);
    failed |= set(easy, VP_IMPL_CURLOPT_TCP_NODELAY, 1L);
    failed |= set(easy, VP_IMPL_CURLOPT_TCP_KEEPALIVE, 1L);
    failed |= set(easy, VP_IMPL_CURLOPT_CONNECTTIMEOUT_MS, (long)server->options.connect_timeout_ms);
    /* A compressor buffers bytes, which would distort the stamps, so compression is not requested. If a server
     * compresses anyway, the answer is unpacked. */
    failed |= set(easy, VP_IMPL_CURLOPT_ACCEPT_ENCODING, "identity");
    failed |= set(easy, VP_IMPL_CURLOPT_USERAGENT, "vlmprof/" VLMPROF_VERSION);
    if (server->is_loopback) failed |= set(easy, VP_IMPL_CURLOPT_PROXY, ""); /* overrides the environment */
    failed |= set(easy, VP_IMPL_CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    failed |= set(easy, VP_IMPL_CURLOPT_ERRORBUFFER, flight->curl_error);
    failed |= set(easy, VP_IMPL_CURLOPT_PRIVATE, flight);
    failed |= set(easy, VP_IMPL_CURLOPT_HEADERFUNCTION, vp_impl_server_on_header);
    failed |= set(easy, VP_IMPL_CURLOPT_HEADERDATA, flight);
    failed |= set(easy, VP_IMPL_CURLOPT_WRITEFUNCTION, vp_impl_server_on_body);
    failed |= set(easy, VP_IMPL_CURLOPT_WRITEDATA, flight);
    failed |= set(easy, VP_IMPL_CURLOPT_VERBOSE, 1L); /* enables the debug function; nothing is printed */
    failed |= set(easy, VP_IMPL_CURLOPT_DEBUGFUNCTION, vp_impl_server_on_debug);
    failed |= set(easy, VP_IMPL_CURLOPT_DEBUGDATA, flight);
    return failed == 0;
}
static vp_result vp_impl_server_room(vp_server *server) {
    const size_t capacity = server->flight_capacity ? server->flight_capacity * 2 : 16;
    vp_impl_flight **flights;
    if (server->flight_count < server->flight_capacity) return VP_OK;
    flights = (vp_impl_flight **)VP_REALLOC(server->flights, capacity * sizeof *flights);
    if (!flights) return VP_ERR_MEMORY;
    server->flights = flights;
    server->flight_capacity = capacity;
    return VP_OK;
}
/* Returns a reused flight or a new one. libcurl keeps as many connections as were ever open at once. */
static vp_impl_flight *vp_impl_server_flight(vp_server *server) {
    vp_impl_flight *flight = server->unused;
    if (flight) {
        server->unused = flight->next;
        flight->next = NULL;
        return flight;
    }
    if (vp_impl_server_room(server) != VP_OK) return NULL;
    flight = (vp_impl_flight *)VP_CALLOC(1, sizeof *flight);
    if (!flight) return NULL;
    flight->server = server;
    flight->easy = server->curl.curl_easy_init();
    if (!flight->easy) {
        VP_FREE(flight);
        return NULL;
    }
    server->flights[server->flight_count++] = flight;
    while (server->connection_count < (long)server->flight_count) {
        server->connection_count = server->connection_count ? server->connection_count * 2 : 64;
        server->curl.curl_multi_setopt(server->multi, VP_IMPL_CURLMOPT_MAXCONNECTS, server->connection_count);
    }
    return flight;
}
static void vp_impl_server_release(vp_impl_flight *flight) {
    vp_server *server = flight->server;
    VP_FREE(flight->get_url);
    VP_FREE(flight->body);
    flight->get_url = flight->body = NULL;
    flight->body_bytes = flight->body_capacity = 0;
    flight->exchange = NULL;
    flight->next = server->unused;
    server->unused = flight;
}
/* Removes a flight from libcurl. */
static void vp_impl_server_land(vp_impl_flight *flight) {
    flight->is_waiting = 0;
    if (flight->is_flying) flight->server->curl.curl_multi_remove_handle(flight->server->multi, flight->easy);
    flight->is_flying = 0;
}
/* Ends an exchange; vp_server_step returns it. */
static void vp_impl_server_finish(vp_impl_flight *flight) {
    vp_server *server = flight->server;
    vp_exchange *exchange = flight->exchange;
    vp_chat_reply *reply = &exchange->reply;
    vp_impl_server_land(flight);
    exchange->result = exchange->error.code;
    exchange->state = exchange->result == VP_OK ? VP_EXCHANGE_DONE : VP_EXCHANGE_FAILED;
    vp_impl_server_scrub(server, exchange->error.text, strlen(exchange->error.text));
    vp_impl_server_scrub_words(server, reply->failure);
    vp_impl_server_scrub_words(server, reply->model);
    vp_impl_server_scrub_words(server, reply->finish_reason);
    if (reply->timings) vp_impl_server_scrub(server, reply->timings, strlen(reply->timings));
    if (reply->logprobs) vp_impl_server_scrub(server, reply->logprobs, strlen(reply->logprobs));
    reply->text_bytes = vp_impl_server_scrub(server, reply->text, reply->text_bytes);
    reply->reasoning_bytes = vp_impl_server_scrub(server, reply->reasoning, reply->reasoning_bytes);
    server->active_count--;
    flight->next = NULL;
    if (server->last_done) server->last_done->next = flight;
    else server->first_done = flight;
    server->last_done = flight;
}
static void vp_impl_server_fail(vp_impl_flight *flight, vp_result code, const char *text) {
    const char *url = flight->get_url ? flight->get_url : flight->server->post_url;
    char whole[640];
    snprintf(whole, sizeof whole, "%.600s", text);
    vp_impl_server_scrub(flight->server, whole, strlen(whole)); /* libcurl's message may repeat a server's text */
    if (flight->exchange->attempts > 1) {
        const size_t bytes = strlen(whole) < 560 ? strlen(whole) : 560;
        snprintf(whole + bytes, sizeof whole - bytes, " (after %d attempts)", (int)flight->exchange->attempts);
    }
    vp_error_set(&flight->exchange->error, code, -1, url, whole);
    vp_impl_server_finish(flight);
}

/* ---- the end of an attempt */
/* Schedules the next attempt. Returns 0 if no attempt is left. */
static int vp_impl_server_retry(vp_impl_flight *flight) {
    const int32_t attempts = flight->exchange->attempts;
    int64_t pause_ms = flight->pause_ms;
    if (attempts > flight->server->options.max_retries || flight->answer_bytes > 0) return 0;
    if (pause_ms > VP_IMPL_SERVER_PAUSE_MAX_MS) return 0;
    if (pause_ms < 0) pause_ms = attempts < 7 ? (int64_t)500 << (attempts - 1) : (int64_t)VP_IMPL_SERVER_PAUSE_MAX_MS;
    vp_impl_server_land(flight);
    flight->exchange->state = VP_EXCHANGE_WAITING;
    vp_impl_server_push(flight, vp_clock_ns() + pause_ms * 1000000);
    return 1;
}
/* Returns the system's reason if it lacks a descriptor, which libcurl does not report. For a file of certificates, its
 * socket was open at the same time. */
static const char *vp_impl_server_no_descriptors(int curl_code) {
    const int first = dup(2), second = first >= 0 && curl_code == VP_IMPL_CURLE_CACERT_BADFILE ? dup(2) : first,
              code = errno;
    if (second >= 0 && second != first) close(second);
    if (first >= 0) close(first);
    return second < 0 && (code == EMFILE || code == ENFILE) ? strerror(code) : NULL;
}
static void vp_impl_server_curl_failed(vp_impl_flight *flight, int code) {
    const char *lacks = flight->exchange->sent_ns ? NULL : vp_impl_server_no_descriptors(code);
    const char *text = lacks                   ? lacks
                       : flight->curl_error[0] ? flight->curl_error
                                               : flight->server->curl.curl_easy_strerror(code);
    vp_result result = VP_ERR_DEVICE;
    const int is_safe = code == VP_IMPL_CURLE_COULDNT_CONNECT || code == VP_IMPL_CURLE_GOT_NOTHING
        || code == VP_IMPL_CURLE_SEND_ERROR || code == VP_IMPL_CURLE_RECV_ERROR || code == VP_IMPL_CURLE_PARTIAL_FILE;
    if (is_safe && !lacks && vp_impl_server_retry(flight)) return;
    if (code == VP_IMPL_CURLE_OUT_OF_MEMORY) result = VP_ERR_MEMORY;
    /* up to libcurl 8.6 an overlong header line is reported as out of memory */
    if ((code == VP_IMPL_CURLE_TOO_LARGE || code == VP_IMPL_CURLE_OUT_OF_MEMORY) && flight->exchange->sent_ns != 0
        && !flight->headers_ended) {
        result = VP_ERR_FORMAT;
        text = code == VP_IMPL_CURLE_TOO_LARGE ? "the server sent a header line that is too long"
                                               : "the server sent a header line that is too long, or memory ran out";
    }
    if (code == VP_IMPL_CURLE_UNSUPPORTED_PROTOCOL || code == VP_IMPL_CURLE_WEIRD_SERVER_REPLY
        || code == VP_IMPL_CURLE_BAD_CONTENT_ENCODING) result = VP_ERR_FORMAT;
    vp_impl_server_fail(flight, result, text);
}
/* The target of a Location header: the host, or a phrase for the same server. */
static void vp_impl_server_target(const char *location, char *out, size_t capacity) {
    const char *host = strstr(location, "//");
    char text[160];
    if (!host || (host != location && host[-1] != ':')) {
        vp_text_copy(out, capacity, "another path of the same server");
        return;
    }
    host += 2;
    vp_impl_server_copy(text, sizeof text, host, strcspn(host, "/?#"));
    /* text before an @ may be a secret */
    vp_text_copy(out, capacity, strrchr(text, '@') ? strrchr(text, '@') + 1 : text);
}
static void vp_impl_server_refused(vp_impl_flight *flight) {
    const int status = flight->status;
    char words[4096] = "", text[600] = "", pause[80] = "";
    if ((status == 429 || (status >= 502 && status <= 504)) && vp_impl_server_retry(flight)) return;
    if (status < 400) {
        vp_impl_server_scrub(flight->server, flight->location, strlen(flight->location));
        vp_impl_server_target(flight->location, words, 160);
        vp_impl_server_scrub(flight->server, words, strlen(words)); /* part of a URL, with a separate end */
        snprintf(text, sizeof text, "HTTP %d: the server redirects to %.160s, and redirects are not followed: use that"
                 " URL", status, words);
    } else {
        flight->body_bytes = vp_impl_server_scrub(flight->server, flight->body, flight->body_bytes);
        if (flight->body) vp_chat_failure(flight->body, flight->body_bytes, words, sizeof words);
        vp_impl_server_scrub_words(flight->server, words);
        if (words[0] == '<') snprintf(words, sizeof words, "a web page, not JSON"); /* of a proxy, or of no API */
        if (flight->pause_ms > VP_IMPL_SERVER_PAUSE_MAX_MS)
            snprintf(pause, sizeof pause, " (it requests a pause of %lld s)", (long long)(flight->pause_ms / 1000));
        snprintf(text, sizeof text, "HTTP %d%s%.300s%s", status, words[0] ? ": " : "", words, pause);
    }
    vp_impl_server_fail(flight, VP_ERR_DEVICE, text);
}
/* Ends an exchange with the error that the server reported inside the answer, regardless of the connection's state.
 * Returns 0 if there is no such error. */
static int vp_impl_server_reported(vp_impl_flight *flight) {
    char text[400];
    if (!flight->exchange->reply.failure) return 0;
    vp_impl_server_scrub_words(flight->server, flight->exchange->reply.failure);
    snprintf(text, sizeof text, "%s%.300s",
             strncmp(flight->exchange->reply.failure, "the answer is empty", 19) ? "the server reports an error: " : "",
             flight->exchange->reply.failure);
    vp_impl_server_fail(flight, VP_ERR_DEVICE, text);
    return 1;
}
/* An attempt ended with this CURLcode. */
static void vp_impl_server_ended(vp_impl_flight *flight, int code) {
    vp_exchange *exchange = flight->exchange;
    long connects = 0;
    exchange->end_ns = vp_clock_ns();
    flight->server->curl.curl_easy_getinfo(flight->easy, VP_IMPL_CURLINFO_NUM_CONNECTS, &connects);
    exchange->is_new_connection = connects > 0;
    if (vp_impl_server_reported(flight)) return;
    if (flight->broken.code != VP_OK) {
        vp_impl_server_fail(flight, flight->broken.code, flight->broken.text);
    } else if (code != 0 && !flight->is_enough) {
        vp_impl_server_curl_failed(flight, code);
    } else if (flight->get_url) {
        vp_impl_server_finish(flight);
    } else if (flight->status >= 300) {
        vp_impl_server_refused(flight);
    } else if (!flight->has_reply) {
        vp_impl_server_fail(flight, VP_ERR_FORMAT, "the server's answer is empty");
    } else if (vp_chat_reply_end(&exchange->reply, &flight->broken) != VP_OK) {
        vp_impl_server_fail(flight, flight->broken.code, flight->broken.text);
    } else if (!vp_impl_server_reported(flight)) {
        vp_impl_server_finish(flight);
    }
}
static void vp_impl_server_collect(vp_server *server) {
    vp_impl_curl_message *message;
    int left;
    while ((message = server->curl.curl_multi_info_read(server->multi, &left)) != NULL) {
        char *flight = NULL;
        if (message->kind != VP_IMPL_CURLMSG_DONE) continue;
        server->curl.curl_easy_getinfo(message->easy, VP_IMPL_CURLINFO_PRIVATE, &flight);
        vp_impl_server_ended((vp_impl_flight *)(void *)flight, message->data.result);
    }
}

/* ---- the loop */
static int64_t vp_impl_server_deadline(const vp_impl_flight *flight) {
    const vp_server_options *options = &flight->server->options;
    const int64_t idle = flight->heard_ns + (int64_t)options->idle_timeout_ms * 1000000,
                  total = flight->exchange->start_ns + (int64_t)options->total_timeout_ms * 1000000;
    return idle < total ? idle : total;
}
static vp_chat_usage vp_impl_server_no_usage(void) {
    const vp_chat_usage none = {-1, -1, -1, -1, -1};
    return none;
}
static void vp_impl_server_launch(vp_impl_flight *flight) {
    vp_server *server = flight->server;
    vp_exchange *exchange = flight->exchange;
    int (*const set)(void *, int, ...) = server->curl.curl_easy_setopt;
    int failed = 0;
    /* A handle counts reused connections that turn out to be dead, and gives up at the sixth in its lifetime. This
     * resets the count for each request. */
    server->curl.curl_easy_reset(flight->easy);
    failed |= !vp_impl_server_configure(flight);
    vp_chat_reply_free(&exchange->reply);
    exchange->reply.usage = vp_impl_server_no_usage();
    exchange->sent_ns = exchange->uploaded_ns = exchange->headers_ns = exchange->end_ns = 0;
    exchange->http_status = 0;
    exchange->attempts++;
    flight->status = flight->headers_ended = flight->has_reply = flight->is_enough = 0;
    flight->header_bytes = flight->body_bytes = 0;
    flight->answer_bytes = 0;
    flight->pause_ms = -1;
    flight->content_type[0] = flight->location[0] = flight->curl_error[0] = 0;
    memset(&flight->broken, 0, sizeof flight->broken);
    failed |= set(flight->easy, VP_IMPL_CURLOPT_URL, flight->get_url ? flight->get_url : server->post_url);
    failed |=
        set(flight->easy, VP_IMPL_CURLOPT_HTTPHEADER, flight->get_url ? server->get_headers : server->post_headers);
    if (flight->get_url) {
        failed |= set(flight->easy, VP_IMPL_CURLOPT_HTTPGET, 1L);
    } else {
        failed |= set(flight->easy, VP_IMPL_CURLOPT_POST, 1L);
        failed |= set(flight->easy, VP_IMPL_CURLOPT_POSTFIELDSIZE_LARGE, (int64_t)exchange->body_bytes);
        failed |= set(flight->easy, VP_IMPL_CURLOPT_POSTFIELDS, exchange->body);
    }
    flight->heard_ns = exchange->start_ns = vp_clock_ns();
    if (failed || server->curl.curl_multi_add_handle(server->multi, flight->easy) != 0) {
        vp_impl_server_fail(flight, VP_ERR_DEVICE, "libcurl rejected the request");
        return;
    }
    flight->is_flying = 1;
    vp_impl_server_push(flight, vp_impl_server_deadline(flight));
}
/* Sends due requests, and ends those that timed out. A deadline moves with each byte received; it is computed again
 * when the old one is reached. */
static void vp_impl_server_run_due(vp_server *server, int64_t now) {
    vp_impl_flight *flight;
    while ((flight = vp_impl_server_next(server)) != NULL && flight->at_ns <= now) {
        const vp_chat_reply *reply = &flight->exchange->reply;
        char text[160];
        flight->is_waiting = 0;
        if (!flight->is_flying) {
            vp_impl_server_launch(flight);
            continue;
        }
        if (vp_impl_server_deadline(flight) > now) {
            vp_impl_server_push(flight, vp_impl_server_deadline(flight));
            continue;
        }
        int is_total = now - flight->exchange->start_ns >= (int64_t)server->options.total_timeout_ms * 1000000;
        snprintf(text, sizeof text, is_total ? "the answer is incomplete after %.3f s" : "no byte arrived for %.3f s",
                 (is_total ? server->options.total_timeout_ms : server->options.idle_timeout_ms) / 1000.0);
        if (reply->piece_count)
            snprintf(text + strlen(text), sizeof text - strlen(text), "; %zu piece%s came, the last after %.3f s",
                     reply->piece_count, reply->piece_count == 1 ? "" : "s",
                     (double)(reply->pieces[reply->piece_count - 1].at_ns - flight->exchange->start_ns) / 1e9);
        flight->exchange->end_ns = now;
        if (!vp_impl_server_reported(flight)) vp_impl_server_fail(flight, VP_ERR_DEVICE, text);
    }
}
static vp_result vp_impl_server_act(vp_server *server, int socket, int events, vp_error *error) {
    int running;
    const int code = server->curl.curl_multi_socket_action(server->multi, socket, events, &running);
    vp_impl_server_collect(server);
    if (code != 0) return vp_error_set(error, VP_ERR_DEVICE, -1, "libcurl", server->curl.curl_multi_strerror(code));
    return VP_OK;
}
static vp_result vp_impl_server_wait_failed(const char *call, vp_error *error) {
    return errno == EINTR ? vp_error_set(error, VP_ERR_INTERRUPTED, -1, "server", "a signal arrived")
                          : vp_error_set(error, VP_ERR_DEVICE, -1, call, strerror(errno));
}
/* Sleeps until a socket is ready or until `until_ns` (0: no limit). */
#if defined(__linux__)
static vp_result vp_impl_server_wait(vp_server *server, int64_t until_ns, vp_error *error) {
    struct epoll_event events[VP_IMPL_SERVER_EVENTS];
    const int64_t now = vp_clock_ns();
    const int is_due = until_ns != 0 && until_ns <= now;
    vp_result result = VP_OK;
    int count, i;
    if (!is_due && until_ns != server->armed_ns) {
        struct itimerspec alarm = {0};
        const int64_t wait = until_ns ? until_ns - now : 0; /* 0: no timer */
        alarm.it_value.tv_sec = (time_t)(wait / 1000000000);
        alarm.it_value.tv_nsec = (long)(wait % 1000000000);
        if (timerfd_settime(server->timer, 0, &alarm, NULL) != 0)
            return vp_error_set(error, VP_ERR_DEVICE, -1, "timerfd_settime", strerror(errno));
        server->armed_ns = until_ns;
    }
    count = epoll_wait(server->poll, events, VP_IMPL_SERVER_EVENTS, is_due ? 0 : -1);
    if (count < 0) return vp_impl_server_wait_failed("epoll_wait", error);
    for (i = 0; i < count && result == VP_OK; i++) {
        const uint32_t what = events[i].events;
        uint64_t expirations;
        if (events[i].data.fd == server->timer) {
            server->armed_ns = 0;
            if (read(server->timer, &expirations, sizeof expirations) < 0) continue; /* the timer was rearmed */
        } else {
            result = vp_impl_server_act(server, events[i].data.fd,
                                        (what & EPOLLIN ? VP_IMPL_CURL_CSELECT_IN : 0)
                                        | (what & EPOLLOUT ? VP_IMPL_CURL_CSELECT_OUT : 0)
                                        | (what & (EPOLLERR | EPOLLHUP) ? VP_IMPL_CURL_CSELECT_ERR : 0), error);
        }
    }
    return result;
}
#else
static vp_result vp_impl_server_wait(vp_server *server, int64_t until_ns, vp_error *error) {
    struct kevent events[VP_IMPL_SERVER_EVENTS];
    const int64_t now = vp_clock_ns(), wait = until_ns > now ? until_ns - now : 0;
    const struct timespec limit = {(time_t)(wait / 1000000000), (long)(wait % 1000000000)};
    const int count = kevent(server->poll, NULL, 0, events, VP_IMPL_SERVER_EVENTS, until_ns ? &limit : NULL);
    vp_result result = VP_OK;
    if (count < 0) return vp_impl_server_wait_failed("kevent", error);
    for (int i = 0; i < count && result == VP_OK; i++) {
        const int ready = events[i].filter == EVFILT_READ ? VP_IMPL_CURL_CSELECT_IN : VP_IMPL_CURL_CSELECT_OUT;
        const int failed = events[i].flags & EV_ERROR ? VP_IMPL_CURL_CSELECT_ERR : 0;
        result = vp_impl_server_act(server, (int)events[i].ident, ready | failed, error);
    }
    return result;
}
#endif
/* Works until `wanted` (NULL: any exchange) is finished, or until until_ns. Without a limit, it also returns when there
 * is no more work. */
static vp_result vp_impl_server_work(vp_server *server, const vp_exchange *wanted, int64_t until_ns, vp_error *error) {
    vp_result result = VP_OK;
    int has_waited = 0;
    while (result == VP_OK) {
        const int64_t now = vp_clock_ns();
        int64_t next = until_ns;
        vp_impl_server_run_due(server, now);
        if (server->curl_at_ns != 0 && server->curl_at_ns <= vp_clock_ns()) {
            server->curl_at_ns = 0;
            result = vp_impl_server_act(server, VP_IMPL_CURL_SOCKET_TIMEOUT, 0, error);
            if (result != VP_OK) return result;
        }
        if (wanted ? wanted->state >= VP_EXCHANGE_DONE : server->first_done != NULL) return VP_OK;
        if ((server->active_count == 0 && until_ns == 0) || (has_waited && until_ns != 0 && until_ns <= now))
            return VP_OK;
        const vp_impl_flight *due = vp_impl_server_next(server);
        if (due && (next == 0 || due->at_ns < next)) next = due->at_ns;
        if (server->curl_at_ns != 0 && (next == 0 || server->curl_at_ns < next)) next = server->curl_at_ns;
        result = vp_impl_server_wait(server, next, error);
        has_waited = 1;
    }
    return result;
}
/* Removes the first finished flight, or that of this exchange, from the queue. */
static vp_impl_flight *vp_impl_server_take(vp_server *server, const vp_exchange *exchange) {
    vp_impl_flight *flight = server->first_done, *before = NULL;
    while (flight && exchange && flight->exchange != exchange) {
        before = flight;
        flight = flight->next;
    }
    if (!flight) return NULL;
    if (before) before->next = flight->next;
    else server->first_done = flight->next;
    if (server->last_done == flight) server->last_done = before;
    return flight;
}
static vp_result vp_impl_server_begin(vp_server *server, vp_exchange *exchange, char *get_url, vp_error *error) {
    if (exchange->state != VP_EXCHANGE_NEW)
        return vp_error_set(error, VP_ERR_STATE, -1, "exchange", "the exchange was already started");
    vp_impl_flight *flight = vp_impl_server_flight(server);
    if (!flight) return vp_error_set(error, VP_ERR_MEMORY, -1, "server", "not enough memory for a request");
    flight->exchange = exchange;
    flight->get_url = get_url;
    exchange->state = VP_EXCHANGE_WAITING;
    exchange->attempts = 0;
    memset(&exchange->error, 0, sizeof exchange->error);
    memset(&exchange->reply, 0, sizeof exchange->reply);
    server->active_count++;
    vp_impl_server_push(flight, exchange->scheduled_ns);
    return VP_OK;
}
VP_API vp_result vp_server_start(vp_server *server, vp_exchange *exchange, vp_error *error) {
    return vp_impl_server_begin(server, exchange, NULL, error);
}
VP_API vp_result vp_server_step(vp_server *server, int64_t until_ns, vp_exchange **finished, vp_error *error) {
    const vp_result result = vp_impl_server_work(server, NULL, until_ns, error);
    vp_impl_flight *flight = result == VP_OK ? vp_impl_server_take(server, NULL) : NULL;
    *finished = flight ? flight->exchange : NULL;
    if (flight) vp_impl_server_release(flight);
    return result;
}
/* Waits for one exchange; *body, if not NULL, receives the body of a GET. */
static vp_result vp_impl_server_finish_one(vp_server *server, vp_exchange *exchange, char **body, size_t *bytes,
                                           vp_error *error) {
    vp_impl_flight *flight;
    vp_error why = {0};
    vp_result result;
    do result = vp_impl_server_work(server, exchange, 0, &why);
    while (result == VP_ERR_INTERRUPTED && server->options.stop && !*server->options.stop);
    if (result != VP_OK) {
        for (size_t i = 0; i < server->flight_count; i++)
            if (server->flights[i]->exchange == exchange && exchange->state < VP_EXCHANGE_DONE) {
                exchange->error = why;
                vp_impl_server_finish(server->flights[i]);
            }
    }
    flight = vp_impl_server_take(server, exchange);
    if (body && flight->body) {
        *bytes = vp_impl_server_scrub(server, flight->body, flight->body_bytes);
        *body = flight->body;
        flight->body = NULL;
    }
    vp_impl_server_release(flight);
    if (exchange->result != VP_OK && error) *error = exchange->error;
    return exchange->result;
}
VP_API vp_result vp_server_ask(vp_server *server, vp_exchange *exchange, vp_error *error) {
    const vp_result result = vp_impl_server_begin(server, exchange, NULL, error);
    return result == VP_OK ? vp_impl_server_finish_one(server, exchange, NULL, NULL, error) : result;
}
VP_API vp_result vp_server_get(vp_server *server, const char *path, int *status, char **text, size_t *bytes,
                               vp_error *error) {
    vp_exchange exchange = {0};
    const char *at;
    char *body = NULL, *url;
    size_t body_bytes = 0;
    vp_result result;
    for (at = path; *at > ' ' && *at < 0x7f; at++) {}
    if (*path != '/' || *at)
        return vp_error_set(error, VP_ERR_RANGE, -1, "path",
                            "expected a path that begins with / and contains no blanks");
    url = vp_impl_server_join(server->url, path);
    if (!url) return vp_error_set(error, VP_ERR_MEMORY, -1, "server", "not enough memory for a request");
    if ((result = vp_impl_server_begin(server, &exchange, url, error)) != VP_OK) {
        VP_FREE(url);
        return result;
    }
    result = vp_impl_server_finish_one(server, &exchange, &body, &body_bytes, error);
    if (result == VP_OK && exchange.http_status < 400 && !body) {
        body = (char *)VP_CALLOC(1, 1);
        if (!body) result = vp_error_set(error, VP_ERR_MEMORY, -1, "server", "not enough memory for the answer");
    }
    if (result == VP_OK) *status = exchange.http_status;
    if (result == VP_OK && exchange.http_status < 400) {
        *text = body;
        *bytes = body_bytes;
    } else {
        VP_FREE(body);
    }
    return result;
}
static void vp_impl_server_free_list(vp_server *server, vp_impl_curl_list *list) {
    vp_impl_curl_list *line;
    for (line = list; line; line = line->next) vp_impl_server_wipe(line->data);
    if (list) server->curl.curl_slist_free_all(list);
}
VP_API void vp_server_close(vp_server *server) {
    if (!server) return;
    for (size_t i = 0; i < server->flight_count; i++) {
        vp_impl_flight *flight = server->flights[i];
        vp_impl_server_land(flight);
        if (flight->exchange && flight->exchange->state < VP_EXCHANGE_DONE) {
            flight->exchange->state = VP_EXCHANGE_FAILED;
            flight->exchange->result = vp_error_set(&flight->exchange->error, VP_ERR_INTERRUPTED, -1, server->url,
                                                    "the request was aborted");
        }
        server->curl.curl_easy_cleanup(flight->easy);
        VP_FREE(flight->get_url);
        VP_FREE(flight->body);
        VP_FREE(flight);
    }
    if (server->multi) server->curl.curl_multi_cleanup(server->multi);
    vp_impl_server_free_list(server, server->get_headers);
    vp_impl_server_free_list(server, server->post_headers);
    if (server->is_global) server->curl.curl_global_cleanup();
    if (server->poll >= 0) close(server->poll);
    if (server->timer >= 0) close(server->timer);
    vp_impl_server_wipe(server->api_key);
    VP_FREE(server->api_key);
    VP_FREE(server->ca_file);
    VP_FREE(server->url);
    VP_FREE(server->post_url);
    VP_FREE(server->flights);
    VP_FREE(server);
}
#else /* without epoll and kqueue, a server cannot be opened, so the other functions are never used */
VP_API vp_result vp_server_open(const vp_server_options *options, vp_server **server, vp_error *error) {
    (void)options, (void)server;
    return vp_error_set(error, VP_ERR_UNSUPPORTED, -1, "server", "requests to servers work only on Linux and macOS");
}
VP_API void vp_server_close(vp_server *server) { (void)server; }
VP_API const char *vp_server_url(const vp_server *server) { return (void)server, ""; }
VP_API const char *vp_server_library(const vp_server *server) { return (void)server, ""; }
VP_API vp_result vp_server_start(vp_server *server, vp_exchange *exchange, vp_error *error) {
    (void)exchange;
    return vp_server_open(NULL, &server, error);
}
VP_API vp_result vp_server_step(vp_server *server, int64_t until_ns, vp_exchange **finished, vp_error *error) {
    (void)until_ns, (void)finished;
    return vp_server_open(NULL, &server, error);
}
VP_API vp_result vp_server_ask(vp_server *server, vp_exchange *exchange, vp_error *error) {
    return vp_server_start(server, exchange, error);
}
VP_API vp_result vp_server_get(vp_server *server, const char *path, int *status, char **text, size_t *bytes,
                               vp_error *error) {
    (void)path, (void)status, (void)text, (void)bytes;
    return vp_server_open(NULL, &server, error);
}
#endif
