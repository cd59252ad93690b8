/* load_bodies.c: the samples of a data set as bodies of requests, and the scores of their answers. */
#include "load/load_bodies.h"

#include "base/console.h"
#include "base/memory.h"
#include "measure/record.h"
#include "server/ask.h"
#include "server/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t BODIES_BYTES_MOST = (size_t)8 << 30;

void load_bodies_free(struct load_bodies *bodies) {
    for (size_t i = 0; i < bodies->count; i++) {
        free((void *)bodies->items[i].json);
        sample_free(&bodies->samples[i]);
    }
    free(bodies->items);
    free(bodies->samples);
    free(bodies->ids);
    memset(bodies, 0, sizeof *bodies);
}
/* The body of one sample. Returns 0, EXIT_INPUT with a reason, or an exit code after a message. */
static int body_of(const struct options *options, const struct dataset *dataset, const struct endpoint *endpoint,
                   const struct request_knobs *knobs, const struct sample *sample, struct load_body *body,
                   char *reason, size_t capacity) {
    vp_chat_knob *chosen = zeroed(knobs->count, sizeof *chosen);
    struct picture picture;
    struct question question;
    vp_error error = {VP_OK, -1, "", ""};
    vp_exchange exchange;
    int code = 0;
    memset(&picture, 0, sizeof picture);
    memset(&question, 0, sizeof question);
    memset(&exchange, 0, sizeof exchange);
    if (sample->reason) {
        snprintf(reason, capacity, "%s", sample->reason);
        code = EXIT_INPUT;
    } else if (!sample->no_image && sample->image_path)
        code = picture_of_file(sample->image_path, &picture, reason, capacity);
    knobs_combination(knobs, 0, chosen);
    question.picture = picture.bytes ? &picture : NULL;
    question.text = sample->prompt;
    question.max_tokens = dataset->new_tokens;
    question.ignore_eos = is_given(options, "ignore_eos");
    question.no_cache = is_given(options, "no_cache");
    question.knobs = chosen;
    question.knob_count = knobs->count;
    if (!code) {
        vp_result result = ask_begin(endpoint, &question, &exchange, &error);
        if (result != VP_OK) code = complain_result(EXIT_USAGE, "--request_knob", result, &error);
    }
    if (!code) {
        body->json = exchange.body; /* it outlives the exchange */
        body->bytes = exchange.body_bytes;
    }
    picture_free(&picture);
    free(chosen);
    return code;
}
int load_bodies_make(const struct options *options, const struct dataset *dataset, const struct endpoint *endpoint,
                     const struct request_knobs *knobs, struct load_bodies *bodies) {
    char reason[LINE_BYTES] = "", first_reason[LINE_BYTES] = "";
    int code = 0;
    bodies->items = zeroed(dataset->count, sizeof *bodies->items);
    bodies->samples = zeroed(dataset->count, sizeof *bodies->samples);
    bodies->ids = zeroed(dataset->count, sizeof *bodies->ids);
    bodies->hash = HASH_START;
    for (size_t i = 0; i < dataset->count && !code && !interrupted; i++) {
        struct sample *sample = &bodies->samples[bodies->count];
        struct load_body *body = &bodies->items[bodies->count];
        show_progress("building request %zu of %zu", i + 1, dataset->count);
        if ((code = dataset_sample(dataset, NULL, i, sample)) != 0) break;
        code = body_of(options, dataset, endpoint, knobs, sample, body, reason, sizeof reason);
        if (code == EXIT_INPUT) {
            if (!bodies->unusable++) snprintf(first_reason, sizeof first_reason, "%s", reason);
            sample_free(sample);
            memset(sample, 0, sizeof *sample);
            code = 0;
            continue;
        }
        if (code) { sample_free(sample); break; }
        bodies->ids[bodies->count++] = sample->id;
        bodies->bytes += body->bytes;
        bodies->hash = hash_bytes(bodies->hash, body->json, body->bytes);
        if (bodies->bytes > BODIES_BYTES_MOST)
            code = complain(EXIT_USAGE, "the requests take more than %zu GiB of memory: use a smaller --num_samples",
                            BODIES_BYTES_MOST >> 30);
    }
    close_progress();
    if (!code && interrupted) return EXIT_INTERRUPTED;
    if (!code && !bodies->count)
        return complain(EXIT_INPUT, "%s: no sample can be asked: %s", dataset->path,
                        first_reason[0] ? first_reason : "there are none");
    if (!code && bodies->unusable)
        complain(0, "%s: %zu of %zu samples are left out: %s", dataset->path, bodies->unusable, dataset->count,
                 first_reason);
    return code;
}

void load_score(const struct load_bodies *bodies, vp_score_metric metric, struct load_records *records) {
    for (size_t i = 0; i < records->count; i++) {
        struct load_record *record = &records->items[i];
        struct pass_result run;
        struct point point;
        struct scoring scoring;
        vp_score_outcome outcome;
        if (record->reason) continue;
        memset(&run, 0, sizeof run);
        memset(&point, 0, sizeof point);
        run.answer = record->answer;
        run.answer_bytes = record->answer_bytes;
        point.sample = &bodies->samples[record->body];
        point.runs = &run;
        point.run_count = 1;
        point.metric = metric;
        score_point(&point, &scoring, &outcome);
        record->accuracy = outcome.is_unparsed ? 0 : outcome.score;
        scoring_free(&scoring);
    }
}
