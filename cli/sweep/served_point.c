/* served_point.c: the part of a sweep that is specific to servers: their endpoints, the images sent to them, one timed
 * request. A request's body is built before its clock starts. Under load, served_load.c
 * sends several at once. */
#include "sweep/sweep.h"

#include "base/console.h"
#include "measure/provenance.h"
#include "server/ask.h"
#include "server/endpoint.h"
#include "server/picture.h"
#include "sweep/result_gather.h"
#include "vlmprof_image.h"

#include <math.h>

enum { WARM_UP_TOKENS = 16, WORDS_BYTES_MAX = 65536 }; /* tokens: some servers reject fewer than 16 */
static const char WARM_UP_TEXT[] = "Describe what you see.";

/* The images of the current sample, as sent to one server or several. */
struct sent_pictures {
    size_t count;
    struct image_px *wanted;  /* [count] the requested sizes; 0: the file unchanged */
    struct unique *images;    /* [count]; with --same_image only their pictures */
    struct picture *pictures; /* [count] pictures of `images` */
    char *reason;             /* why there are none; NULL if there are */
    struct sent_pictures *next;
};
struct served_sweep {
    struct endpoint *endpoints; /* [variants] */
    struct twin_memory *texts;  /* [variants] */
    struct sent_pictures *pictures;
    int *most_likely; /* [variants]: see served_answer_ask */
    struct prompts prompts; int *has_dropped; /* prompts so far; [variants]: 1 after a warning of a dropped image */
};

/* ---- open and close */
static size_t variant_index(const struct sweep *sweep, const struct configuration *configuration) {
    return (size_t)(configuration->variant - sweep->plan.variants.items);
}
struct endpoint *served_endpoint(const struct sweep *sweep, const struct configuration *configuration) {
    return &sweep->served->endpoints[variant_index(sweep, configuration)];
}
static struct question question_of(const struct sweep *sweep, size_t variant, const struct picture *pictures,
                                   size_t picture_count, const char *text, int32_t max_tokens) {
    struct question question = {
        .pictures = pictures, .picture_count = (int32_t)picture_count,
        .request = {.text = text, .max_tokens = max_tokens, .no_cache = sweep->settings.no_cache,
                    .knobs = sweep->plan.variants.items[variant].knobs}};
    question.request.knob_count = picture_count ? sweep->plan.variants.items[variant].knob_count
                                                : sweep->plan.variants.items[variant].text_knob_count;
    return question;
}
/* Builds the body of a request with an image, because a knob may set a member of an image. */
static int check_body(const struct sweep *sweep, size_t variant) {
    const uint8_t rgb[3] = {0, 0, 0};
    struct picture picture;
    picture_of_pixels(rgb, 1, 1, &picture);
    struct question question = question_of(sweep, variant, &picture, 1, WARM_UP_TEXT, 1);
    int code = ask_check(&sweep->served->endpoints[variant], &question);
    picture_free(&picture);
    return code;
}
int served_open(struct sweep *sweep) {
    const struct variants *variants = &sweep->plan.variants;
    struct served_sweep *served = sweep->served = zeroed(1, sizeof *served);
    int code = 0;
    served->endpoints = zeroed(variants->count + 1, sizeof *served->endpoints);
    served->texts = zeroed(variants->count + 1, sizeof *served->texts);
    served->most_likely = zeroed(variants->count + 1, sizeof *served->most_likely);
    served->has_dropped = zeroed(variants->count + 1, sizeof *served->has_dropped);
    for (size_t i = 0; i < variants->count && !code; i++) {
        struct endpoint *endpoint = &served->endpoints[i];
        code = endpoint_open(sweep->settings.endpoint, variants->items[i].endpoint, variants->items[i].model, endpoint);
        for (size_t k = 0; k < endpoint->warnings.count && !i && !code; k++)
            complain(0, "%s", endpoint->warnings.items[k]);
        if (!code) code = check_body(sweep, i);
    }
    return code;
}
static void sent_free(struct sent_pictures *sent) {
    for (size_t i = 0; sent && i < sent->count; i++) unique_free(&sent->images[i]);
    if (sent) FREE_ALL(sent->images, sent->pictures, sent->wanted, sent->reason, sent);
}
static void served_end(struct sweep *sweep) {
    struct served_sweep *served = sweep->served;
    while (served->pictures) {
        struct sent_pictures *sent = served->pictures;
        served->pictures = sent->next;
        sent_free(sent);
    }
}
void served_keep(struct sweep *sweep) { sweep->served->pictures = NULL; }
void served_release(struct open_point *point) {
    sent_free(point->sent);
    point->sent = NULL;
}
void served_close(struct sweep *sweep) {
    if (!sweep->served) return;
    served_end(sweep);
    for (size_t i = 0; i < sweep->plan.variants.count; i++) {
        endpoint_close(&sweep->served->endpoints[i]);
        twin_forget(&sweep->served->texts[i]);
    }
    FREE_ALL(sweep->served->endpoints, sweep->served->texts, sweep->served->most_likely, sweep->served->has_dropped,
             sweep->served->prompts.items, sweep->served);
    sweep->served = NULL;
}

