/* test_together.c: all headers for copying implemented in one file, as VLMPROF_IMPLEMENTATION promises: their private names do not collide. */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof_families.h"
#include "vlmprof_file.h"
#include "vlmprof_image.h"
#include "vlmprof_json.h"
#include "vlmprof_ranges.h"
#include "vlmprof_results.h"
#include "vlmprof_score.h"
#include "vlmprof_stages.h"
#include "vlmprof_statistics.h"
#include "vlmprof_torch_trace.h"
#include "vlmprof_trace.h"
#include "vlmprof_unicode.h"
#include "support/check.h"

/* Writes a file of one knob and one row; returns its text, or the word for the writer's error. */
static const char *written(const vp_results_knob *knob, const vp_results_row *row) {
    static char text[700];
    vp_json_writer writer;
    vp_results_head head = vp_results_head_default();
    head.dataset_name = "d", head.model = "m", head.device = "gpu", head.weights = "int8", head.accuracy_metric = "em";
    head.knobs = knob, head.knob_count = 1;
    vp_json_writer_init(&writer, text, sizeof text, 0);
    vp_results_begin(&writer, &head);
    const vp_result added = vp_results_add(&writer, row), result = vp_results_end(&writer);
    CHECK_INT(added, result);
    return result == VP_OK ? text : vp_result_text(result);
}
static void test_results(void) {
    static const vp_results_stage stages[] = {{"prefill", 2500000}, {"decode", 1}}, late[] = {{"prefill", 4000001}}, unnamed[] = {{NULL, 1}},
                                  twice[] = {{"a", 1}, {"a", 2}};
    static const vp_results_knob knob = {"batch", VP_KNOB_NUMBER, 4, NULL, "images"};
    static const struct { vp_results_knob knob; const char *text; } knobs[] = {
        {{"a", VP_KNOB_NUMBER, -0.5, NULL, NULL}, "{\"a\": -0.5}"}, {{"a", VP_KNOB_NUMBER, 1e300, NULL, NULL}, "{\"a\": 1e+300}"},
        {{"a", VP_KNOB_TEXT, 0, "x\"y", NULL}, "{\"a\": \"x\\\"y\"}"},
        {{"a", VP_KNOB_TRUTH, 1, NULL, NULL}, "{\"a\": true}"}, {{"a", VP_KNOB_TRUTH, 0, NULL, NULL}, "{\"a\": false}"},
        {{"a", VP_KNOB_NUMBER, (double)INFINITY, NULL, NULL}, NULL},
        {{"a", VP_KNOB_NUMBER, (double)NAN, NULL, NULL}, NULL}, {{"a", VP_KNOB_TEXT, 0, NULL, NULL}, NULL}, {{"a", VP_KNOB_TEXT, 0, "\xff", NULL}, NULL},
        {{"", VP_KNOB_NUMBER, 1, NULL, NULL}, NULL}, {{NULL, VP_KNOB_NUMBER, 1, NULL, NULL}, NULL}, {{"a", (vp_knob_type)9, 1, NULL, NULL}, NULL}};
    static const vp_results_knob fields[] = {{"kind", VP_KNOB_TEXT, 0, "word", NULL}, {"level", VP_KNOB_NUMBER, 2, NULL, NULL}, {"kind", VP_KNOB_TRUTH, 1, NULL, NULL}};
    vp_results_row row = vp_results_row_default(), bad[14];
    vp_stage_mark marks[4] = {{"request", 0, 90, SIZE_MAX}, {"a", 10, 20, 0}, {"b", 30, -1, 0}, {"a", 40, 45, 0}};
    vp_stage_clock clock = vp_stage_clock_over(marks, 4);
    vp_results_stage found[2];
    check_case("a result file of an engine: everything that is known, and knobs of each kind");
    row.sample_id = "cat.jpg", row.total_ns = 4000000, row.ttft_ns = 3000000, row.stages = stages, row.stage_count = 2;
    row.crops = 1, row.vision_tokens = 2, row.text_tokens = 3, row.prompt_tokens = 4, row.output_tokens = 0, row.accuracy = 0, row.text = "";
    row.image_width_px = 640, row.image_height_px = 480, row.fields = fields, row.field_count = 2; /* read as in vlmprof's own files */
    CHECK_TEXT(written(&knob, &row), "{\"dataset_name\": \"d\", \"model\": \"m\", \"weights\": \"int8\", \"accuracy_metric\": \"em\", "
               "\"provenance\": {\"device\": \"gpu\"}, \"knobs\": {\"batch\": 4}, \"knob_units\": {\"batch\": \"images\"}, "
               "\"per_sample_results\": [{\"sample_id\": \"cat.jpg\", "
               "\"T_total\": 4.0, \"TTFT\": 3.0, \"stages\": {\"prefill\": 2.5, \"decode\": 1e-06}, \"actual_image_size\": [480, 640], \"actual_num_crops\": 1, "
               "\"actual_vision_tokens\": 2, \"input_text_tokens\": 3, \"total_sequence_length\": 4, \"output_tokens\": 0, \"accuracy\": 0.0, \"pred\": \"\", "
               "\"metadata\": {\"kind\": \"word\", \"level\": 2}}]}");
    for (size_t i = 0; i < sizeof knobs / sizeof *knobs; i++)
        CHECK(knobs[i].text ? strstr(written(&knobs[i].knob, &row), knobs[i].text) != NULL : *written(&knobs[i].knob, &row) != '{');
    check_case("a result file of an engine: rows that are refused");
    for (int i = 0; i < 14; i++) bad[i] = row;
    bad[0].sample_id = NULL, bad[1].sample_id = "", bad[2].total_ns = 0, bad[3].ttft_ns = -2, bad[4].output_tokens = -2, bad[5].accuracy = (double)INFINITY;
    bad[6].text = "\xff";
    bad[7].stages = late, bad[8].stages = unnamed, bad[7].stage_count = bad[8].stage_count = 1;
    bad[9].stages = twice, bad[10].ttft_ns = row.total_ns + 1;
    bad[11].image_width_px = -1, bad[12].image_height_px = 0, bad[13].field_count = 3;
    for (int i = 0; i < 14; i++) CHECK(*written(&knob, &bad[i]) != '{');
    check_case("stages of a request from its marks: those directly inside, added by name, closed ones");
    clock.count = 4;
    CHECK(vp_results_stages(&clock, 0, found, 2) == 1 && !strcmp(found[0].name, "a") && found[0].ns == 15 && vp_results_stages(&clock, 4, found, 2) == 0);
    marks[2].end_ns = 35;
    CHECK(vp_results_stages(&clock, 0, found, 1) == 0 && vp_results_stages(&clock, 0, found, 2) == 2);
    clock.lost = 1; /* then the sums would lack something */
    CHECK(vp_results_stages(&clock, 0, found, 2) == 0);
}
int main(void) {
    test_results();
    check_case("all headers in one file");
    CHECK(vp_family_find("internvl") != NULL);
    CHECK_TEXT(vp_stage_name(VP_STAGE_VIT), "vit");
    CHECK(vp_unicode_is_space(0x2003));
    return check_done("test_together");
}
