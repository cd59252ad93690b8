/* vlmprof_results.h - v0.2.0 - result files of your own engine: one head, one row per sample - MIT licence
 *
 * Do this:
 *     char text[1000];
 *     vp_json_writer writer;
 *     const vp_results_knob batch = {"batch", VP_KNOB_NUMBER, 4, NULL, NULL};
 *     vp_results_head head = vp_results_head_default();
 *     vp_results_row row = vp_results_row_default();
 *     head.dataset_name = "vqa";
 *     head.knobs = &batch;
 *     head.knob_count = 1;
 *     row.sample_id = "q1";
 *     row.total_ns = 1500000;
 *     vp_json_writer_init(&writer, text, sizeof text, 0);
 *     vp_results_begin(&writer, &head);
 *     vp_results_add(&writer, &row);
 *     if (vp_results_end(&writer) == VP_OK) printf("%s\n", text);
 * It prints {"dataset_name": "vqa", "knobs": {"batch": 4}, "per_sample_results": [{"sample_id": "q1", "T_total": 1.5}]}
 *
 * One file describes one configuration. vlmprof report, best, policy, compare and fit read it (vlmprof help library).
 * Set what your engine knows: the defaults mean "not known", and are not written. Nothing is allocated. A writer with a
 * sink (vp_json_writer_init_sink) needs no buffer. Errors stay in the writer, so only the last result needs a look.
 *
 * Includes vlmprof.h if needed.
 * In one file, define VLMPROF_IMPLEMENTATION for all headers of vlmprof that it includes, or
 * VLMPROF_RESULTS_IMPLEMENTATION for only this one. The manual is in vlmprof.h. */
#ifndef VLMPROF_RESULTS_H
#define VLMPROF_RESULTS_H
#ifndef VLMPROF_H
#include "vlmprof.h"
#endif

VP_EXTERN_C_BEGIN

typedef enum vp_knob_type { VP_KNOB_NUMBER, VP_KNOB_TEXT, VP_KNOB_TRUTH } vp_knob_type;
/* A setting of your engine, or a field of a sample. Files whose knobs differ are different configurations. Knobs named
 * tier, top_k, num_active_blocks, weights, or image_knob (a text) with image_knob_value, are those of vlmprof. */
typedef struct vp_results_knob {
    const char *name; /* UTF-8, not empty */
    vp_knob_type type;
    double number;    /* of VP_KNOB_NUMBER, finite; of VP_KNOB_TRUTH, 0 is false */
    const char *text; /* of VP_KNOB_TEXT, UTF-8 */
    const char *unit; /* of VP_KNOB_NUMBER, beside its values in reports; NULL: none */
} vp_results_knob;
typedef struct vp_results_head {
    const char *dataset_name; /* only files of one data set are compared; NULL: each file is its own data set */
    const char *model, *device, *weights, *accuracy_metric; /* NULL: not known */
    const vp_results_knob *knobs; size_t knob_count;
} vp_results_head;
/* A stage of a request. The names of vlmprof's stages (preprocess, h2d, vit, connector, embed, prefill, head, sample,
 * decode, detok) also give T_vision_total, T_LLM_prefill, T_LLM_decode and TTFT. */
typedef struct vp_results_stage { const char *name; int64_t ns; } vp_results_stage;
typedef struct vp_results_row {
    const char *sample_id; /* UTF-8; the same sample has the same id in all files. NULL: sample_number is the id */
    int64_t sample_number; /* 0 or more */
    int64_t total_ns;      /* T_total, from the decoded image to the answer's text: 1 or more */
    int64_t ttft_ns;       /* time to the first token; -1: not known, or given by the stages */
    const vp_results_stage *stages; size_t stage_count; /* all in [0, total_ns]; a name appears once */
    int64_t crops; /* tiles without the global view; 0: the encoder sees one image; -1: not known */
    int64_t vision_tokens, text_tokens, prompt_tokens, output_tokens, image_width_px, image_height_px; /* the same */
    double accuracy;  /* score of the answer, 1 if it is right; NaN: not known */
    const char *text; /* the answer, UTF-8 (cut it with vp_utf8_valid_bytes if need be); NULL: not known */
    const vp_results_knob *fields; size_t field_count; /* of the sample, for report --by and policy --by; no units */
} vp_results_row;
VP_API vp_results_head vp_results_head_default(void);
VP_API vp_results_row vp_results_row_default(void);