/* ---- members of journal lines */
static void served_put_head(vp_json_writer *writer, const struct sweep *sweep) {
    const struct variant_settings *servers = &sweep->plan.settings.servers;
    const struct request_knobs *knobs = &sweep->plan.variants.knobs;
    PUT(writer, KEY_OBJECT("server"));
    PUT(writer, KEY_ARRAY("endpoints"));
    for (size_t i = 0; i < servers->endpoints->count; i++) json_lossy(writer, servers->endpoints->items[i]);
    PUT(writer, END_ARRAY, KEY_TEXTS("endpoint_models", &sweep->plan.variants.models));
    PUT(writer, KEY("endpoint_api", vp_chat_api_name((int32_t)sweep->settings.endpoint.api)),
        KEY_OBJECT("request_knobs"));
    for (size_t i = 0; i < knobs->count; i++) PUT(writer, KEY_TEXTS(knobs->items[i].path, &knobs->items[i].words));
    PUT(writer, END_OBJECT, KEY("family", servers->family), KEY_OBJECT("family_keys"));
    for (size_t i = 0; i + 1 < servers->keys.count; i += 2)
        PUT(writer, KEY(servers->keys.items[i], servers->keys.items[i + 1]));
    PUT(writer, END_OBJECT, END_OBJECT);
}
/* The tokens of a picture by the rule of a family; -1 if not known. */
static int64_t tokens_by_rule(const vp_family *family, const struct picture *picture) {
    vp_vision_count count;
    return family && vp_family_count(family, picture->width_px, picture->height_px, &count, NULL) == VP_OK
               ? count.total_tokens
               : -1;
}
/* A list for several images; it is not written for one or none. */
static struct field_ints list_of_several(const int32_t *items, size_t count) {
    const struct field_ints list = {count ? items : NULL, (int64_t)count};
    return list;
}
/* Returns -1 if there are none. */
static int64_t sum_of(const int32_t *items, size_t count) {
    int64_t sum = count ? 0 : -1;
    for (size_t i = 0; i < count; i++) sum += items[i];
    return sum;
}
static void served_put_sizes(vp_json_writer *writer, const struct sweep *sweep, const struct open_point *point,
                             const struct sample *sample) {
    const struct sent_pictures *sent = point->sent && !point->sent->reason ? point->sent : NULL;
    const size_t count = sent ? sent->count : 0, several = count > 1 ? count : 0;
    int32_t *px = zeroed(4 * count, sizeof *px), *bytes = px + 2 * count, *by_rule = bytes + count;
    struct sent_image image;
    (void)sample;
    if (count == 1) {
        image.width_px = sent->pictures->width_px;
        image.height_px = sent->pictures->height_px;
        image.bytes = (int64_t)sent->pictures->byte_count;
        image.media_type = sent->pictures->media_type;
        image.is_resized = sent->wanted->width_px > 0;
    }
    for (size_t i = 0; i < count; i++) {
        px[2 * i] = sent->pictures[i].width_px;
        px[2 * i + 1] = sent->pictures[i].height_px;
        bytes[i] = (int32_t)sent->pictures[i].byte_count;
        by_rule[i] = (int32_t)tokens_by_rule(point->configuration->variant->family, &sent->pictures[i]);
    }
    struct served_sizes sizes = {.tier = knob_text(&point->configuration->knobs, KNOB_TIER),
        .target_vision_tokens = number_of_knob(&point->configuration->knobs, KNOB_TOKENS),
        .num_sent_images = several ? (int64_t)several : -1, .sent_bytes = sum_of(bytes, several),
        .sent_sizes_of_images = list_of_several(px, 2 * several),
        .sent_bytes_of_images = list_of_several(bytes, several),
        .tokens_by_rule_of_images = list_of_several(by_rule, point->tokens_by_rule < 0 ? 0 : several),
        .image_tokens_by_rule = point->tokens_by_rule, .sent_image = count == 1 ? &image : NULL,
        .chosen_config = point->configuration->grid_name,
        .overhead_ms = sweep->plan.choices && point->configuration->grid_name ? point->overhead_ms : (double)NAN};
    fields_put_object(writer, "sizes", &SERVED_SIZES, &sizes);
    free(px);
}
/* A server's description of itself, as JSON on one line; null if there is none, or if it is too long. */
static void put_words(vp_json_writer *writer, const char *key, struct endpoint *endpoint, const char *path) {
    char *text = NULL, *words;
    size_t bytes = 0;
    int status = 0;
    const int is_told = vp_server_get(endpoint->server, path, &status, &text, &bytes, NULL) == VP_OK;
    words = json_foreign(is_told && bytes <= WORDS_BYTES_MAX ? text : NULL, bytes);
    vp_json_key(writer, key);
    if (words) vp_json_raw(writer, words, strlen(words)); else vp_json_null(writer);
    FREE_ALL(words, text);
}
/* The first request of a variant in this process, which is not measured. */
static void put_first(vp_json_writer *writer, const struct variant *variant, const struct pass_result *first) {
    PUT(writer, KEY_OBJECT(NULL));
    vp_json_key(writer, "variant");
    knob_put_variant(writer, &variant->values);
    PUT(writer, KEY("T_total", metric_of(first, METRIC_TOTAL)), KEY("TTFT", metric_of(first, METRIC_TTFT)));
    put_usage(writer, &first->served->usage);
    PUT(writer, END_OBJECT);
}
/* The server of a variant and of the other variants on it, with their first requests. */
static void put_server(vp_json_writer *writer, const struct sweep *sweep, size_t variant,
                       const struct pass_result *first) {
    const struct variants *variants = &sweep->plan.variants;
    struct endpoint *endpoint = &sweep->served->endpoints[variant];
    char *words = endpoint_words(endpoint);
    PUT(writer, KEY_OBJECT(NULL), KEY("endpoint", variants->items[variant].endpoint), KEY("server", words));
    put_words(writer, "models", endpoint, "/v1/models");
    put_words(writer, "props", endpoint, "/props");
    PUT(writer, KEY_ARRAY("cold"));
    for (size_t i = variant; i < variants->count; i++)
        if (first[i].served && !strcmp(variants->items[i].endpoint, variants->items[variant].endpoint))
            put_first(writer, &variants->items[i], &first[i]);
    PUT(writer, END_ARRAY, END_OBJECT);
    free(words);
}
/* Returns 1 if requests use the variant: a policy may not. */
static int is_used(const struct sweep *sweep, size_t variant) {
    size_t i = 0;
    while (i < sweep->plan.run_count && variant_index(sweep, &sweep->plan.runs[i]) != variant) i++;
    return i < sweep->plan.run_count || !sweep->plan.choices;
}
/* Returns 1 if no earlier used variant is on the same server. */
static int is_first_of_server(const struct sweep *sweep, size_t variant) {
    const struct variant *variants = sweep->plan.variants.items;
    for (size_t i = 0; i < variant; i++)
        if (is_used(sweep, i) && !strcmp(variants[i].endpoint, variants[variant].endpoint)) return 0;
    return is_used(sweep, variant);
}
/* Writes the client and the servers of this session. Returns 0 or an exit code. */
static int write_served_session(struct sweep *sweep, const struct pass_result *first) {
    vp_json_writer *writer = journal_line_begin(&sweep->journal);
    const int64_t at = sweep->journal.end;
    PUT(writer, KEY_OBJECT("session"));
    put_provenance(writer, sweep->options, NULL, NULL);
    PUT(writer, KEY("client", vp_server_library(sweep->served->endpoints[0].server)), KEY_ARRAY("servers"));
    for (size_t i = 0; i < sweep->plan.variants.count; i++)
        if (is_first_of_server(sweep, i)) put_server(writer, sweep, i, first);
    PUT(writer, END_ARRAY, END_OBJECT);
    int code = journal_line_append(&sweep->journal);
    sweep->engine->session_at = at;
    return code;
}

