/* endpoint.c: a chat server given by the user: its settings, its key, one request and its errors, and its own
 * description. */
#include "server/endpoint.h"

#include "base/console.h"
#include "base/json.h"
#include "vlmprof_file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_FILE_BYTES_MAX = 65536, NAMES_SHOWN = 20 };

/* ---- the key */
static void wipe(char *text) {
    for (volatile char *byte = text; byte && *byte; byte++) *byte = 0;
}
/* Keeps a key that is valid in a header. Returns 0 or an exit code. */
static int key_take(struct endpoint *endpoint, const char *key, size_t bytes, const char *place) {
    for (size_t i = 0; i < bytes; i++)
        if (key[i] <= ' ' || key[i] > '~')
            return complain(EXIT_INPUT, "%s: an API key cannot contain blanks, control characters or non-ASCII letters",
                            place);
    endpoint->key = copy_text(key, bytes);
    endpoint->key_place = place;
    return 0;
}
static int key_of_file(struct endpoint *endpoint, const char *path) {
    vp_error error = {VP_OK, -1, "", ""};
    struct stat status;
    char *text = NULL;
    size_t bytes = 0, length;
    vp_result result = vp_file_read(path, KEY_FILE_BYTES_MAX, &text, &bytes, &error);
    int code;
    if (result != VP_OK) return complain_result(exit_code_of(result), path, result, &error);
    length = strcspn(text, "\r\n");
    code = length ? key_take(endpoint, text, length, path) : complain(EXIT_INPUT, "%s: the first line is empty", path);
    wipe(text);
    free(text);
    if (!code && !stat(path, &status) && (status.st_mode & (S_IRWXG | S_IRWXO)))
        text_list_add(&endpoint->warnings, "%s: other users can read this API key: use chmod 600", path);
    return code;
}
/* Finds the key. No message repeats the name of the variable: it may be the key itself. */
static int key_find(const struct endpoint_settings *settings, struct endpoint *endpoint) {
    if (settings->key_file) return key_of_file(endpoint, settings->key_file);
    const char *key = getenv(settings->key_variable);
    if (settings->needs_key && (!key || !*key))
        return complain(EXIT_USAGE, "--api_key_env: there is no such environment variable (the option takes its name, "
                                    "never the key)");
    return key && *key ? key_take(endpoint, key, strlen(key), settings->key_variable) : 0;
}
int endpoint_is_local(const struct endpoint *endpoint) {
    static const char *const own[] = {"localhost", "[::1]"};
    const char *host = strstr(endpoint->url, "://") ? strstr(endpoint->url, "://") + 3 : endpoint->url;
    const size_t address_bytes = strspn(host, "0123456789.");
    if (!strncmp(host, "127.", 4) && strchr(":/", host[address_bytes])) return 1; /* strchr also finds the NUL */
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strncmp(host, own[i], strlen(own[i])) && strchr(":/", host[strlen(own[i])])) return 1;
    return 0;
}

/* Complains about a URL that the server library rejects, and suggests one with a scheme. Returns EXIT_USAGE. */
static int bad_url(const char *url, const char *reason) {
    const char *end = url + strcspn(url, "/");
    const struct endpoint named = {.url = (char *)url};
    if (strstr(url, "://") || strchr(url, '@') || url == end) return complain(EXIT_USAGE, "--endpoint: %s", reason);
    return complain(EXIT_USAGE, "--endpoint %.300s: %s; did you mean %s://%.300s?", url, reason,
                    endpoint_is_local(&named) || memchr(url, ':', (size_t)(end - url)) ? "http" : "https", url);
}

