/* endpoint.h: a chat server given by the user: its settings, its key, one request and its errors, and its own
 * description. Settings come in; finished exchanges, or an exit code after a line with the remedy, come out. */
#ifndef VLMPROF_CLI_ENDPOINT_H
#define VLMPROF_CLI_ENDPOINT_H
#include "base/memory.h"
#include "base/options.h"
#include "vlmprof_chat.h"
#include "vlmprof_families.h"
#include "vlmprof_server.h"

#define OPTION_ENDPOINT \
    {"endpoint", TEXT, "URL", NULL, 0, 0, NULL, \
     "URL of the server, with or without /v1 (vLLM, SGLang, llama.cpp, TGI, Ollama or a hosted one)", \
     .is_required = 1}
#define OPTION_ENDPOINT_MODEL \
    { "endpoint_model", TEXT, "NAME", NULL, 0, 0, NULL, "the server's name for the model (default: its only model)" }
#define ENDPOINT_API_FIRST(id, name, path, text) #name
#define ENDPOINT_API_NEXT(id, name, path, text) " " #name
#define ENDPOINT_API_TEXT(id, name, path, text) #name ": " text
#define ENDPOINT_API_TEXT_NEXT(id, name, path, text) "; " #name ": " text
/* struct endpoint_settings. */
#define OPTIONS_OF_CLIENT \
    {"endpoint_api", CHOICE, "API", "chat", 0, 0, VP_CHAT_APIS(ENDPOINT_API_FIRST, ENDPOINT_API_NEXT), \
     VP_CHAT_APIS(ENDPOINT_API_TEXT, ENDPOINT_API_TEXT_NEXT)}, \
    {"api_key_env", TEXT, "NAME", "OPENAI_API_KEY", 0, 0, NULL, \
     "environment variable with the server's API key, if it needs one"}, \
    {"api_key_file", TEXT, "FILE", NULL, 0, 0, NULL, "file whose first line is the API key", \
     .excludes = "api_key_env"}, \
    {"ca_file", TEXT, "FILE", NULL, 0, 0, NULL, "trusted CA certificates (PEM), for a server with a private CA"}, \
    {"timeout_s", COUNT, "S", "600", 1, 86400, NULL, "abandon a request after S seconds"}

struct endpoint {
    char *url, *model; /* the URL without /v1; model NULL: not chosen yet */
    vp_chat_api api;
    vp_server *server;
    char *key;             /* NULL if there is none */
    const char *key_place; /* source of the key, as a phrase for errors; "" without a key */
    struct text_list warnings;
    int is_away; /* 1 after it could not be reached */
};

/* How to talk to the server. */
struct endpoint_settings {
    vp_chat_api api;
    const char *key_variable, *key_file; /* the key's environment variable; its file, NULL if none */
    int needs_key;                       /* 1 if the variable must be set */
    const char *ca_file;                 /* NULL: the system's certificates */
    int32_t timeout_ms, max_retries;
};

/* Opens libcurl and reads the key. An https URL with a port is checked for plain HTTP, without the key; otherwise
 * nothing is sent. model may be NULL. Returns 0 or an exit code. In both cases the caller must call endpoint_close,
 * which wipes the key. */
int endpoint_open(struct endpoint_settings settings, const char *url, const char *model, struct endpoint *endpoint);
void endpoint_close(struct endpoint *endpoint);

/* Returns 1 if the server is on this machine. */
/* Returns 1 if no connection was possible: the address may be wrong, or the server down. */
int endpoint_is_down(const vp_exchange *exchange);
int endpoint_is_local(const struct endpoint *endpoint);

/* Sends one exchange and waits for its end. Returns 0, EXIT_INTERRUPTED without a message, or an exit code: 4 if the
 * server is unreachable, rejects the request or breaks the connection; 3 for an invalid answer. The message goes to
 * `reason`. */
int endpoint_try(struct endpoint *endpoint, vp_exchange *exchange, char *reason, size_t capacity);

/* Writes why an exchange failed, with the remedy. Returns its exit code. */
int endpoint_reason(struct endpoint *endpoint, const vp_exchange *exchange, char *reason, size_t capacity);

/* Without --endpoint_model, takes the server's only model and reports it, or complains with the names of all models.
 * Returns 0 or an exit code. */
int endpoint_choose_model(struct endpoint *endpoint);

/* Finds the model family by the server's names for its model: its own, and the paths or ids behind them. Returns NULL
 * and sets *name to NULL if there is none. Free *name. */
const vp_family_preset *endpoint_family(struct endpoint *endpoint, char **name);

/* The server's name and version, a malloc'ed line like "vLLM 0.32.0"; NULL if not reported. */
char *endpoint_words(struct endpoint *endpoint);

#endif
