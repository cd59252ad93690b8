/* made_server.h: result files and load trials of a server whose costs are known, written by a test. A test includes it after made_results.h. */
#ifndef MADE_SERVER_H
#define MADE_SERVER_H
#include <math.h>

/* ---- a server: ms, per token, per byte; noise is a share of the time */
enum { SIZE_COUNT = 5 };
static const int TARGETS[SIZE_COUNT] = {64, 144, 256, 576, 1024};
typedef struct server {
    double fixed, image, text, byte, step, step_prompt, noise;
    int sizes;
    const char *url, *model;
    const char *knobs; /* members of the request; their length is a part of the files' names */
    const char *hides; /* "image": usage has no image tokens; "rule": neither has the rule; "prompt": no counts at all */
} server;
static const server SERVER = {30, 0.08, 0.25, 2e-5, 4, 0.003, 0.03, SIZE_COUNT, "http://127.0.0.1:8000", "made-vl", "", ""};
static inline double ttft_of(const server *s, double image, double text, double bytes) { return s->fixed + s->image * image + s->text * text + s->byte * bytes; }
static inline double step_of(const server *s, double prompt) { return s->step + s->step_prompt * prompt; }
static inline void put_count(FILE *f, const char *key, double value, int known) {
    if (known) fprintf(f, ", \"%s\": %.0f", key, value); else fprintf(f, ", \"%s\": null", key);
}
/* The request of a sample at an image size: always the same one. */
typedef struct asked { double image, text, bytes, tokens; } asked;
static inline asked asked_of(int sample, int target) {
    asked a;
    vp_random random;
    vp_random_seed(&random, (uint32_t)(target * 1000 + sample));
    a.image = sample % 8 ? target - (double)vp_random_below(&random, (uint32_t)target / 8) : 0;
    a.text = 10 + (double)vp_random_below(&random, 200);
    a.bytes = sample % 8 ? 2e4 + 1e6 * vp_random_double(&random) : 0;
    a.tokens = 1 + (double)vp_random_below(&random, 40);
    return a;
}
static inline void write_row(FILE *f, const server *s, int sample, int target, vp_random *random) {
    int knows_image = !*s->hides, knows_rule = !*s->hides || !strcmp(s->hides, "image"), knows_prompt = strcmp(s->hides, "prompt");
    asked a = asked_of(sample, target);
    double image = a.image, text = a.text, bytes = a.bytes, tokens = a.tokens;
    int has_image = image > 0;
    double ttft = ttft_of(s, image, text, bytes) * (1 + s->noise * normal(random)), step = step_of(s, image + text) * (1 + s->noise * normal(random));
    double total = ttft + (tokens - 1) * step;
    fprintf(f, "%s{\"sample_id\": %d, \"status\": \"ok\", \"accuracy\": %d, \"actual_num_crops\": null", sample ? ",\n" : "", sample, sample % 2);
    put_count(f, "actual_vision_tokens", image, knows_image);
    put_count(f, "input_text_tokens", text, knows_image);
    put_count(f, "total_sequence_length", image + text, knows_prompt);
    put_count(f, "image_tokens_by_rule", image, knows_rule && has_image);
    fprintf(f, ", \"output_tokens\": %.0f, \"TTFT\": %.17g, \"T_total\": %.17g, \"T_LLM_decode\": %.17g", tokens, ttft, total, total - ttft);
    if (tokens > 1) fprintf(f, ", \"T_decode_per_token\": %.17g", step); else fprintf(f, ", \"T_decode_per_token\": null");
    if (has_image) fprintf(f, ", \"sent_image\": {\"width_px\": 1, \"height_px\": 1, \"bytes\": %.0f}", bytes); else fprintf(f, ", \"sent_image\": null");
    fprintf(f, "}");
}
static inline void write_server(const char *name, const server *s, uint32_t seed, int samples) {
    vp_random random;
    vp_random_seed(&random, seed);
    mkdir(in_folder(name), 0777);
    for (int size = 0; size < s->sizes; size++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/t_imgsize%d_%s%zu.json", in_folder(name), TARGETS[size], s->model, strlen(s->knobs));
        FILE *f = fopen(path, "wb");
        if (!f) { CHECK(!"a result file can be written"); return; }
        fprintf(f, "{\"schema\": \"vlmprof-sweep-2\", \"status\": \"complete\", \"timing\": \"off\", \"synthetic\": false, \"model\": \"%s\",\n"
                   " \"dataset_name\": \"t\", \"data_hash\": \"abc\", \"tier\": null, \"target_vision_tokens\": %d, \"top_k\": null, \"num_active_blocks\": null,\n"
                   " \"endpoint\": \"%s\", \"endpoint_model\": \"%s\", \"request_knobs\": {%s}, \"num_cached_runs\": 0, \"per_sample_results\": [\n", s->model,
                TARGETS[size], s->url, s->model, s->knobs);
        for (int sample = 0; sample < samples; sample++) write_row(f, s, sample, TARGETS[size], &random);
        fprintf(f, "]}\n");
        if (fclose(f)) CHECK(!"a result file can be closed");
    }
}