int endpoint_open(struct endpoint_settings settings, const char *url, const char *model, struct endpoint *endpoint) {
    vp_server_options server = vp_server_options_default();
    vp_error error = {VP_OK, -1, "", ""};
    int code;
    memset(endpoint, 0, sizeof *endpoint);
    endpoint->key_place = "";
    endpoint->api = settings.api;
    if ((code = key_find(&settings, endpoint)) != 0) return code;
    if (settings.ca_file && access(settings.ca_file, R_OK))
        return complain(EXIT_INPUT, "--ca_file %s: %s", settings.ca_file, strerror(errno));
    server.url = url;
    server.api = endpoint->api;
    server.api_key = endpoint->key;
    server.stop = &interrupted;
    server.ca_file = settings.ca_file;
    server.total_timeout_ms = server.idle_timeout_ms = settings.timeout_ms;
    server.max_retries = settings.max_retries;
    vp_result result = vp_server_open(&server, &endpoint->server, &error);
    if (result == VP_ERR_FORMAT) return bad_url(url, error.text);
    if (result != VP_OK) return complain_result(EXIT_DEVICE, NULL, result, &error);
    endpoint->url = copy_text(vp_server_url(endpoint->server), strlen(vp_server_url(endpoint->server)));
    if (model) endpoint->model = copy_text(model, strlen(model));
    if (endpoint->key && !strncmp(endpoint->url, "http://", 7) && !endpoint_is_local(endpoint))
        text_list_add(&endpoint->warnings, "%s: the API key from %s is sent unencrypted: use https", endpoint->url,
                      endpoint->key_place);
    return 0;
}
void endpoint_close(struct endpoint *endpoint) {
    vp_server_close(endpoint->server);
    wipe(endpoint->key);
    FREE_ALL(endpoint->key, endpoint->url, endpoint->model);
    text_list_free(&endpoint->warnings);
    memset(endpoint, 0, sizeof *endpoint);
}

