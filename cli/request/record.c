/* record.c: a measured point as JSON. */
#include "request/record.h"

#include "base/memory.h"
#include "vlmprof_stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void sample_free(sample *a) {
    free(a->record);
    free(a->question);
    free(a->style);
    free(a->prompt);
    free(a->image_path);
    free(a->text_ids);
    free(a->reason);
}

void put_point_layout(vp_json_writer *w, const point *p) {
    const vp_layout *l = p->layout;
    put_text(w, "tier", p->tier);
    vp_json_key(w, "target_vision_tokens");
    if (l) vp_json_int(w, p->target_tokens); else vp_json_null(w);
    vp_json_key(w, "target_crops");
    if (l) vp_json_int(w, p->target_crops); else vp_json_null(w);
    put_int(w, "top_k", p->top_k);
    put_int(w, "num_active_blocks", p->block_count);
    for (int actual = 0; actual < 2; actual++) {
        static const char *const keys[2][4] = {{"theoretical_num_crops", "theoretical_tiling", "theoretical_image_size", "theoretical_vision_tokens"},
                                               {"actual_num_crops", "actual_tiling", "actual_image_size", "actual_vision_tokens"}};
        if (l) {
            put_int(w, keys[actual][0], l->crops);
            put_pair(w, keys[actual][1], l->tiling.rows, l->tiling.cols);
            put_pair(w, keys[actual][2], l->canvas_height_px, l->canvas_width_px);
            put_int(w, keys[actual][3], actual ? l->feature_tokens : l->theoretical_tokens);
        } else {
            for (int i = 0; i < 4; i++) put_null(w, keys[actual][i]);
        }
    }
    put_int(w, "input_text_tokens", p->a->text_count);
    put_int(w, "actual_text_tokens", p->a->text_count);
    vp_json_key(w, "total_sequence_length");
    if (l || !p->a->image_path) vp_json_int(w, !p->a->no_bos + (l ? l->image_tokens : 0) + p->a->text_count); else vp_json_null(w);
}
void put_point_tokens(vp_json_writer *w, const point *p) {
    int ran = p->run_count > 0;
    int32_t tokens = ran ? p->runs[0].token_count : 0;
    vp_json_key(w, "output_tokens");
    if (ran) vp_json_int(w, tokens); else vp_json_null(w);
    vp_json_key(w, "content_tokens");
    if (ran) vp_json_int(w, tokens - (p->runs[0].ended_by_eos != 0)); else vp_json_null(w);
    vp_json_key(w, "ends_with_eos");
    if (ran) vp_json_bool(w, p->runs[0].ended_by_eos); else vp_json_null(w);
}

void put_point_times(vp_json_writer *w, const point *p) {
    int32_t longest = 0;
    for (int m = 0; m < METRIC_STAGE; m++) put_double(w, METRIC_KEYS[m], p->run_count ? metric_mean(p->runs, p->run_count, m) : (double)NAN);
    vp_json_key(w, "stages");
    vp_json_begin_object(w);
    for (int i = 0; i < VP_STAGE_COUNT; i++)
        put_double(w, vp_stage_name((vp_stage)i), p->run_count ? metric_mean(p->runs, p->run_count, METRIC_STAGE + i) : (double)NAN);
    vp_json_end_object(w);
    vp_json_key(w, "stage_detail"); /* means over the runs */
    vp_json_begin_object(w);
    for (int i = 0; i < VP_STAGE_COUNT; i++) {
        vp_json_key(w, vp_stage_name((vp_stage)i));
        vp_json_begin_object(w);
        for (int d = DETAIL_WALL; d < DETAIL_COUNT; d++)
            put_double(w, DETAIL_KEYS[d], p->run_count ? metric_mean(p->runs, p->run_count, stage_metric(i, d)) : (double)NAN);
        vp_json_end_object(w);
    }
    vp_json_end_object(w);
    for (int32_t r = 0; r < p->run_count; r++) if (p->runs[r].token_count - 1 > longest) longest = p->runs[r].token_count - 1;
    vp_json_key(w, "T_decode_per_step"); /* [position][run]; position 0 is decode step 1 */
    vp_json_begin_array(w);
    for (int32_t i = 0; i < longest; i++) {
        vp_json_begin_array(w);
        for (int32_t r = 0; r < p->run_count; r++) if (i < p->runs[r].token_count - 1) vp_json_double(w, (double)p->runs[r].step_ns[i] / 1e6);
        vp_json_end_array(w);
    }
    vp_json_end_array(w);
    vp_json_key(w, "runs");
    vp_json_begin_object(w);
    for (int m = 0; m < METRIC_STAGE + VP_STAGE_COUNT; m++) {
        vp_json_key(w, m < METRIC_STAGE ? METRIC_KEYS[m] : vp_stage_name((vp_stage)(m - METRIC_STAGE)));
        vp_json_begin_array(w);
        for (int32_t r = 0; r < p->run_count; r++) json_double_or_null(w, metric_of(&p->runs[r], m));
        vp_json_end_array(w);
    }
    vp_json_end_object(w);
}