/* ---- the images of a sample */
/* Makes an image of another size from the file's pixels. Returns 0 or an exit code with a reason. */
static int resize_picture(struct sweep *sweep, const struct sample *sample, const struct image_px *wanted, size_t index,
                          struct unique *unique, char *reason, size_t capacity) {
    vp_image resized = {0, 0, NULL};
    int code = sample_images(sample, &sweep->images, reason, capacity);
    if (!code)
        code = picture_resized(&sweep->images[index], wanted->width_px, wanted->height_px, &resized, &unique->picture,
                               reason, capacity);
    if (!code && !sweep->settings.same_image) {
        picture_free(&unique->picture);
        unique_of_pixels(resized.rgb, wanted->width_px, wanted->height_px, unique);
    }
    if (resized.rgb) vp_image_free(&resized);
    return code;
}
/* Makes an image that is sent. Returns 0 or an exit code with a reason. */
static int make_picture(struct sweep *sweep, const struct sample *sample, struct sent_pictures *sent, size_t index,
                        char *reason, size_t capacity) {
    const struct image_px *wanted = &sent->wanted[index], *size = &sample->sizes[index];
    const char *path = sample->images.items[index];
    struct unique *unique = &sent->images[index];
    const struct picture *picture = &unique->picture;
    int code;
    if (wanted->width_px > 0) code = resize_picture(sweep, sample, wanted, index, unique, reason, capacity);
    else if (sweep->settings.same_image) code = picture_of_file(path, &unique->picture, reason, capacity);
    else code = unique_of_file(path, unique, reason, capacity);
    if (!code && !wanted->width_px && (picture->width_px != size->width_px || picture->height_px != size->height_px)) {
        snprintf(reason, capacity, "%.320s: the image has %d x %d pixels, but had %d x %d when the sweep was planned",
                 path, picture->width_px, picture->height_px, size->width_px, size->height_px);
        code = EXIT_INPUT;
    }
    sent->pictures[index] = *picture;
    return code;
}
/* Makes the images of a sample, decoding each file at most once. Returns 0, or EXIT_DEVICE if memory is exhausted;
 * sent->reason is set if there are none. */
