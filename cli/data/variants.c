/* variants.c: the knobs of a sweep of servers other than images: endpoints, their models, members of the request. */
#include "data/variants.h"

#include "base/console.h"

#include <ctype.h>

enum { NAME_BYTES_MAX = 60 }; /* limit of the readable part of a file name */
static const double RATE_LEAST = 0.001, RATE_MOST = 100000; /* requests/s */

void variants_free(struct variants *variants) {
    for (size_t i = 0; i < variants->count; i++) {
        knob_values_free(&variants->items[i].values);
        FREE_ALL(variants->items[i].knobs, variants->items[i].words, variants->items[i].family);
    }
    free(variants->items);
    knobs_free(&variants->knobs);
    knobs_free(&variants->server_knobs);
    text_list_free(&variants->models);
}

/* The base of a URL. A URL with a user or a password is rejected, because it would be in every file. */
static char *endpoint_base(const char *url) {
    const char *host = strstr(url, "://"), *slash;
    host = host ? host + 3 : url;
    slash = strchr(host, '/');
    if (memchr(host, '@', slash ? (size_t)(slash - host) : strlen(host))) return NULL;
    return copy_text(url, vp_chat_base_bytes(url));
}
/* Applies the request's settings to the family's rule: a knob whose path ends in one of the family's keys sets the key.
 * Keys from the command line are set first. Returns 0 or an exit code. */
static int variant_family(const struct variant_settings *settings, struct variant *variant) {
    if (!settings->family) return 0;
    variant->family = zeroed(1, sizeof *variant->family);
    int code = family_by_name("family", settings->family, variant->family);
    if (!code) code = family_set_keys(settings->keys, variant->family, 1);
    for (size_t i = 0; i < variant->knob_count && !code; i++) {
        const char *path = variant->knobs[i].path, *key = strrchr(path, '.') ? strrchr(path, '.') + 1 : path;
        vp_error error = {VP_OK, -1, "", ""};
        if (vp_family_set(variant->family, key, variant->knobs[i].value, &error) == VP_ERR_RANGE)
            complain(0, "--request_knob %s=%s: %s's rule does not support it and counts without it: %s", path,
                     variant->knobs[i].value, variant->family->preset->name, error.text);
    }
    return code;
}
/* Writes the members of the request that the variant sets, as a JSON object on one line. */
static void set_request(struct variant *variant) {
    struct text_buffer text = {NULL, 0, 0};
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, &text, 0);
    vp_json_begin_object(&writer);
    for (size_t i = 0; i < variant->knob_count; i++) {
        struct parsed value = {{NULL, NULL, 0}, NULL, 0};
        vp_json_key(&writer, variant->knobs[i].path);
        if (parse_json(&value, variant->knobs[i].value, strlen(variant->knobs[i].value), NULL) == VP_OK)
            json_node(&writer, &value.json, 0);
        else vp_json_null(&writer);
        free(value.nodes);
    }
    vp_json_end_object(&writer);
    knob_set_text(&variant->values, KNOB_REQUEST, vp_json_finish(&writer) == VP_OK ? text.data : "{}");
    free(text.data);
}
/* Sets the load of a variant. Rates are written in the shortest form, so that 4 and 4.0 are equal. Returns 0 or
 * EXIT_USAGE. */