/* ---- the server's description of itself */
static void key_advice(const struct endpoint *endpoint, char *text, size_t capacity) {
    if (endpoint->key) snprintf(text, capacity, "the API key was read from %.300s", endpoint->key_place);
    else snprintf(text, capacity, "no API key was sent: set OPENAI_API_KEY, or use --api_key_env or --api_key_file");
}
/* Reads JSON from the server. Returns 0 or an exit code with a line in `reason`. *text must outlive *parsed. */
static int endpoint_get(struct endpoint *endpoint, const char *path, struct parsed *parsed, char **text, char *reason,
                        size_t capacity) {
    vp_error error = {VP_OK, -1, "", ""};
    size_t bytes = 0;
    int status = 0;
    vp_result result = vp_server_get(endpoint->server, path, &status, text, &bytes, &error);
    if (result == VP_OK && !*text) {
        snprintf(reason, capacity, "%s%s: HTTP status %d%s%s%s", endpoint->url, path, status,
                 status == 404 ? ": is " : "", status == 404 ? endpoint->url : "",
                 status == 404 ? " the server's API (.../v1)?" : "");
        if (status != 401 && status != 403) return EXIT_DEVICE;
        endpoint->is_away = 1;
        snprintf(reason + strlen(reason), capacity - strlen(reason), ": rejected; ");
        key_advice(endpoint, reason + strlen(reason), capacity - strlen(reason));
        return EXIT_DEVICE;
    }
    if (result == VP_OK) result = parse_json(parsed, *text, bytes, &error);
    if (result == VP_OK) return 0;
    if (*text && (*text)[strspn(*text, " \t\r\n")] == '<') {
        snprintf(reason, capacity, "%s%s: answered with a web page, not JSON: is %s the server's API (.../v1)?",
                 endpoint->url, path, endpoint->url);
        endpoint->is_away = 1;
        return EXIT_DEVICE;
    }
    error_line(reason, capacity, result, &error);
    endpoint->is_away |= result == VP_ERR_MEMORY; /* no answer either */
    endpoint->is_away |= result == VP_ERR_DEVICE && !status;
    return exit_code_of(result);
}
static void models_add(const struct parsed *parsed, const char *list, const char *key, struct text_list *names) {
    const uint32_t array = vp_json_get(&parsed->json, 0, list);
    for (uint32_t i = 0; node_is(&parsed->json, array, VP_JSON_ARRAY) && i < parsed->json.nodes[array].count; i++) {
        const uint32_t item = vp_json_at(&parsed->json, array, i);
        char *name = node_is(&parsed->json, item, VP_JSON_OBJECT)
                         ? node_text(&parsed->json, vp_json_get(&parsed->json, item, key))
                         : NULL;
        if (name) hide_control_bytes(name); /* it must not look like another line */
        if (name) text_list_take(names, name);
    }
}
/* Gets the names of the server's models. Returns 0 or an exit code with a line in `reason`. */
static int endpoint_models(struct endpoint *endpoint, struct text_list *names, char *reason, size_t capacity) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    char *text = NULL;
    int code = endpoint_get(endpoint, "/v1/models", &parsed, &text, reason, capacity);
    if (!code && node_is(&parsed.json, 0, VP_JSON_OBJECT)) models_add(&parsed, "data", "id", names);
    FREE_ALL(text, parsed.nodes);
    return code;
}
const vp_family_preset *endpoint_family(struct endpoint *endpoint, char **name) {
    static const char *const keys[] = {"id", "root", "parent"}; /* vLLM's root is the path or id of the checkpoint */
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    const vp_family_preset *family = vp_family_find(endpoint->model);
    struct text_list names = {NULL, 0};
    char *text = NULL, reason[LINE_BYTES];
    text_list_copy(&names, endpoint->model);
    if (!family && !endpoint_get(endpoint, "/v1/models", &parsed, &text, reason, sizeof reason)
        && node_is(&parsed.json, 0, VP_JSON_OBJECT))
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) models_add(&parsed, "data", keys[i], &names);
    size_t at = 0;
    for (; at < names.count && (family = vp_family_find(names.items[at])) == NULL; at++) {
        const char *slash = strrchr(names.items[at], '/'); /* of a path, the last folder */
        if (slash && (family = vp_family_find(slash + 1)) != NULL) break;
    }
    *name = family ? copy_text(names.items[at], strlen(names.items[at])) : NULL;
    text_list_free(&names);
    FREE_ALL(text, parsed.nodes);
    return family;
}
/* Appends "WORDSa, b". */
static void names_text(const char *words, const struct text_list *names, struct text_buffer *out) {
    for (size_t i = 0; i < names->count && i < NAMES_SHOWN; i++)
        text_add_format(out, "%s%s", i ? ", " : words, names->items[i]);
    if (names->count > NAMES_SHOWN) text_add_string(out, " ...");
}
/* Appends "; its models: a, b" if they are known. */
static void models_text(struct endpoint *endpoint, struct text_buffer *out) {
    struct text_list names = {NULL, 0};
    char reason[LINE_BYTES];
    if (endpoint_models(endpoint, &names, reason, sizeof reason) == 0)
        names_text(out->bytes && out->data[out->bytes - 1] == '.' ? " Its models: " : "; its models: ", &names, out);
    text_list_free(&names);
}
/* Returns 1 if the address may be wrong, or the server down: not for errors of this system or of TLS. */
static int is_unreachable(const char *text) {
    return strstr(text, "onnect") && !strstr(text, "emory") && !strstr(text, "SSL");
}
int endpoint_is_down(const vp_exchange *exchange) {
    return exchange->result == VP_ERR_DEVICE && !exchange->http_status && is_unreachable(exchange->error.text);
}
/* The remedy for a request without an answer; "" if there is none. */
static const char *away_advice(const char *reason) {
    static const char *const plain[] = {"wrong version number", "packet length", "record layer", "TLS packet"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strstr(reason, plain[i])) return "; does the server speak http, not https?";
    return strstr(reason, "certificate") ? "; use --ca_file FILE with certificates to trust"
           : is_unreachable(reason)      ? "; is the server up at this address?" : "";
}
int endpoint_choose_model(struct endpoint *endpoint) {
    struct text_list names = {NULL, 0};
    struct text_buffer text = {NULL, 0, 0};
    char reason[LINE_BYTES];
    if (endpoint->model) return 0;
    int code = endpoint_models(endpoint, &names, reason, sizeof reason);
    names_text("", &names, &text);
    if (!code && names.count == 1) {
        endpoint->model = copy_text(names.items[0], strlen(names.items[0]));
        print_note("vlmprof: model: %.200s, the server's only model\n", names.items[0]);
    } else if (endpoint->is_away) code = complain(EXIT_DEVICE, "%.600s%s", reason, away_advice(reason));
    else if (code && code != EXIT_INTERRUPTED)
        code = complain(EXIT_USAGE, "%.600s If it is, give --endpoint_model NAME: it does not list its models", reason);
    else if (!code)
        code = complain(EXIT_USAGE, "--endpoint needs --endpoint_model NAME; %.200s has: %.500s", endpoint->url,
                        text.bytes ? text.data : "none");
    text_list_free(&names);
    free(text.data);
    return code;
}
char *endpoint_words(struct endpoint *endpoint) {
    /* path, the member with the version, and the start of the line */
    static const struct { const char *path, *key, *name; } places[] = {
        {"/version", "version", "vLLM"},   {"/props", "build_info", "llama.cpp"},
        {"/api/version", "version", "Ollama"}, {"/get_server_info", "version", "SGLang"},
        {"/info", "version", "TGI"}};
    char reason[LINE_BYTES], *words = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places && !words && !interrupted; i++) {
        struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
        struct text_buffer line = {NULL, 0, 0};
        char *text = NULL, *version = NULL;
        if (!endpoint_get(endpoint, places[i].path, &parsed, &text, reason, sizeof reason)
            && node_is(&parsed.json, 0, VP_JSON_OBJECT))
            version = node_text(&parsed.json, vp_json_get(&parsed.json, 0, places[i].key));
        if (version) {
            hide_control_bytes(version);
            text_add_format(&line, "%s %s", places[i].name, version);
            words = line.data;
        }
        FREE_ALL(version, text, parsed.nodes);
    }
    return words;
}

