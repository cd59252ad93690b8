/* load_bodies.c: turns the samples of a data set, or synthetic ones, into request bodies, and scores their answers. */
#include "load/load_bodies.h"

#include "base/console.h"
#include "base/memory.h"
#include "measure/record.h"
#include "server/ask.h"
#include "server/checks/scene.h"
#include "server/picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t BODIES_BYTES_MOST = (size_t)8 << 30;

void load_bodies_free(struct load_bodies *bodies) {
    for (size_t i = 0; i < bodies->count; i++) {
        free((void *)bodies->items[i].json);
        for (size_t k = 0; k < bodies->items[i].image_count; k++) unique_free(&bodies->items[i].unique[k]);
        FREE_ALL(bodies->items[i].unique, bodies->items[i].image_at, bodies->items[i].marks);
        sample_free(&bodies->samples[i]);
    }
    FREE_ALL(bodies->items, bodies->samples, bodies->ids);
    memset(bodies, 0, sizeof *bodies);
}
/* The part that all bodies share. */
struct body_maker {
    const struct options *options;
    const struct endpoint *endpoint;
    const struct request_knobs *knobs;
    int32_t new_tokens;
};
/* The offset of each image's base64 in a body, malloc'ed. */
static size_t *find_images(const struct load_body *body, const struct picture *pictures, size_t count) {
    size_t *places = resize(NULL, count, sizeof *places);
    const char *at = body->json;
    for (size_t i = 0; i < count; i++) {
        char *text = resize(NULL, vp_base64_bytes(pictures[i].byte_count) + 1, 1);
        const size_t bytes = vp_base64(pictures[i].bytes, pictures[i].byte_count, text);
        at = strstr(at, text);
        free(text);
        if (!at) abort(); /* ask_begin wrote it */
        places[i] = (size_t)(at - body->json);
        at += bytes;
    }
    return places;
}
/* Appends the body with the images, which it takes over, at these offsets of the prompt. Returns 0 or an exit code
 * after a message. */
static int add_body(const struct body_maker *maker, struct unique *images, size_t image_count, const size_t *places,
                    const char *prompt, int64_t id, struct load_bodies *bodies) {
    struct picture *pictures = zeroed(image_count, sizeof *pictures); /* pictures of `images` */
    vp_chat_knob *chosen = zeroed(maker->knobs->count, sizeof *chosen);
    struct load_body *body = &bodies->items[bodies->count];
    struct question question = {0};
    vp_error error = {VP_OK, -1, "", ""};
    vp_exchange exchange = {0};
    vp_result result;
    knobs_combination(maker->knobs, 0, chosen);
    for (size_t i = 0; i < image_count; i++) pictures[i] = images[i].picture;
    question.pictures = pictures;
    question.picture_count = (int32_t)image_count;
    question.places = places;
    question.text = prompt;
    question.max_tokens = maker->new_tokens;
    question.ignore_eos = is_given(maker->options, "ignore_eos") || is_given(maker->options, "output_tokens");
    question.no_cache = is_given(maker->options, "no_cache");
    question.knobs = chosen;
    question.knob_count = maker->knobs->count;
    result = ask_begin(maker->endpoint, &question, &exchange, &error);
    free(chosen);
    if (result != VP_OK) {
        free(pictures);
        return complain_result(EXIT_USAGE, "--request_knob", result, &error);
    }
    body->json = exchange.body; /* the body outlives the exchange */
    body->bytes = exchange.body_bytes;
    body->width_px = image_count ? pictures->width_px : 0;
    body->height_px = image_count ? pictures->height_px : 0;
    bodies->imaged += image_count > 0;
    bodies->same += !image_count || !images->to;
    if (image_count && images->to) {
        body->image_count = image_count;
        body->image_at = find_images(body, pictures, image_count);
        body->marks = zeroed(image_count, sizeof *body->marks);
        body->unique = resize(NULL, image_count, sizeof *body->unique);
        memcpy(body->unique, images, image_count * sizeof *images);
        memset(images, 0, image_count * sizeof *images);
    }
    free(pictures);
    bodies->ids[bodies->count++] = id;
    bodies->bytes += body->bytes;
    bodies->hash = hash_bytes(bodies->hash, body->json, body->bytes);
    return bodies->bytes > BODIES_BYTES_MOST
               ? complain(EXIT_USAGE, "the requests take more than %zu GiB of memory: use a smaller --num_samples",
                          BODIES_BYTES_MOST >> 30)
               : 0;
}
/* The body of one sample. Returns 0, EXIT_INPUT with a reason, or an exit code after a message. */
static int add_sample(const struct body_maker *maker, const struct sample *sample, struct load_bodies *bodies,
                      char *reason, size_t capacity) {
    const size_t count = sample->no_image || sample->reason ? 0 : sample->images.count;
    const int is_same = is_given(maker->options, "same_image");
    struct unique *images = zeroed(count, sizeof *images);
    int code = 0;
    if (sample->reason) {
        snprintf(reason, capacity, "%s", sample->reason);
        code = EXIT_INPUT;
    }
    for (size_t i = 0; i < count && !code; i++)
        code = is_same ? picture_of_file(sample->images.items[i], &images[i].picture, reason, capacity)
                       : unique_of_file(sample->images.items[i], &images[i], reason, capacity);
    if (!code) code = add_body(maker, images, count, sample->places, sample->prompt, sample->id, bodies);
    for (size_t i = 0; i < count; i++) unique_free(&images[i]);
    free(images);
    return code;
}
static void bodies_begin(struct load_bodies *bodies, size_t count) {
    bodies->items = zeroed(count, sizeof *bodies->items);
    bodies->samples = zeroed(count, sizeof *bodies->samples);
    bodies->ids = zeroed(count, sizeof *bodies->ids);
    bodies->hash = HASH_START;
}
int load_bodies_make(const struct options *options, const struct dataset *dataset, const struct endpoint *endpoint,
                     const struct request_knobs *knobs, struct load_bodies *bodies) {
    const struct body_maker maker = {options, endpoint, knobs, dataset->new_tokens};
    char reason[LINE_BYTES] = "", first_reason[LINE_BYTES] = "";
    int code = 0;
    bodies_begin(bodies, dataset->count);
    for (size_t i = 0; i < dataset->count && !code && !interrupted; i++) {
        struct sample *sample = &bodies->samples[bodies->count];
        show_progress("building request %zu of %zu", i + 1, dataset->count);
        if ((code = dataset_sample(dataset, NULL, i, sample)) != 0) break;
        code = add_sample(&maker, sample, bodies, reason, sizeof reason);
        if (code == EXIT_INPUT) {
            if (!bodies->unusable++) snprintf(first_reason, sizeof first_reason, "%s", reason);
            sample_free(sample);
            memset(sample, 0, sizeof *sample);
            code = 0;
            continue;
        }
        if (code && sample == &bodies->samples[bodies->count]) sample_free(sample); /* the sample has no body */
    }
    close_progress();
    if (!code && interrupted) return EXIT_INTERRUPTED;
    if (!code && !bodies->count)
        return complain(EXIT_INPUT, "%s: no sample can be sent: %s", dataset->path,
                        first_reason[0] ? first_reason : "there are none");
    if (!code && bodies->unusable)
        complain(0, "%s: %zu of %zu samples are skipped: %s", dataset->path, bodies->unusable, dataset->count,
                 first_reason);
    return code;
}