/* Opens the file's object, writes the head, and opens the list of rows.
 * in:      writer  new
 * returns: the writer's result: VP_OK; VP_ERR_RANGE: a knob without a name, of an unknown type, or with a number that
 *          is not finite; VP_ERR_FORMAT: a text is not UTF-8, or a knob's text is NULL; VP_ERR_CAPACITY; the
 *          sink's error
 * numeric: numbers have the fewest digits that read back as the same double */
VP_API vp_result vp_results_begin(vp_json_writer *writer, const vp_results_head *head);
/* Writes the row of a sample. Times are written in ms.
 * returns: the writer's result: as vp_results_begin; VP_ERR_RANGE: no id, total_ns below 1, a stage time above it, a
 *          count out of range, a stage without a name or twice, an infinite accuracy, one side of an image without the
 *          other. Repeated ids are not detected: for several runs of a sample, write one row with their means */
VP_API vp_result vp_results_add(vp_json_writer *writer, const vp_results_row *row);
/* Closes the list and the object. Returns what vp_json_finish returns. */
VP_API vp_result vp_results_end(vp_json_writer *writer);

/* The stages of a request from its marks: those directly inside mark `mark`, in the order of the marks. Marks of one
 * name are added. Open ones are left out.
 * out:     stages  [capacity]
 * returns: their number; 0 without such a mark, if there are more than capacity, or if the clock lost marks
 * example: samples/02_time_and_report.c */
VP_API size_t vp_results_stages(const vp_stage_clock *clock, size_t mark, vp_results_stage *stages, size_t capacity);

VP_EXTERN_C_END
#endif

#if (defined(VLMPROF_IMPLEMENTATION) || defined(VLMPROF_RESULTS_IMPLEMENTATION)) \
    && !defined(VLMPROF_RESULTS_IMPLEMENTATION_DONE)
#define VLMPROF_RESULTS_IMPLEMENTATION_DONE
#include <math.h>
#include <string.h>

VP_EXTERN_C_BEGIN
VP_EXACT_BEGIN VP_EXACT_WIDTH