void put_answer(vp_json_writer *w, const char *key, const timing *t) {
    vp_json_key(w, key);
    if (t) vp_json_string_bytes(w, t->answer, t->answer_bytes); else vp_json_null(w);
}
void score_point(const point *p, scoring *s, vp_score_outcome *o) {
    vp_score_outcome none = {(double)NAN, NULL, 0, -1, NULL, NULL};
    parsed record = {{NULL, NULL, 0}, NULL, 0};
    vp_result r;
    memset(s, 0, sizeof *s);
    scoring_clear(s);
    *o = none;
    if (!p->run_count) { o->reason = "no answer"; return; }
    s->sample.prediction = scoring_own(s, copy_text(p->runs[0].answer, strlen(p->runs[0].answer)));
    if (p->a->record && parse_json(&record, p->a->record, strlen(p->a->record), NULL) == VP_OK)
        o->reason = scoring_read(s, (int)p->metric, &record.json, 0);
    scoring_as_run(s);
    if (!o->reason && (r = scoring_run(s, p->metric, vp_score_metric_of(p->metric)->run_cleaning, o)) != VP_OK) o->reason = vp_result_text(r);
    if (o->reason && !s->sample.references && !s->sample.option_count) o->reason = "the record has no answers to compare with";
    free(record.nodes);
}
void put_point_answer(vp_json_writer *w, const point *p, const vp_score_outcome *scored) {
    vp_score_outcome o = *scored;
    int same = 1, ran = p->run_count > 0;
    for (int32_t r = 1; r < p->run_count; r++)
        same &= p->runs[r].token_count == p->runs[0].token_count
            && !memcmp(p->runs[r].tokens, p->runs[0].tokens, (size_t)p->runs[0].token_count * sizeof(int32_t));
    put_double(w, "accuracy", o.is_unparsed ? 0 : o.score); /* unparsed: the reference guesses there; a guess earns nothing */
    put_text(w, "accuracy_reason", o.is_unparsed ? NULL : o.reason);
    put_answer(w, "pred", ran ? &p->runs[0] : NULL);
    put_text(w, "pred_cleaned", ran ? o.cleaned : NULL);
    vp_json_key(w, "unparsed");
    if (ran) vp_json_bool(w, o.is_unparsed); else vp_json_null(w);
    vp_json_key(w, "truncated"); /* no EOS among the tokens that were allowed */
    if (ran && !p->ignore_eos) vp_json_bool(w, !p->runs[0].ended_by_eos); else vp_json_null(w);
    vp_json_key(w, "empty");
    if (ran && o.cleaned) vp_json_bool(w, !o.cleaned[0]); else vp_json_null(w);
    put_ints(w, "output_token_ids", ran ? p->runs[0].tokens : NULL, ran ? p->runs[0].token_count : 0);
    vp_json_key(w, "answers_equal_over_runs");
    if (ran) vp_json_bool(w, same); else vp_json_null(w);
    put_text(w, "prompt", p->a->prompt);
}

void put_metadata(vp_json_writer *w, parsed *scratch, const sample *a) {
    static const char *const always[] = {"question", "answers", "image_id", "id"};
    vp_json *j = &scratch->json;
    if (!a->record || parse_json(scratch, a->record, strlen(a->record), NULL) != VP_OK) return;
    vp_json_key(w, "metadata");
    vp_json_begin_object(w);
    for (int i = 0; i < 4; i++) {
        uint32_t node = vp_json_get(j, 0, always[i]);
        vp_json_key(w, always[i]);
        if (node != VP_JSON_NONE) json_node(w, j, node);
        else if (i == 2 && a->image_path) { /* an image file is named after its id as a rule */
            const char *name = strrchr(a->image_path, '/') ? strrchr(a->image_path, '/') + 1 : a->image_path, *dot = strrchr(name, '.');
            char *stem = copy_text(name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
            json_lossy(w, stem);
            free(stem);
        } else vp_json_null(w);
    }
    for (uint32_t i = 1, member = 0; member < j->nodes[0].count; member++, i = j->nodes[i + 1].end) {
        char *key = node_text(j, i);
        int known = !key || !strcmp(key, always[0]) || !strcmp(key, always[1]) || !strcmp(key, always[2]) || !strcmp(key, always[3]);
        if (!known) {
            vp_json_key(w, key);
            json_node(w, j, i + 1);
        }
        free(key);
    }
    vp_json_end_object(w);
}