/* Words that nearly every tokenizer encodes as one token, so words and tokens are about equally many. */
static const char *const WORDS[] = {
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school", "state",
    "family", "student", "group", "country", "problem", "hand", "part", "place", "case", "week", "company", "system",
    "program", "question", "work", "number", "night", "point", "home", "water", "room", "mother", "area", "money",
    "story", "fact", "month", "lot", "right", "study", "book", "eye", "job", "word", "business", "issue", "side"};
static void add_words(struct text_buffer *out, int64_t words, vp_random *random) {
    for (int64_t i = 0; i < words; i++)
        text_add_format(out, "%s%s", i ? " " : "",
                        WORDS[(size_t)(vp_random_double(random) * (sizeof WORDS / sizeof *WORDS))]);
}
/* Turns a picture that was drawn here into one that a number can make unique. */
static void make_unique(struct unique *image) {
    struct unique made;
    vp_image pixels = {0, 0, NULL};
    if (vp_image_decode((const uint8_t *)image->picture.bytes, image->picture.byte_count, &pixels, NULL) != VP_OK)
        abort(); /* (it was encoded here) */
    unique_of_pixels(pixels.rgb, pixels.width_px, pixels.height_px, &made);
    vp_image_free(&pixels);
    unique_free(image);
    *image = made;
}
int load_bodies_random(const struct options *options, const struct random_request *request,
                       const struct endpoint *endpoint, const struct request_knobs *knobs,
                       struct load_bodies *bodies) {
    const struct body_maker maker = {options, endpoint, knobs, (int32_t)request->new_tokens};
    uint64_t first_hash = 0;
    vp_random random;
    int code = 0;
    bodies_begin(bodies, request->count);
    bodies->is_random = 1;
    vp_random_seed(&random, request->seed);
    for (size_t i = 0; i < request->count && !code && !interrupted; i++) {
        struct text_buffer prompt = {NULL, 0, 0};
        struct unique image = {0};
        show_progress("making request %zu of %zu", i + 1, request->count);
        if (request->width_px)
            scene_draw(request->width_px, request->height_px, hash_number(hash_number(HASH_START, request->seed),
                                                                          (int64_t)i), &image.picture);
        if (image.picture.bytes && !is_given(options, "same_image")) make_unique(&image);
        add_words(&prompt, request->words, &random);
        code = add_body(&maker, &image, image.picture.bytes != NULL, NULL, prompt.data, (int64_t)i, bodies);
        unique_free(&image);
        free(prompt.data);
        if (!i) first_hash = bodies->hash;
    }
    /* the default count depends on the number of requests sent, so it must not make two trials incomparable */
    bodies->hash = is_given(options, "num_samples") ? hash_number(first_hash, (int64_t)request->count) : first_hash;
    close_progress();
    return !code && interrupted ? EXIT_INTERRUPTED : code;
}

void load_score(const struct load_bodies *bodies, vp_score_metric metric, struct load_records *records) {
    for (size_t i = 0; i < records->count; i++) {
        struct load_record *record = &records->items[i];
        struct scoring scoring;
        vp_score_outcome outcome;
        if (record->reason || bodies->is_random || isfinite(record->accuracy)) continue;
        struct pass_result run = {.answer = record->answer, .answer_bytes = record->answer_bytes};
        struct point point = {.sample = &bodies->samples[record->body], .runs = &run, .run_count = 1, .metric = metric};
        score_point(&point, &scoring, &outcome);
        record->accuracy = outcome.is_unparsed ? 0 : outcome.score;
        scoring_free(&scoring);
    }
}
