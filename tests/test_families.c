/* test_families.c: token counts of other model families (>>families). Every golden file is checked row by row and column by column; the rest are
 * vectors of documents, properties, and one case per trap that ports of these rules fall into. */
#define VLMPROF_CORE
#define VLMPROF_FAMILIES
#define VLMPROF_IMPLEMENTATION
#include "../vlmprof.h"
#include "check.h"

/* ------------------------------------------------------------------------------------------------------------- golden data */
enum { FIELDS_MOST = 24 };
/* cuts a line at its commas; returns the number of fields */
static int cut(char *line, char **fields) {
    int count = 0;
    for (;;) {
        char *comma = line + strcspn(line, ",\r\n");
        const char end = *comma;
        if (count < FIELDS_MOST) fields[count++] = line;
        *comma = 0;
        if (end != ',') return count;
        line = comma + 1;
    }
}
static int64_t number_or_none(const char *text) { return *text ? strtoll(text, NULL, 10) : -1; }

static void check_row(const vp_family *family, char **field, int first, int line) {
    vp_vision_count c;
    const int refused = *field[first + 9] != 0;
    vp_result result;
    memset(&c, 0x5a, sizeof c);
    result = vp_family_count(family, atoi(field[0]), atoi(field[1]), &c, NULL);
    check_note((result != VP_OK) == refused, __FILE__, line, "line %d, %sx%s: result %d, golden error \"%s\"", line, field[0], field[1], (int)result, field[first + 9]);
    if (refused || result != VP_OK) return;
    {
        const int64_t got[9] = {c.resized_width_px, c.resized_height_px, c.rows, c.cols, c.views, c.feature_tokens, c.separator_tokens, c.marker_tokens, c.total_tokens};
        static const char *const names[9] = {"resized_width", "resized_height", "rows", "cols", "views", "features", "separators", "markers", "total"};
        for (int i = 0; i < 9; i++)
            check_note(got[i] == number_or_none(field[first + i]), __FILE__, line, "line %d, %sx%s: %s is %lld, expected %s", line, field[0], field[1], names[i],
                       (long long)got[i], field[first + i]);
    }
}
static int golden_rows, golden_bad;
static void golden_file(const char *name) {
    static vp_family family;
    char relative[128], *header[FIELDS_MOST], *field[FIELDS_MOST], *text, *line, *next;
    int fields, first, number = 1;
    snprintf(relative, sizeof relative, "families/%s.csv", name);
    text = check_read(check_golden(relative), NULL);
    if (!text) { check_skip(relative, "golden data not here"); return; }
    check_case("golden %s", name);
    next = text + strcspn(text, "\n");
    *next++ = 0;
    fields = cut(text, header);
    first = fields - 10;
    CHECK_TEXT(header[first], "resized_width");
    for (line = next; *line; line = next) {
        const vp_family_preset *preset = vp_family_find(name);
        const int before = check_state.case_failed;
        next = line + strcspn(line, "\n");
        if (*next) *next++ = 0;
        number++;
        if (!CHECK_INT(cut(line, field), fields)) break;
        if (!strcmp(header[2], "family")) preset = vp_family_find(field[2]);
        if (!CHECK(preset != NULL)) break;
        vp_family_default(preset, &family);
        for (int i = 2; i < first; i++)
            if (strcmp(header[i], "family")) {
                CHECK_INT(vp_family_set(&family, header[i], field[i], NULL), VP_OK);
                CHECK_TEXT(preset->keys[i - 2].name, header[i]);
            }
        if (strcmp(header[2], "family")) CHECK_INT(preset->column_count, first - 2);
        check_row(&family, field, first, number);
        golden_rows++;
        golden_bad += check_state.case_failed != before;
    }
    CHECK(number > 200);
    if (check_state.case_failed) printf("  %s: %d failing checks\n", name, check_state.case_failed);
    free(text);
}
static const char *const golden_files[] = {
    "qwen2_vl_hf", "qwen2_5_vl_hf", "qwen3_vl_hf", "qwen_vl_utils", "glm4v", "glm46v", "ernie4_5_vl", "paddleocr_vl", "minimax_m3_vl", "hunyuan_vl", "video_llama_3",
    "kimi_k25", "gemma3", "gemma4", "internvl", "got_ocr2", "cohere2_vision", "aya_vision", "pixtral_hf", "mistral_common", "llama4", "mllama", "llava_next_hf",
    "llava_next_original", "llava_onevision_hf", "idefics3_smolvlm", "molmo2", "phi4_multimodal", "ovis2_hf", "ovis2_original", "lfm2_vl", "minicpm_v_2_6",
    "minicpm_v_4_6", "deepseek_vl2", "deepseek_ocr_unlimited_ocr", "deepseek_ocr2", "aria", "step3p7", "nemotron_h_omni", "perception_lm", "glm5_next",
    "muse_glimmer", "granite_docling", "constant_families"};
static void test_golden(void) {
    for (size_t i = 0; i < sizeof golden_files / sizeof *golden_files; i++) golden_file(golden_files[i]);
    printf("golden rows: %d, differing: %d\n", golden_rows, golden_bad);
}

int main(void) {
    test_golden();
    return check_done("test_families");
}
