/* vlmprof_server.h - v0.2.0 - timed requests to a chat server over HTTP - MIT licence
 *
 * Sends requests to a server with one of the APIs of vlmprof_chat.h. It records when a request was due, when its first
 * byte was sent, and when the headers and each piece of the answer arrived. One thread keeps any number of requests in
 * flight. HTTP and TLS come from libcurl, opened at run time (libcurl.so.4, 7.62 or later). A program needs libcurl
 * only to talk to a server, not to build.
 *
 *     vp_server_options options = vp_server_options_default();
 *     vp_server *server;
 *     vp_exchange exchange = {body, body_bytes};
 *     options.url = "http://127.0.0.1:8000";
 *     if (vp_server_open(&options, &server, &error) == VP_OK && vp_server_ask(server, &exchange, &error) == VP_OK)
 *         printf("TTFT %.1f ms\n", (exchange.reply.first_ns - exchange.start_ns) / 1e6);
 *     vp_exchange_free(&exchange);
 *     vp_server_close(server); */
#ifndef VLMPROF_SERVER_H
#define VLMPROF_SERVER_H
#include "vlmprof_chat.h"

VP_EXTERN_C_BEGIN

typedef struct vp_server vp_server;

typedef struct vp_server_options {
    const char *url; /* http:// or https://, with or without /v1 or an API's path, but without user and
                              * password */
    vp_chat_api api;
    const char *api_key; /* sent as "Authorization: Bearer"; NULL: no key. Never appears in a message */
    int32_t connect_timeout_ms;
    int32_t idle_timeout_ms;  /* longest wait for a byte of the answer, including the first */
    int32_t total_timeout_ms; /* limit of one attempt */
    int32_t max_retries;      /* retries of a request, see vp_exchange */
    size_t most_bytes;        /* largest answer */
    const char *ca_file;      /* trusted certificates, PEM; NULL: the system's */
    /* the caller's flag, a sig_atomic_t: a signal ends vp_server_ask and vp_server_get only if the flag is not 0. So a
     * program that was stopped and continued (SIGSTOP, Ctrl-Z) keeps waiting. NULL: any signal ends them */
    const volatile int *stop;
} vp_server_options;
/* 10 s to connect, 600 s idle, 3600 s in total, 2 retries, 64 MiB, no flag. */
VP_API vp_server_options vp_server_options_default(void);

/* Opens libcurl and checks the URL, without connecting.
 * out:     server  on success only; release with vp_server_close
 * returns: VP_OK; VP_ERR_UNSUPPORTED: no libcurl (error->text names the package), or a system without epoll;
 *          VP_ERR_FORMAT: an invalid URL; VP_ERR_RANGE: an option out of range; VP_ERR_MEMORY
 * rule:    TLS certificates are verified; redirects are not followed; loopback addresses do not use a proxy. HTTP/1.1:
 *          each request in flight has its own connection, and idle connections are kept. Compression is not requested,
 *          because a compressor delays bytes and would distort the stamps; a compressed answer is still read
 * threads: one server per thread */
VP_API vp_result vp_server_open(const vp_server_options *options, vp_server **server, vp_error *error);
/* Cancels requests in flight; the caller still owns their exchanges. NULL is allowed. */
VP_API void vp_server_close(vp_server *server);
/* The base URL, without /v1 and without a trailing slash. */
VP_API const char *vp_server_url(const vp_server *server);
/* "libcurl/7.88.1 OpenSSL/3.0.19 ..." */
VP_API const char *vp_server_library(const vp_server *server);

typedef enum vp_exchange_state { VP_EXCHANGE_NEW, VP_EXCHANGE_WAITING, VP_EXCHANGE_SENT, VP_EXCHANGE_ANSWERED,
                                 VP_EXCHANGE_DONE, VP_EXCHANGE_FAILED } vp_exchange_state;

/* A request and its result. Times are from vp_clock_ns; 0: not reached. Retries: an attempt is repeated if no byte of
 * the answer's body arrived, and the connection was refused, reset or closed or the status is 429, 502, 503 or 504. The
 * wait is 0.5, 1, 2 ... s or the value of Retry-After; above 60 s there is no retry. With attempts > 1, the times are
 * those of the last attempt. Stamps: sent_ns is the time at which the write of the request's first bytes returned,
 * after connecting and TLS; uploaded_ns is the same for its last bytes. Bytes in the socket's buffer count as sent. The
 * other stamps are taken when libcurl delivers the bytes, right after reading them from the socket; bytes that arrive
 * together share a stamp. The API key, if it has 8 characters or more, is replaced by [key] in all texts from a server,
 * even if it is escaped for JSON or a URL, split by line ends, or cut to its first 8 or more characters at the end of a
 * text. */
typedef struct vp_exchange {
    const char *body; size_t body_bytes; /* in: must stay valid until the exchange is DONE or FAILED */
    int64_t scheduled_ns;                /* in: time before which it is not sent; 0: send immediately */
    void *user;                          /* in: the caller's */
    vp_exchange_state state;
    int64_t start_ns;             /* time of passing it to libcurl: the start of TTFT and E2E */
    int64_t sent_ns, uploaded_ns; /* first and last byte sent */
    int64_t headers_ns, end_ns;   /* headers read; body complete, or attempt failed */
    int is_new_connection;        /* 1 if a new connection was needed */
    int http_status;              /* 0: no response */
    int32_t attempts;
    vp_chat_reply reply;
    vp_result result; /* result when DONE or FAILED */
    vp_error error;   /* the same, with its reason */
} vp_exchange;
VP_API void vp_exchange_free(vp_exchange *exchange); /* frees the reply; body and user belong to the caller */

/* Queues a NEW exchange; vp_server_step sends it when it is due.
 * returns: VP_OK; VP_ERR_STATE: it is not NEW; VP_ERR_MEMORY */
VP_API vp_result vp_server_start(vp_server *server, vp_exchange *exchange, vp_error *error);

/* Works until an exchange is DONE or FAILED, or until the time until_ns (0: no limit). If nothing is in flight, it
 * sleeps until then.
 * out:     finished  that exchange; NULL: until_ns was reached, or there is no limit and nothing is in flight
 * returns: VP_OK, even for a FAILED exchange; VP_ERR_INTERRUPTED: a signal arrived (the wait can continue);
 *          VP_ERR_MEMORY; VP_ERR_DEVICE: libcurl or the system failed as a whole. The result of a FAILED exchange is
 *          VP_ERR_DEVICE: the server is unreachable, rejected the request (its status and message are in the error) or
 *          broke off; VP_ERR_FORMAT: a malformed answer; VP_ERR_RANGE: an answer above most_bytes; VP_ERR_MEMORY */
VP_API vp_result vp_server_step(vp_server *server, int64_t until_ns, vp_exchange **finished, vp_error *error);

/* Sends one exchange and waits for its completion.
 * returns: its result; VP_ERR_INTERRUPTED: a signal arrived (options.stop), and the exchange was cancelled */
VP_API vp_result vp_server_ask(vp_server *server, vp_exchange *exchange, vp_error *error);

/* Sends a GET of a path below the base URL ("/v1/models", "/props"), for a server's information about itself.
 * out:     text, bytes  on success only; malloc'ed, followed by an uncounted NUL
 *          status       HTTP status; text is set only for a status below 400
 * returns: VP_OK; VP_ERR_RANGE: not a path; otherwise as vp_server_ask */
VP_API vp_result vp_server_get(vp_server *server, const char *path, int *status, char **text, size_t *bytes,
                               vp_error *error);

VP_EXTERN_C_END
#endif /* VLMPROF_SERVER_H */
