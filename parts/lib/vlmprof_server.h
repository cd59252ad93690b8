/* vlmprof_server.h - v0.2.0 - timed requests to a chat server over HTTP - MIT licence
 *
 * Sends requests to a server with one of the APIs of vlmprof_chat.h and records time stamps: when a request was due,
 * when its first byte was sent, when the headers and each piece of the answer arrived. One thread keeps any number of
 * requests in flight. HTTP and TLS come from libcurl, opened at run time (libcurl.so.4, 7.62 or later): a program needs
 * it only to talk to a server, and needs no package to build.
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
    const char *url;         /* http:// or https://, with or without /v1 or an API's path; no user, no password */
    vp_chat_api api;
    const char *api_key;     /* sent as "Authorization: Bearer"; NULL: none. Never shown in a message */
    int32_t connect_timeout_ms;
    int32_t idle_timeout_ms; /* longest wait without a byte of the answer, including the wait for the first one */
    int32_t total_timeout_ms; /* of one attempt */
    int32_t max_retries;     /* of a request, see vp_exchange */
    size_t most_bytes;       /* of one answer */
    const char *ca_file;     /* trusted certificates, PEM; NULL: the system's */
    /* a caller's flag, a sig_atomic_t: a signal ends vp_server_ask and vp_server_get only if it is not 0, so a program
     * that was stopped and continued (SIGSTOP, Ctrl-Z) keeps waiting. NULL: each signal ends them */
    const volatile int *stop;
} vp_server_options;
/* 10 s to connect, 600 s idle, 3600 s in all, 2 retries, 64 MiB, no flag. */
VP_API vp_server_options vp_server_options_default(void);

/* Opens libcurl and checks the URL; connects to nothing.
 * out:     server  on success only; release with vp_server_close
 * returns: VP_OK; VP_ERR_UNSUPPORTED: no libcurl (error->text names the package), or a system without epoll;
 *          VP_ERR_FORMAT: the URL; VP_ERR_RANGE: an option; VP_ERR_MEMORY
 * rule:    TLS certificates are verified; no redirect is followed; no proxy is used for loopback addresses. HTTP/1.1:
 *          each request in flight has a connection of its own, and idle ones are kept. Compression is not requested
 *          (a compressor delays bytes, which would distort the stamps); a compressed answer is still read
 * threads: one server per thread */
VP_API vp_result vp_server_open(const vp_server_options *options, vp_server **server, vp_error *error);
/* Cancels requests in flight; their exchanges still belong to the caller. NULL is allowed. */
VP_API void vp_server_close(vp_server *server);
/* The base URL as used: without /v1 and without a slash at its end. */
VP_API const char *vp_server_url(const vp_server *server);
/* "libcurl/7.88.1 OpenSSL/3.0.19 ..." */
VP_API const char *vp_server_library(const vp_server *server);

typedef enum vp_exchange_state { VP_EXCHANGE_NEW, VP_EXCHANGE_WAITING, VP_EXCHANGE_SENT, VP_EXCHANGE_ANSWERED,
                                 VP_EXCHANGE_DONE, VP_EXCHANGE_FAILED } vp_exchange_state;

/* A request and its result. Times are from vp_clock_ns; 0: not reached.
 * Retries: an attempt is repeated if no byte of the answer's body arrived and the connection was refused, reset or
 * closed, or the status is 429, 502, 503 or 504. It waits 0.5, 1, 2 ... s or as Retry-After says; above 60 s there is
 * no retry. The times are those of the last attempt; attempts > 1 marks that.
 * Stamps: sent_ns is when the write returned that carried the first bytes of the request, after connecting and TLS, and
 * uploaded_ns the same of its last bytes; bytes still in the system's socket count as sent. The other
 * stamps are taken when libcurl delivers the bytes, right after reading them from the socket; bytes that
 * arrive together share one stamp.
 * The API key, if it has 8 characters or more, is replaced by [key] in everything that a server sends back, even if
 * escaped for JSON or a URL, broken by line ends, or cut to its first 8 or more characters at the end of a text. */
typedef struct vp_exchange {
    const char *body; size_t body_bytes; /* in; the caller's until it is DONE or FAILED */
    int64_t scheduled_ns;                /* in: do not send before; 0: at once */
    void *user;                          /* in: the caller's */
    vp_exchange_state state;
    int64_t start_ns;                    /* passed to libcurl: the start of TTFT and E2E */
    int64_t sent_ns, uploaded_ns;        /* first and last byte sent */
    int64_t headers_ns, end_ns;          /* headers read, body ended (or the attempt failed) */
    int is_new_connection;               /* 1 if it had to connect first */
    int http_status;                     /* 0: none */
    int32_t attempts;
    vp_chat_reply reply;
    vp_result result;                    /* of a DONE or FAILED one */
    vp_error error;                      /* the same with its reason */
} vp_exchange;
VP_API void vp_exchange_free(vp_exchange *exchange); /* the reply; body and user are the caller's */

/* Takes a NEW exchange; vp_server_step sends it when it is due.
 * returns: VP_OK; VP_ERR_STATE: it is not NEW; VP_ERR_MEMORY */
VP_API vp_result vp_server_start(vp_server *server, vp_exchange *exchange, vp_error *error);

/* Starts a GET next to the requests in flight: of a path below the base URL, or of a whole URL; only one of the same
 * server gets the API key. vp_server_step hands the exchange over; reply.text is the body, http_status its status.
 * returns: VP_OK; VP_ERR_RANGE: neither a path nor a URL; VP_ERR_STATE: it is not NEW; VP_ERR_MEMORY */
VP_API vp_result vp_server_start_get(vp_server *server, const char *path, vp_exchange *exchange, vp_error *error);

/* Works until an exchange is DONE or FAILED, or until the clock shows until_ns (0: no limit). If nothing is in
 * flight, it sleeps until then.
 * out:     finished  that exchange; NULL: until_ns came, or there is no limit and nothing is in flight
 * returns: VP_OK, also for a FAILED exchange; VP_ERR_INTERRUPTED: a signal came (the wait can go on); VP_ERR_MEMORY;
 *          VP_ERR_DEVICE: libcurl or the system failed as a whole
 * An exchange that failed has result VP_ERR_DEVICE: the server is away, rejects (its status and words are in the error)
 * or breaks off; VP_ERR_FORMAT: a malformed answer; VP_ERR_RANGE: an answer above most_bytes; VP_ERR_MEMORY */
VP_API vp_result vp_server_step(vp_server *server, int64_t until_ns, vp_exchange **finished, vp_error *error);

/* Sends one exchange and waits for its end.
 * returns: as its result; VP_ERR_INTERRUPTED: a signal came (options.stop), and the exchange was cancelled */
VP_API vp_result vp_server_ask(vp_server *server, vp_exchange *exchange, vp_error *error);

/* GET of a path below the base URL ("/v1/models", "/props"), for a server's information about itself.
 * out:     text, bytes  on success only; malloc'ed, followed by a NUL that is not counted
 *          status       of HTTP; text is set for a status below 400 only
 * returns: VP_OK; as vp_server_ask */
VP_API vp_result vp_server_get(vp_server *server, const char *path, int *status, char **text, size_t *bytes,
                               vp_error *error);

VP_EXTERN_C_END
#endif /* VLMPROF_SERVER_H */