/* ---- load trials: each request takes the server's time after a wait; waits are exponential with this mean. Requests are due one after another, `rate` a second, or by
 * concurrency; the window is the whole trial. fail_every: every n-th request fails; 0: none */
typedef struct trial {
    double rate, wait_ms;
    int concurrency, requests, fail_every;
    const char *slo;
    double p50; /* of E2E, with most answers within 30 %; a fifth takes twice that +-10 %, and all come in one piece; 0: the server's own time */
} trial;
/* Trials with one seed ask the same samples at the same times. */
static inline void write_trial(const char *name, const server *s, const trial *t, uint32_t seed) {
    const double gap_ms = 1000 / (t->rate > 0 ? t->rate : t->concurrency);
    char path[1024];
    vp_random random;
    vp_random_seed(&random, seed);
    mkdir(in_folder(name), 0777);
    snprintf(path, sizeof path, "%s/t_load_%s%g.json", in_folder(name), t->concurrency ? "concurrency" : "rate", t->concurrency ? t->concurrency : t->rate);
    FILE *f = fopen(path, "wb");
    if (!f) { CHECK(!"a trial can be written"); return; }
    fprintf(f, "{\"schema\": \"vlmprof-load-1\", \"status\": \"complete\", \"dataset_name\": \"t\", \"endpoint\": \"%s\", \"endpoint_model\": \"%s\",\n",
            s->url, s->model);
    if (t->concurrency) fprintf(f, " \"request_rate\": null, \"concurrency\": %d,\n", t->concurrency);
    else fprintf(f, " \"request_rate\": %.17g, \"concurrency\": null,\n", t->rate);
    fprintf(f, t->slo ? " \"slo\": \"%s\", \"requests\": [\n" : " \"slo\": null, \"requests\": [\n", t->slo);
    for (int i = 0; i < t->requests; i++) {
        asked a = asked_of((i + (int)seed - 1) % 40, TARGETS[i % s->sizes]);
        double image = a.image, text = a.text, tokens = a.tokens, due = i * gap_ms, wait = -t->wait_ms * log(1 - vp_random_double(&random));
        double ttft = wait + ttft_of(s, image, text, a.bytes) * (1 + s->noise * normal(&random)), step = step_of(s, image + text) * (1 + s->noise * normal(&random));
        double ended = due + ttft + (tokens - 1) * step;
        int is_failed = t->fail_every && i % t->fail_every == 0;
        if (t->p50 > 0) {
            const int is_slow = vp_random_double(&random) < 0.2;
            ttft = t->p50 * (is_slow ? 2 * (0.9 + 0.2 * vp_random_double(&random)) : 0.7 + 0.6 * vp_random_double(&random));
            ended = due + ttft;
        }
        fprintf(f, "%s{\"sample_id\": %d, \"due_ms\": %.6f, \"start_ms\": %.6f, \"first_ms\": %.6f, \"last_ms\": %.6f, \"end_ms\": %.6f, \"prompt_tokens\": %.0f,"
                   " \"completion_tokens\": %.0f, \"failed\": %s}", i ? ",\n" : "", (i + (int)seed - 1) % 40, due, due, due + ttft, ended, ended, image + text, tokens,
                is_failed ? "\"500\"" : "null");
    }
    fprintf(f, "],\n \"summary\": {\"window_from_s\": 0, \"window_to_s\": %.17g, \"requests_due\": %d}}\n", t->requests * gap_ms / 1000, t->requests);
    if (fclose(f)) CHECK(!"a trial can be closed");
}

/* ---- JSON by a path: "laws.0.lines.TTFT" */
static inline uint32_t at_path(const char *path) { /* "laws.0.lines.TTFT" */
    uint32_t node = 0;
    while (*path && node != VP_JSON_NONE) {
        char key[64];
        size_t bytes = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)bytes, path);
        node = json.nodes[node].type == (uint8_t)VP_JSON_ARRAY ? vp_json_at(&json, node, (uint32_t)atoi(key)) : vp_json_get(&json, node, key);
        path += bytes + (path[bytes] == '.');
    }
    return node;
}
static inline double number_at(const char *format, ...) {
    char path[256];
    va_list list;
    va_start(list, format);
    vsnprintf(path, sizeof path, format, list);
    va_end(list);
    return number(at_path(path));
}


#endif