/* ---- one request */
/* Appends the remedy for a failure to its line. */
static void add_advice(struct endpoint *endpoint, const vp_exchange *exchange, struct text_buffer *line) {
    char text[LINE_BYTES] = "";
    const char *advice;
    const int is_page = strstr(exchange->error.text, "a web page, not JSON") && exchange->http_status < 500;
    if (is_page) snprintf(text, sizeof text, ": is %s the server's API (.../v1)?", endpoint->url);
    else switch (exchange->http_status) {
    case 0: case 400:
        if (exchange->result == VP_ERR_MEMORY || exchange->http_status) break;
        advice = away_advice(exchange->error.text);
        if (strstr(exchange->error.text, "reset") || strstr(exchange->error.text, "Empty "))
            advice = "; did the server crash (see its log), or does it expect https?";
        else if (!*advice && exchange->sent_ns)
            advice = "; the server accepted the connection: is it stuck, or is --timeout_s too short?";
        if (exchange->result == VP_ERR_DEVICE || strstr(advice, "--ca_file")) snprintf(text, sizeof text, "%s", advice);
        break;
    case 401: case 403:
        text_add_string(line, "; ");
        key_advice(endpoint, text, sizeof text);
        break;
    case 404:
        if (endpoint->api != VP_CHAT_COMPLETIONS)
            snprintf(text, sizeof text, "; does it support %s? most servers support --endpoint_api chat",
                     vp_chat_api_name(endpoint->api));
        else models_text(endpoint, line);
        break;
    case 413: snprintf(text, sizeof text, "; the image is too large for the server: try --resize"); break;
    default: break;
    }
    text_add_string(line, text);
}
int endpoint_reason(struct endpoint *endpoint, const vp_exchange *exchange, char *reason, size_t capacity) {
    struct text_buffer line = {NULL, 0, 0};
    const vp_result result = exchange->result;
    char text[LINE_BYTES];
    error_line(text, sizeof text, result, &exchange->error);
    if (!strstr(text, endpoint->url)) {
        text_add_string(&line, endpoint->url);
        text_add_string(&line, ": ");
    }
    text_add_string(&line, text);
    add_advice(endpoint, exchange, &line);
    snprintf(reason, capacity, "%s", line.data);
    free(line.data);
    return result == VP_ERR_MEMORY ? EXIT_DEVICE : result == VP_ERR_RANGE ? EXIT_INPUT : exit_code_of(result);
}
int endpoint_try(struct endpoint *endpoint, vp_exchange *exchange, char *reason, size_t capacity) {
    vp_error error = {VP_OK, -1, "", ""};
    const vp_result result = vp_server_ask(endpoint->server, exchange, &error);
    if (result == VP_OK) return 0;
    if (result == VP_ERR_INTERRUPTED) return EXIT_INTERRUPTED;
    exchange->result = result; /* also if it was not sent at all */
    exchange->error = error;
    return endpoint_reason(endpoint, exchange, reason, capacity);
}