static int set_load(const struct variant_settings *settings, size_t at, struct knob_values *values) {
    double rate = 0;
    char digits[27];
    if (settings->concurrency) knob_set_text(values, KNOB_CONCURRENCY, settings->concurrency->items[at]);
    else if (settings->launch.command && !settings->rates) knob_set_text(values, KNOB_CONCURRENCY, "1");
    if (!settings->rates) return 0;
    const char *text = settings->rates->items[at];
    if (vp_number_parse(text, strlen(text), &rate) != VP_OK || !(rate >= RATE_LEAST && rate <= RATE_MOST))
        return complain(EXIT_USAGE, "--request_rate_list %.60s: expected requests/s from %g to %g", text, RATE_LEAST,
                        RATE_MOST);
    const size_t bytes = vp_number_format(rate, digits);
    if (bytes > 2 && !strcmp(digits + bytes - 2, ".0")) digits[bytes - 2] = 0;
    for (size_t i = 0; i < at; i++) {
        double other = 0;
        if (vp_number_parse(settings->rates->items[i], strlen(settings->rates->items[i]), &other) == VP_OK
            && other == rate)
            return complain(EXIT_USAGE, "--request_rate_list: %s is listed twice", digits);
    }
    knob_set_text(values, KNOB_RATE, digits);
    return 0;
}
void knobs_set_own(const struct request_knobs *knobs, size_t combination, struct knob_values *out) {
    vp_chat_knob *values = resize(NULL, knobs->count + 1, sizeof *values);
    knobs_combination(knobs, combination, values);
    for (size_t i = 0; i < knobs->count; i++) knob_set_text(out, knob_own(values[i].path, NULL), values[i].value);
    free(values);
}
int own_knobs_add(const struct variant_settings *settings, struct request_knobs *knobs) {
    int code = 0;
    knobs->option = "knob";
    if (settings->server_knobs) code = knobs_add_all(settings->server_knobs, knobs);
    return code ? code : launch_check(&settings->launch, knobs);
}
static int add_variant(const struct variant_settings *settings, struct variants *variants, const char *url,
                       const char *model, size_t combination, size_t load, size_t server) {
    struct text_buffer words = {NULL, 0, 0};
    struct variant *variant = &variants->items[variants->count++];
    char *base = endpoint_base(url);
    memset(variant, 0, sizeof *variant);
    knob_set_text(&variant->values, KNOB_ENDPOINT, base);
    knob_set_text(&variant->values, KNOB_ENDPOINT_MODEL, model);
    free(base);
    variant->endpoint = knob_text(&variant->values, KNOB_ENDPOINT);
    variant->model = knob_text(&variant->values, KNOB_ENDPOINT_MODEL);
    if (!variant->endpoint)
        return complain(EXIT_USAGE, "--endpoint: a URL must not contain a user name or password, because every result "
                                    "would contain it; give a key with --api_key_env or --api_key_file");
    variant->knob_count = variants->knobs.count;
    variant->knobs = resize(NULL, variants->knobs.count + 1, sizeof *variant->knobs);
    knobs_combination(&variants->knobs, combination, variant->knobs);
    variant->text_knob_count = knobs_image_last(variant->knobs, variant->knob_count);
    set_request(variant);
    knobs_words(&variants->knobs, combination, &words);
    if (words.bytes && variants->server_knobs.count && settings->launch.command) text_add_string(&words, " ");
    if (settings->launch.command) knobs_words(&variants->server_knobs, server, &words);
    variant->words = words.data ? words.data : copy_text("", 0);
    variant->server_at = server;
    for (size_t i = 0; i + 1 < variants->count && !combination && !load && !server; i++)
        if (!strcmp(variants->items[i].endpoint, variant->endpoint) && !strcmp(variants->items[i].model, model))
            return complain(EXIT_USAGE, "--endpoint %s with --endpoint_model %s is listed twice", variant->endpoint,
                            model);
    knobs_set_own(&variants->server_knobs, server, &variant->values);
    const int code = set_load(settings, load, &variant->values);
    return code ? code : variant_family(settings, variant);
}
/* Takes the names of --endpoint_model, or asks each server for its only one. Returns 0 or an exit code. */
static int choose_models(const struct variant_settings *settings, struct text_list *models) {
    int code = 0;
    if (settings->launch.command && !settings->models->given)
        return complain(EXIT_USAGE, "--server needs --endpoint_model NAME: the server cannot be asked before it runs");
    for (size_t i = 0; i < settings->models->count; i++) text_list_copy(models, settings->models->items[i]);
    for (size_t i = 0; i < settings->endpoints->count && !settings->models->given && !code; i++) {
        struct endpoint endpoint;
        code = endpoint_open(settings->client, settings->endpoints->items[i], NULL, &endpoint);
        if (!code && (code = endpoint_choose_model(&endpoint)) == 0) text_list_copy(models, endpoint.model);
        endpoint_close(&endpoint);
    }
    return code;
}
int variants_make(const struct variant_settings *settings, struct variants *variants) {
    const struct option_value *urls = settings->endpoints;
    const struct text_list *models = &variants->models;
    int code = choose_models(settings, &variants->models);
    const size_t pairs = urls->count > models->count ? urls->count : models->count;
    if (code) return code;
    if (urls->count != models->count && urls->count > 1 && models->count > 1)
        return complain(EXIT_USAGE, "--endpoint has %zu servers, but --endpoint_model has %zu names; expected one name "
                                    "for all servers, one server for all names, or one name per server",
                        urls->count, models->count);
    if ((code = knobs_add_all(settings->request_knobs, &variants->knobs)) != 0) return code;
    if ((code = own_knobs_add(settings, &variants->server_knobs)) != 0) return code;
    const struct option_value *list = settings->rates ? settings->rates : settings->concurrency;
    const size_t combinations = knobs_combinations(&variants->knobs), loads = list ? list->count : 1,
                 servers = settings->launch.command ? knobs_combinations(&variants->server_knobs) : 1;
    variants->items = zeroed(pairs * servers * combinations * loads + 1, sizeof *variants->items);
    for (size_t i = 0; i < pairs * servers * combinations * loads && !code; i++) {
        const size_t pair = i / loads / combinations / servers;
        code = add_variant(settings, variants, urls->items[urls->count > 1 ? pair : 0],
                           models->items[models->count > 1 ? pair : 0], i / loads % combinations, i % loads,
                           i / loads / combinations % servers);
    }
    return code;
}

char *variant_file_name(const struct variant *variant) {
    char readable[NAME_BYTES_MAX + 1], name[NAME_BYTES_MAX + 24];
    struct text_buffer whole = {NULL, 0, 0};
    vp_json_writer writer;
    vp_json_writer_init_sink(&writer, text_sink, &whole, 0);
    knob_put_variant(&writer, &variant->values);
    uint64_t hash = hash_text(HASH_START, vp_json_finish(&writer) == VP_OK ? whole.data : "");
    if (variant->server_at) hash = hash_text(hash, variant->words);
    snprintf(readable, sizeof readable, "%s%s%s", variant->model, variant->words[0] ? "-" : "", variant->words);
    for (char *byte = readable; *byte; byte++)
        if (!isalnum((unsigned char)*byte) && *byte != '.' && *byte != '=') *byte = '-';
    snprintf(name, sizeof name, "%s-%08x", readable, (unsigned)(hash ^ hash >> 32) & 0xffffffffu);
    free(whole.data);
    return copy_text(name, strlen(name));
}