static int make_pictures(struct sweep *sweep, const struct sample *sample, struct sent_pictures *sent) {
    char reason[LINE_BYTES] = "";
    int code = 0;
    for (size_t i = 0; i < sent->count && !code; i++) {
        code = make_picture(sweep, sample, sent, i, reason, sizeof reason);
    }
    if (code == EXIT_DEVICE) return complain(EXIT_DEVICE, "%s", reason);
    if (code) sent->reason = copy_text(reason, strlen(reason));
    return 0;
}
static struct sent_pictures *find_pictures(const struct served_sweep *served, const struct image_px *wanted,
                                           size_t count) {
    struct sent_pictures *sent = served->pictures;
    while (sent && memcmp(sent->wanted, wanted, count * sizeof *wanted)) sent = sent->next;
    return sent;
}
/* The images of a sample in the sizes of a configuration. Returns 0, with or without a reason, or an exit code. */
static int send_pictures(struct sweep *sweep, struct open_point *point, const struct sample *sample,
                         const struct entry *entry, char *reason, size_t capacity) {
    const size_t count = sample->images.count;
    struct image_px *wanted = zeroed(count, sizeof *wanted);
    int code = 0;
    for (size_t i = 0; i < count && !code; i++)
        code = configuration_sent_size(point->configuration, &entry->sizes[i], &wanted[i].width_px,
                                       &wanted[i].height_px, reason, capacity);
    if (code || (point->sent = find_pictures(sweep->served, wanted, count)) != NULL) free(wanted);
    else {
        struct sent_pictures *sent = point->sent = zeroed(1, sizeof *sent);
        sent->count = count;
        sent->wanted = wanted;
        sent->pictures = zeroed(count, sizeof *sent->pictures);
        sent->images = zeroed(count, sizeof *sent->images);
        sent->next = sweep->served->pictures;
        sweep->served->pictures = sent;
        if ((code = make_pictures(sweep, sample, sent)) != 0) return code;
    }
    if (point->sent && point->sent->reason) snprintf(reason, capacity, "%s", point->sent->reason);
    return 0;
}
static int served_begin(struct sweep *sweep, struct open_point *point, const struct sample *sample,
                        const struct entry *entry, char *reason, size_t capacity, int *has_vanished) {
    const vp_family *family = point->configuration->variant->family;
    int64_t sum = 0;
    int code = 0;
    point->sent = NULL;
    point->tokens_by_rule = -1;
    *has_vanished = has_vanished_image(sample);
    snprintf(reason, capacity, "%s", sample->reason ? sample->reason : "");
    if (!reason[0] && sample->images.count) code = send_pictures(sweep, point, sample, entry, reason, capacity);
    if (code || reason[0] || !point->sent) return code;
    for (size_t i = 0; i < point->sent->count && sum >= 0; i++) {
        const int64_t tokens = tokens_by_rule(family, &point->sent->pictures[i]);
        sum = tokens < 0 ? -1 : sum + tokens;
    }
    point->tokens_by_rule = sum;
    return 0;
}