VP_API vp_results_head vp_results_head_default(void) {
    vp_results_head head;
    memset(&head, 0, sizeof head);
    return head;
}
VP_API vp_results_row vp_results_row_default(void) {
    vp_results_row row;
    memset(&row, 0, sizeof row);
    row.sample_number = row.total_ns = row.ttft_ns = -1;
    row.crops = row.vision_tokens = row.text_tokens = row.prompt_tokens = row.output_tokens = -1;
    row.image_width_px = row.image_height_px = -1;
    row.accuracy = (double)NAN;
    return row;
}
static void vp_impl_results_text(vp_json_writer *writer, const char *key, const char *text) {
    if (!text) return;
    vp_json_key(writer, key);
    vp_json_string(writer, text);
}
/* A count or, divided by 1e6, a time; -1 is not written. */
static void vp_impl_results_number(vp_json_writer *writer, const char *key, int64_t value, int is_time) {
    if (value == -1) return;
    if (value < 0 || !key || !*key) vp_json_fail(writer, VP_ERR_RANGE);
    vp_json_key(writer, key);
    if (is_time) vp_json_double(writer, (double)value / 1e6); else vp_json_int(writer, value);
}
static void vp_impl_results_knobs(vp_json_writer *writer, const char *key, const vp_results_knob *knobs, size_t count) {
    if (!count) return;
    vp_json_key(writer, key);
    vp_json_begin_object(writer);
    for (const vp_results_knob *knob = knobs; knob < knobs + count; knob++) {
        if (!knob->name || !*knob->name) vp_json_fail(writer, VP_ERR_RANGE);
        for (const vp_results_knob *other = knobs; other < knob; other++)
            if (other->name && knob->name && !strcmp(other->name, knob->name)) vp_json_fail(writer, VP_ERR_RANGE);
        vp_json_key(writer, knob->name);
        if (knob->type == VP_KNOB_TEXT) vp_json_string(writer, knob->text);
        else if (knob->type == VP_KNOB_TRUTH) vp_json_bool(writer, knob->number < 0 || knob->number > 0);
        else if (knob->type != VP_KNOB_NUMBER) vp_json_fail(writer, VP_ERR_RANGE);
        else if (fabs(knob->number) < 1e15 && knob->number <= floor(knob->number)) /* 4, not 4.0 */
            vp_json_int(writer, (int64_t)knob->number);
        else vp_json_double(writer, knob->number);
    }
    vp_json_end_object(writer);
}
VP_API vp_result vp_results_begin(vp_json_writer *writer, const vp_results_head *head) {
    vp_json_begin_object(writer);
    vp_impl_results_text(writer, "dataset_name", head->dataset_name);
    vp_impl_results_text(writer, "model", head->model);
    vp_impl_results_text(writer, "weights", head->weights);
    vp_impl_results_text(writer, "accuracy_metric", head->accuracy_metric);
    if (head->device) {
        vp_json_key(writer, "provenance");
        vp_json_begin_object(writer);
        vp_impl_results_text(writer, "device", head->device);
        vp_json_end_object(writer);
    }
    vp_impl_results_knobs(writer, "knobs", head->knobs, head->knob_count);
    size_t units = 0;
    for (size_t i = 0; i < head->knob_count; i++) {
        if (head->knobs[i].unit && !units++) {
            vp_json_key(writer, "knob_units");
            vp_json_begin_object(writer);
        }
        vp_impl_results_text(writer, head->knobs[i].name, head->knobs[i].unit);
    }
    if (units) vp_json_end_object(writer);
    vp_json_key(writer, "per_sample_results");
    vp_json_begin_array(writer);
    return writer->result;
}
VP_API vp_result vp_results_add(vp_json_writer *writer, const vp_results_row *row) {
    if (row->total_ns < 1 || row->ttft_ns > row->total_ns || (!row->sample_id && row->sample_number < 0)
        || (row->sample_id && !*row->sample_id)
        || ((row->image_width_px != -1 || row->image_height_px != -1)
            && (row->image_width_px < 1 || row->image_height_px < 1)))
        vp_json_fail(writer, VP_ERR_RANGE);
    vp_json_begin_object(writer);
    vp_impl_results_text(writer, "sample_id", row->sample_id);
    if (!row->sample_id) vp_impl_results_number(writer, "sample_id", row->sample_number, 0);
    vp_impl_results_number(writer, "T_total", row->total_ns, 1);
    vp_impl_results_number(writer, "TTFT", row->ttft_ns, 1);
    if (row->stage_count) {
        vp_json_key(writer, "stages");
        vp_json_begin_object(writer);
        for (size_t i = 0; i < row->stage_count; i++) {
            const vp_results_stage *stage = &row->stages[i];
            if (stage->ns < 0 || stage->ns > row->total_ns) vp_json_fail(writer, VP_ERR_RANGE);
            for (size_t k = 0; k < i; k++) /* a key twice would be one of the two */
                if (stage->name && row->stages[k].name && !strcmp(stage->name, row->stages[k].name))
                    vp_json_fail(writer, VP_ERR_RANGE);
            vp_impl_results_number(writer, stage->name, stage->ns, 1);
        }
        vp_json_end_object(writer);
    }
    if (row->image_width_px >= 0) {
        vp_json_key(writer, "actual_image_size");
        vp_json_begin_array(writer);
        vp_json_int(writer, row->image_height_px);
        vp_json_int(writer, row->image_width_px);
        vp_json_end_array(writer);
    }
    vp_impl_results_number(writer, "actual_num_crops", row->crops, 0);
    vp_impl_results_number(writer, "actual_vision_tokens", row->vision_tokens, 0);
    vp_impl_results_number(writer, "input_text_tokens", row->text_tokens, 0);
    vp_impl_results_number(writer, "total_sequence_length", row->prompt_tokens, 0);
    vp_impl_results_number(writer, "output_tokens", row->output_tokens, 0);
    if (row->accuracy < 0 || row->accuracy >= 0) { /* not NaN */
        vp_json_key(writer, "accuracy");
        vp_json_double(writer, row->accuracy);
    }
    vp_impl_results_text(writer, "pred", row->text);
    vp_impl_results_knobs(writer, "metadata", row->fields, row->field_count);
    vp_json_end_object(writer);
    return writer->result;
}
VP_API vp_result vp_results_end(vp_json_writer *writer) {
    vp_json_end_array(writer);
    vp_json_end_object(writer);
    return vp_json_finish(writer);
}
VP_API size_t vp_results_stages(const vp_stage_clock *clock, size_t mark, vp_results_stage *stages, size_t capacity) {
    size_t count = 0;
    for (size_t i = mark; !clock->lost && i < clock->count; i++) {
        const vp_stage_mark *at = &clock->marks[i];
        size_t k = 0;
        if (i > mark && at->inside == SIZE_MAX) break; /* the next request */
        if (at->inside != mark || at->end_ns < 0) continue;
        while (k < count && strcmp(stages[k].name, at->name)) k++;
        if (k == capacity) return 0; /* a part would look like all */
        if (k == count) {
            stages[count].name = at->name;
            stages[count++].ns = 0;
        }
        stages[k].ns += at->end_ns - at->begin_ns;
    }
    return count;
}

VP_EXACT_END
VP_EXTERN_C_END
#endif /* implementation */
