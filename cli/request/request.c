/* request.c: one timed pass, from pixels to text. */
#include "request/request.h"

#include "vlmprof_tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void session_free(session *s) {
    free(s->pixels.data);
    free(s->masks.data);
    free(s->index.data);
    free(s->ids.data);
    free(s->scratch.data);
    free(s->answer.data);
    if (s->engine) vp_engine_close(s->engine);
}
int32_t sequence_of(const work *k) { return !k->no_bos + (k->layout ? k->layout->image_tokens : 0) + k->text_count; }
int64_t positions_of(const work *k) { return (int64_t)sequence_of(k) + k->new_tokens - 1; }

void session_reserve(session *s, const work *k) {
    const vp_geometry *g = &s->m->config.geometry;
    reserve(&s->ids, (size_t)sequence_of(k), sizeof(int32_t));
    reserve(&s->answer, (size_t)k->new_tokens * 64 + 1024, 1);
    if (!k->layout) return;
    size_t patches = (size_t)vp_geometry_patches_per_side(g) * (size_t)vp_geometry_patches_per_side(g);
    reserve(&s->pixels, vp_preprocess_pixel_count(g, k->layout), sizeof(float));
    reserve(&s->masks, (size_t)k->layout->views * patches, sizeof(float));
    reserve(&s->index, (size_t)k->layout->views * (size_t)vp_geometry_tokens_per_crop(g), sizeof(int32_t));
    reserve(&s->scratch, vp_preprocess_scratch_bytes(g, k->layout), 1);
}

/* Pixels, index map and the sequence BOS, image tokens, text. */
static vp_result fill_inputs(session *s, const work *k) {
    const vp_geometry *g = &s->m->config.geometry;
    int32_t *ids = (int32_t *)s->ids.data, image_tokens = k->layout ? k->layout->image_tokens : 0;
    vp_result r = VP_OK;
    if (!k->no_bos) ids[0] = s->m->ids.bos; /* only a prompt without image can lack it */
    memcpy(ids + !k->no_bos + image_tokens, k->text_ids, (size_t)k->text_count * sizeof *ids);
    if (!k->layout) return VP_OK;
    r = vp_preprocess(g, k->layout, k->image->rgb, (float *)s->pixels.data, (float *)s->masks.data, s->scratch.data, s->scratch.bytes);
    if (r == VP_OK) r = vp_tokens_image_ids(g, k->layout, &s->m->ids, ids + 1, (size_t)image_tokens);
    if (r == VP_OK) r = vp_tokens_index_map(g, k->layout, 1, (int32_t *)s->index.data, s->index.bytes / sizeof(int32_t));
    return r;
}

static vp_result decode_answer(session *s, timing *t) {
    int flags = VP_DECODE_SKIP_SPECIAL | VP_DECODE_CLEAN_UP; /* as the reference scores it */
    const vp_tokenizer *tokenizer = s->m->tokenizer;
    size_t count = (size_t)t->token_count;
    vp_result r = vp_tokenizer_decode(tokenizer, t->tokens, count, flags, (char *)s->answer.data, s->answer.bytes, &t->answer_bytes);
    if (r != VP_ERR_CAPACITY) return r;
    reserve(&s->answer, t->answer_bytes + 1, 1);
    return vp_tokenizer_decode(tokenizer, t->tokens, count, flags, (char *)s->answer.data, s->answer.bytes, &t->answer_bytes);
}

/* A pause that belongs to no stage, in the tests' build only: it must show as unaccounted. */
static void test_pause(void) {
#ifdef VLMPROF_TEST_HOOKS
    struct timespec pause = {0, 0};
    if (getenv("VLMPROF_TEST_PAUSE_NS")) pause.tv_nsec = strtol(getenv("VLMPROF_TEST_PAUSE_NS"), NULL, 10);
    nanosleep(&pause, NULL);
#endif
}
static void range_begin(const work *k, const char *name, int32_t line) {
    if (k->ranges) vp_range_begin(k->ranges, name, "cli/request/request.c", line);
}
static void range_end(const work *k) { if (k->ranges) vp_range_end(k->ranges); }
vp_result request_run(session *s, const work *k, timing *t, vp_error *error) {
    vp_request q;
    vp_reply reply;
    vp_result r;
    int64_t begin, stamp[4];
    session_reserve(s, k);
    memset(&q, 0, sizeof q);
    memset(&reply, 0, sizeof reply);
    reply.tokens = t->tokens;
    reply.step_ns = t->step_ns;
    vp_engine_settle(s->engine);
    begin = vp_clock_ns();
    range_begin(k, "request", __LINE__);
    stamp[0] = vp_clock_ns();
    range_begin(k, "preprocess", __LINE__);
    r = fill_inputs(s, k);
    range_end(k);
    stamp[1] = vp_clock_ns();
    if (r != VP_OK) return vp_fail(error, r, -1, "preprocess", vp_result_text(r));
    test_pause();
    q.input_ids = (const int32_t *)s->ids.data;
    q.input_count = sequence_of(k);
    if (k->layout) {
        q.pixels = (const float *)s->pixels.data;
        q.image_masks = (const float *)s->masks.data;
        q.image_input_idx = (const int32_t *)s->index.data;
        q.views = k->layout->views;
    }
    q.top_k = k->top_k;
    q.active_blocks = k->blocks;
    q.active_block_count = k->block_count;
    q.max_new_tokens = k->new_tokens;
    q.ignore_eos = k->ignore_eos;
    q.eos_id = s->m->ids.eos;
    q.dump = k->dump;
    q.timing = k->timing;
    q.launches = k->launches;
    q.launch_capacity = k->launch_capacity;
    q.spans = k->spans;
    q.span_capacity = k->span_capacity;
    range_begin(k, "engine", __LINE__);
    t->engine_begin_ns = k->launches ? vp_clock_ns() : 0;
    r = vp_engine_run(s->engine, &q, &reply, error);
    if (r != VP_OK) return r;
    range_end(k);
    stamp[2] = vp_clock_ns();
    t->token_count = reply.token_count;
    t->launch_count = reply.launch_count;
    t->span_count = reply.span_count;
    range_begin(k, "detok", __LINE__);
    r = decode_answer(s, t);
    range_end(k);
    stamp[3] = vp_clock_ns();
    range_end(k);
    t->total_ns = vp_clock_ns() - begin;
    if (r != VP_OK) return vp_fail(error, r, -1, "detok", vp_result_text(r));
    t->ended_by_eos = reply.ended_by_eos;
    memset(&t->times, 0, sizeof t->times);
    free(t->answer);
    t->answer = copy_text((const char *)s->answer.data, t->answer_bytes);
    if (k->timing == VP_TIMING_OFF) return VP_OK; /* the total alone was measured */
    t->times = reply.times;
    t->times.wall_ns[VP_STAGE_PREPROCESS] = stamp[1] - stamp[0];
    t->times.wall_ns[VP_STAGE_DETOK] = stamp[3] - stamp[2];
    t->times.ran[VP_STAGE_PREPROCESS] = t->times.ran[VP_STAGE_DETOK] = 1;
    return VP_OK;
}