/* ---- one request */
/* Returns 1 if the server understood and rejected the request, so another attempt would have the same result. */
static int is_refused(int status) { return status == 400 || status == 413 || status == 422; }

static int64_t entry_pixels(const struct entry *entry) {
    return entry->image_count ? (int64_t)entry->sizes->width_px * entry->sizes->height_px : 0;
}
static int by_pixels(const void *left, const void *right) {
    const int64_t a = entry_pixels(*(const struct entry *const *)left),
                  b = entry_pixels(*(const struct entry *const *)right);
    return (a > b) - (a < b);
}
/* The image with the median number of pixels in a data set; NULL if there are no images. */
static const struct entry *median_image(const struct dataset *set) {
    const struct entry **images = resize(NULL, set->count + 1, sizeof *images), *median = NULL;
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++)
        if (entry_pixels(&set->samples[i]) > 0) images[count++] = &set->samples[i];
    qsort(images, count, sizeof *images, by_pixels);
    if (count) median = images[(count - 1) / 2];
    free(images);
    return median;
}
/* A plain image of the first point's size, or of the median image's if that is smaller. Its pixels are not in the data,
 * so later requests are not yet in a cache. */
static void make_warm_picture(const struct open_point *point, struct picture *picture) {
    const struct entry *median = median_image(point->configuration->set);
    int32_t width_px = point->sent->pictures->width_px, height_px = point->sent->pictures->height_px;
    if (median && entry_pixels(median) < (int64_t)width_px * height_px) {
        width_px = median->sizes->width_px;
        height_px = median->sizes->height_px;
    }
    uint8_t *rgb = resize(NULL, (size_t)width_px * (size_t)height_px, 3);
    memset(rgb, 127, (size_t)width_px * (size_t)height_px * 3);
    picture_of_pixels(rgb, width_px, height_px, picture);
    free(rgb);
}
/* Configurations of a variant that rejects its warm-up fail with the server's reason. */
static void drop_variant(struct sweep *sweep, size_t variant, const char *reason) {
    for (size_t i = 0; i < sweep->plan.run_count; i++) {
        struct configuration *configuration = &sweep->plan.runs[i];
        if (variant_index(sweep, configuration) != variant) continue;
        configuration->dropped = copy_text(reason, strlen(reason));
        complain(0, "%s: %s", configuration->file_name, reason);
    }
}
int served_warm_up(struct sweep *sweep, const struct open_point *point) {
    const struct variants *variants = &sweep->plan.variants;
    struct pass_result *first = runs_make((int32_t)variants->count, 1);
    struct picture picture = {0};
    int code = 0;
    if (point->sent) make_warm_picture(point, &picture);
    for (size_t i = 0; i < variants->count && !code; i++) {
        if (!is_used(sweep, i) || variants->items[i].server_at != point->configuration->variant->server_at) continue;
        struct question question = question_of(sweep, i, &picture, point->sent != NULL, WARM_UP_TEXT, WARM_UP_TOKENS);
        char reason[LINE_BYTES];
        struct sent_request sent;
        show_progress("warm-up of %s at %s", variants->items[i].model, variants->items[i].endpoint);
        code = ask_once(&sweep->served->endpoints[i], &question, &first[i], &sent, reason, sizeof reason);
        if (code && code != EXIT_INTERRUPTED && is_refused(sent.http_status)) {
            drop_variant(sweep, i, reason);
            code = 0;
        } else if (code && code != EXIT_INTERRUPTED)
            complain(code, "warm-up of %s: %s", variants->items[i].model, reason);
    }
    picture_free(&picture);
    if (!code) code = write_served_session(sweep, first);
    runs_free(first, (int32_t)variants->count);
    return code;
}
struct question served_question(const struct sweep *sweep, const struct open_point *point,
                                const struct sample *sample) {
    struct question question =
        question_of(sweep, variant_index(sweep, point->configuration), point->sent ? point->sent->pictures : NULL,
                    point->sent ? point->sent->count : 0, sample->prompt, point->configuration->set->new_tokens);
    question.request.image_places = sample->places;
    question.request.ignore_eos = sweep->plan.settings.ignore_eos;
    if (!sweep->settings.same_image && point->sent) question.unique = point->sent->images;
    return question;
}
void served_check_prompt(struct sweep *sweep, const struct open_point *point, const struct sample *sample) {
    struct served_sweep *served = sweep->served;
    const size_t variant = variant_index(sweep, point->configuration);
    uint64_t sizes = hash_number(HASH_START, (int64_t)variant);
    if (!point->sent || sweep->run->served->usage.prompt_tokens < 0) return;
    for (size_t i = 0; i < point->sent->count; i++)
        sizes = hash_number(hash_number(sizes, point->sent->pictures[i].width_px), point->sent->pictures[i].height_px);
    const struct prompt_count prompt =
        prompt_count_of(sizes, sample->prompt, point->tokens_by_rule, sweep->run->served->usage.prompt_tokens);
    const int64_t least = prompts_least(&served->prompts, &prompt);
    prompts_add(&served->prompts, &prompt);
    const struct question question = served_question(sweep, point, sample);
    const int is_missing = prompt.tokens >= least && is_image_missing(&question, prompt.tokens);
    if ((prompt.tokens >= least && !is_missing) || served->has_dropped[variant]++) return;
    char why[100] = "too few for an image";
    if (!is_missing)
        snprintf(why, sizeof why, "but with its image%s at least %lld", plural_s((int64_t)point->sent->count),
                 (long long)least);
    complain(0, "%s, sample %lld: the prompt has %lld tokens, %s: the server dropped an image or does not count it; "
                "run vlmprof audit --repeat 10", point->configuration->file_name, (long long)sample->id,
             (long long)prompt.tokens, why);
}
static int served_run(struct sweep *sweep, struct open_point *point, const struct sample *sample, char *reason,
                      size_t capacity, int *is_device) {
    const size_t variant = variant_index(sweep, point->configuration);
    struct question question;
    struct sent_request sent;
    int32_t retries = 0;
    int code = 0;
    *is_device = 0;
    reason[0] = 0;
    if (sweep->engine->session_at < 0 && (code = served_warm_up(sweep, point)) != 0) return code;
    if (point->configuration->dropped) {
        snprintf(reason, capacity, "%s", point->configuration->dropped);
        return 0;
    }
    question = served_question(sweep, point, sample);
    for (;;) {
        runs_free(sweep->run, 1);
        sweep->run = runs_make(1, 1);
        code = ask_once(&sweep->served->endpoints[variant], &question, sweep->run, &sent, reason, capacity);
        if (sent.attempts > 1) retries += sent.attempts - 1;
        /* the client retries requests that had not started; one whose connection broke is retried here */
        if (code != EXIT_DEVICE || sent.http_status != 200 || retries >= sweep->max_retries) break;
        retries++;
    }
    point->retries += retries;
    if (!code) {
        reason[0] = 0;
        served_check_prompt(sweep, point, sample);
    }
    *is_device = code == EXIT_DEVICE && !is_refused(sent.http_status);
    return code == EXIT_INTERRUPTED ? code : 0;
}

const struct sweep_backend SERVER_BACKEND = {served_put_head, served_put_sizes, served_begin, served_end, served_run};

/* ---- twins */
int served_wants_twins(const struct sweep *sweep, const struct open_point *point) {
    return sweep->served && sweep->settings.twins && point->sent && !point->sent->reason;
}
int served_twins(struct sweep *sweep, const struct open_point *point, const struct sample *sample,
                 const struct twins_object *known, struct twins *twins, char *reason, size_t capacity) {
    const size_t variant = variant_index(sweep, point->configuration);
    const char *name = point->configuration->file_name;
    const uint64_t seed = hash_number(hash_number(HASH_START, sweep->plan.settings.data.seed), sample->id);
    const struct twin_plan plan = {
        .endpoint = &sweep->served->endpoints[variant], .question = served_question(sweep, point, sample),
        .text_knob_count = point->configuration->variant->text_knob_count, .pairs = sweep->settings.twins,
        .known = known->pairs, .known_count = known->count, .seed = hash_text(seed, name), .name = name,
        .memory = &sweep->served->texts[variant]};
    const int code = twins_measure(&plan, twins, reason, capacity);
    return code == EXIT_INTERRUPTED || (code && plan.memory->is_away) ? code : 0;
}

/* ---- comparison with a baseline */
static int ask_likely(struct sweep *sweep, const struct open_point *point, const struct sample *sample,
                      struct served_answer *answer, char *reason, size_t capacity) {
    const size_t variant = variant_index(sweep, point->configuration);
    struct question question = served_question(sweep, point, sample);
    int code;
    question.unique = NULL;
    code = served_answer_ask(&sweep->served->endpoints[variant], &question, &sweep->served->most_likely[variant],
                             answer, reason, capacity);
    return code == EXIT_INTERRUPTED ? code : 0;
}
int served_ask_baseline(struct sweep *sweep, const struct open_point *first, const struct sample *sample) {
    char reason[LINE_BYTES] = "";
    const int code = ask_likely(sweep, first, sample, &sweep->baseline.said, reason, sizeof reason);
    if (reason[0]) baseline_lacks(&sweep->baseline, reason);
    sweep->baseline.is_made = 1;
    return code;
}
int served_follow_baseline(struct sweep *sweep, const struct open_point *point, const struct sample *sample,
                           struct fidelity *fidelity, char *reason, size_t capacity) {
    struct served_answer own = {0};
    int code;
    code = ask_likely(sweep, point, sample, &own, reason, capacity);
    if (!code && !reason[0]) served_answers_compare(&sweep->baseline.said, &own, fidelity, reason, capacity);
    served_answer_free(&own);
    return code;
}
