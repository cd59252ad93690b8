/* test_families.c: token counts of other model families (vlmprof_families.h). Every golden file is checked row by row and column by column. The rest are vectors from
 * documents, properties, and one case for each trap that ports of these rules fall into. */
#define _DEFAULT_SOURCE 1 /* strsep */
#define VLMPROF_FAMILIES_IMPLEMENTATION
#include "vlmprof_families.h"
#include "support/check.h"
#include "support/golden_rows.h"

/* ------------------------------------------------------------------------------------------------------------- golden data */
enum { FIELDS_MOST = 24 };
/* splits a line at commas; returns the number of fields */
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
    memset(&c, 0x5a, sizeof c);
    vp_result result = vp_family_count(family, atoi(field[0]), atoi(field[1]), &c, NULL);
    check_note((result != VP_OK) == refused, __FILE__, line, "line %d, %sx%s: result %d, golden error \"%s\"", line, field[0], field[1], (int)result, field[first + 9]);
    if (refused || result != VP_OK) return;
    const int64_t got[9] = {c.resized_width_px, c.resized_height_px, c.rows, c.cols, c.views, c.feature_tokens, c.separator_tokens, c.marker_tokens, c.total_tokens};
    static const char *const names[9] = {"resized_width", "resized_height", "rows", "cols", "views", "features", "separators", "markers", "total"};
    for (int i = 0; i < 9; i++)
        check_note(got[i] == number_or_none(field[first + i]), __FILE__, line, "line %d, %sx%s: %s is %lld, expected %s", line, field[0], field[1], names[i],
                   (long long)got[i], field[first + i]);
}
static int row_count, golden_bad;
static void golden_file(const char *name) {
    static vp_family family;
    char relative[128], *header[FIELDS_MOST], *field[FIELDS_MOST], *text, *line, *next;
    int fields, first, number = 1;
    snprintf(relative, sizeof relative, "../shared/goldens/families/%s.csv", name); /* all rows; the copy has only every sixth */
    text = check_read(relative, NULL);
    snprintf(relative, sizeof relative, "families/%s.csv", name);
    if (!text) text = check_read(check_golden(relative), NULL);
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
        row_count++;
        golden_bad += check_state.case_failed != before;
    }
    CHECK(number > 40);
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
    printf("golden rows: %d, differing: %d\n", row_count, golden_bad);
}
/* ------------------------------------------------------------------------------------------------------------- vectors */
/* keys: "a=1 b=2" */
static int open_family(vp_family *family, const char *name, const char *keys) {
    const vp_family_preset *preset = vp_family_find(name);
    char copy[256], *p = copy;
    if (!CHECK(preset != NULL)) return 0;
    vp_family_default(preset, family);
    snprintf(copy, sizeof copy, "%s", keys);
    while (*p) {
        char *key = p, *value = strchr(p, '='), *end = p + strcspn(p, " ");
        p = *end ? end + 1 : end;
        *end = 0;
        *value++ = 0;
        if (!CHECK_INT(vp_family_set(family, key, value, NULL), VP_OK)) return 0;
    }
    return 1;
}
static vp_vision_count counted(const char *name, const char *keys, int32_t width, int32_t height) {
    static vp_family family;
    vp_vision_count c;
    memset(&c, 0xff, sizeof c);
    if (open_family(&family, name, keys)) vp_family_count(&family, width, height, &c, NULL);
    return c;
}
static int64_t total(const char *name, const char *keys, int32_t width, int32_t height) { return counted(name, keys, width, height).total_tokens; }
static int refused(const char *name, const char *keys, int32_t width, int32_t height) {
    static vp_family family;
    vp_vision_count c, before;
    vp_error error = {VP_OK, -1, "", ""};
    memset(&c, 0x33, sizeof c);
    before = c;
    if (!open_family(&family, name, keys)) return 0;
    vp_result result = vp_family_count(&family, width, height, &c, &error);
    return result != VP_OK && !memcmp(&c, &before, sizeof c) && error.code == result && error.text[0];
}
typedef struct vector { const char *family, *keys; int32_t width, height; int64_t tokens; } vector;
static const vector vectors[] = { /* from official tests, user reports and documentation */
    {"molmo", "", 640, 480, 740}, {"molmo", "", 4032, 3024, 1196}, {"molmo", "", 1080, 1920, 1204}, {"molmo", "max_crops=36", 1920, 1080, 2644}, {"molmo", "", 336, 336,
        316},
    {"molmo2", "", 300, 300, 410}, {"molmo2", "", 2000, 1500, 982}, {"molmo2", "", 1920, 1080, 1189}, {"llava-next", "", 161, 184, 1128}, {"llava-next", "", 640, 480,
        2340},
    {"llava-onevision", "", 640, 480, 2929}, {"llava-onevision", "", 1920, 1080, 7269}, {"internvl3", "", 640, 480, 3330}, {"internvl3", "", 633, 633, 258},
    {"internvl3", "", 634, 634, 1282}, {"qwen2-vl", "", 1300, 876, 1426}, {"qwen2-vl", "min_pixels=4096 max_pixels=262144", 1300, 876, 330}, {"qwen3.5", "", 4032, 3024,
        11844},
    {"qwen3.5", "max_pixels=1048576", 4032, 3024, 972}, {"qwen3-vl", "", 1481, 874, 1242}, {"qwen-vl-utils", "image_patch_size=16", 100, 100, 9}, {"glm-4.5v", "", 20,
        20, 9},
    {"glm-4.5v", "", 10, 300, 30}, {"glm-4.5v", "", 4000, 3000, 6030}, {"smolvlm", "", 512, 384, 862}, {"idefics3", "", 640, 480, 2227}, {"smolvlm2-2.2b", "", 500, 500,
        1377 + 39},
    {"gemma3", "do_pan_and_scan=1", 2500, 1000, 4 * 258}, {"gemma4", "", 900, 3, 282}, {"gemma4", "max_soft_tokens=1120", 1920, 1080, 1102}, {"mllama", "", 1920, 1080,
        1},
    {"llama4", "", 1920, 1080, 2322}, {"llama4", "", 1344, 1344, 2467}, {"phi-3.5-vision", "", 1300, 876, 757}, {"phi-3.5-vision", "num_crops=16", 1300, 876, 1921},
    {"phi-3.5-vision", "", 2000, 300, 745}, {"phi-3.5-vision", "num_crops=16", 1080, 1920, 2377}, {"phi-3.5-vision", "num_crops=16", 1920, 1080, 2353},
    {"phi-4-multimodal", "dynamic_hd=4", 3136, 3136, 1329}, {"phi-4-multimodal", "dynamic_hd=16", 3136, 3136, 4433}, {"phi-4-multimodal", "", 3136, 3136, 9585},
    {"deepseek-vl2", "", 3000, 500, 1401}, {"deepseek-ocr", "", 1000, 1400, 903}, {"deepseek-ocr", "", 641, 640, 693}, {"pixtral", "", 1000, 700, 2816},
    {"mistral-small-3.1", "", 4032, 3024, 2352}, {"minicpm-v-2.6", "", 2000, 500, 333}, {"minicpm-v-2.6", "", 500, 2000, 336}, {"minicpm-v-4.6", "", 1024, 1024, 442},
    {"kimi-vl", "", 300, 200, 88}, {"kimi-vl", "", 4000, 3000, 1036}, {"kimi-k2.5", "", 4000, 3000, 4200}, {"ovis2", "", 1600, 800, 2314},
    {"claude", "", 200, 200, 64}, {"claude", "", 1000, 1000, 1296}, {"claude", "", 1092, 1092, 1521}, {"claude", "", 1920, 1080, 1560}, {"claude", "", 4032, 3024, 1564},
    {"claude", "", 3840, 2160, 1560}, {"claude-hi-res", "", 1920, 1080, 2691}, {"claude-hi-res", "", 3840, 2160, 4784}, {"claude-hi-res", "", 4032, 3024, 4740},
    {"gpt-4o", "", 1024, 1024, 765}, {"gpt-4o", "", 2048, 4096, 1105}, {"gpt-4o", "", 640, 480, 425}, {"gpt-4o", "", 4032, 3024, 765}, {"openai_patches", "", 1024,
        1024, 1024},
    {"openai_patches", "", 1800, 2400, 1452}, {"openai_patches", "", 1920, 1080, 1508}, {"openai_patches", "patch_budget=2500 multiplier=1.2", 4032, 3024, 2942},
    {"openai_patches", "patch_budget=10000 max_side=6000 multiplier=1.2", 4032, 3024, 11868}, {"gemini_2", "", 384, 384, 258}, {"gemini-3", "", 1920, 1080, 1101},
    {"gemini-3", "", 4032, 3024, 1065}, {"gemini-3", "", 512, 512, 1090}, {"llava", "", 5, 9000, 576}, {"paligemma2", "", 5, 9000, 256}, {"aria", "", 3000, 10, 256}};
static void test_vectors(void) {
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        const vector *v = &vectors[i];
        check_case("vector %s %s %dx%d", v->family, v->keys, v->width, v->height);
        CHECK_INT(total(v->family, v->keys, v->width, v->height), v->tokens);
    }
}
/* ------------------------------------------------------------------------------------------------------------- traps */
/* the value of a column as text */
static const char *value_of(const vp_vision_count *c, const char *column) {
    static char text[64];
    const struct { const char *name; int64_t value; } all[] = {{"total", c->total_tokens}, {"views", c->views}, {"rows", c->rows}, {"cols", c->cols},
        {"feature_tokens", c->feature_tokens}, {"separator_tokens", c->separator_tokens}, {"resized_height_px", c->resized_height_px}};
    snprintf(text, sizeof text, "no such column");
    if (!strcmp(column, "grid")) snprintf(text, sizeof text, "%lldx%lld", (long long)c->rows, (long long)c->cols);
    if (!strcmp(column, "size")) snprintf(text, sizeof text, "%lldx%lld", (long long)c->resized_width_px, (long long)c->resized_height_px);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) if (!strcmp(column, all[i].name)) snprintf(text, sizeof text, "%lld", (long long)all[i].value);
    return text;
}
/* the traps that ports of these rules fall into: tests/golden/families/traps.txt */
static void test_traps(void) {
    char *file = check_read(check_golden("families/traps.txt"), NULL), *rest = file, *line;
    int rows = 0;
    while (file && (line = strtok_r(rest, "\n", &rest)) != NULL) {
        char *field[6], *at = line;
        if (*line == '#') { check_case("%s", line + 2); continue; }
        for (int i = 0; i < 6; i++) field[i] = (field[i] = strsep(&at, "|")) ? field[i] : line;
        const int32_t width = atoi(field[2]), height = atoi(field[3]);
        if (!strcmp(field[4], "error")) check_note(refused(field[0], field[1], width, height) == atoi(field[5]), __FILE__, __LINE__, "%s %dx%d", field[0], width, height);
        else {
            const vp_vision_count c = counted(field[0], field[1], width, height);
            const char *got = value_of(&c, field[4]);
            check_note(!strcmp(got, field[5]), __FILE__, __LINE__, "%s %s %dx%d: %s is %s, expected %s", field[0], field[1], width, height, field[4], got, field[5]);
        }
        rows++;
    }
    CHECK_INT(rows, 91);
    free(file);
    check_case("GLM counts two frames, so the limit is half the number");
    CHECK(total("glm-4.5v", "", 6000, 6000) <= 6144 && total("glm-4.5v", "", 6000, 6000) > 6000);
    check_case("Python's // of floats: the remainder of the C library");
    for (int i = 0; i < 200000; i++) {
        const double y = 1.1 + (double)(i * 7919 % 100003) / 30011.0, x = (double)(1 + i % 5000);
        if (!CHECK(vp_impl_remainder(x, y) == fmod(x, y))) break;
    }
    check_case("Ovis2: transformers transposes the tiles; the number is the same");
    CHECK_INT(total("ovis2", "", 1600, 800), total("ovis2_original", "", 1600, 800));
    check_case("unpublished rules are errors, with their own code");
    {
        static vp_family family;
        vp_vision_count c;
        if (open_family(&family, "gemini_2", "")) CHECK_INT(vp_family_count(&family, 385, 10, &c, NULL), VP_ERR_UNSUPPORTED);
        if (open_family(&family, "openai_patches", "")) CHECK_INT(vp_family_count(&family, 4000, 32, &c, NULL), VP_ERR_UNSUPPORTED);
    }
}
/* Published names, and their presets; the last ones are ambiguous or not known. */
static const char *const PUBLISHED[][2] = {
    {"Qwen3-VL-8B-Instruct", "qwen3_vl_hf"}, {"Qwen/Qwen2.5-VL-7B-Instruct", "qwen2_5_vl_hf"}, {"Qwen/Qwen2.5-VL-7B-Instruct-AWQ", "qwen2_5_vl_hf"},
    {"qwen2.5vl:7b", "qwen2_5_vl_hf"}, {"Qwen/Qwen3-VL-30B-A3B-Thinking-FP8", "qwen3_vl_hf"}, {"OpenGVLab/InternVL3-8B", "internvl"},
    {"OpenGVLab/InternVL2_5-8B-MPO", "internvl"}, {"OpenGVLab/InternVL3_5-8B-HF", "internvl"}, {"llava-hf/llava-onevision-qwen2-7b-ov-hf", "llava_onevision_hf"},
    {"llava-hf/llava-v1.6-mistral-7b-hf", "llava_next_hf"}, {"llava-hf/llama3-llava-next-8b-hf", "llava_next_hf"}, {"llava-hf/llava-1.5-7b-hf", "llava_1_5"},
    {"google/gemma-3-4b-it", "gemma3"}, {"google/gemma-3n-E4B-it", "gemma3n"}, {"microsoft/Phi-3.5-vision-instruct", "phi3_5_vision"},
    {"microsoft/Phi-4-multimodal-instruct", "phi4_multimodal"}, {"meta-llama/Llama-3.2-11B-Vision-Instruct", "mllama"},
    {"meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4"}, {"HuggingFaceTB/SmolVLM-Instruct", "smolvlm_2_2b"}, {"HuggingFaceTB/SmolVLM-256M-Instruct", "smolvlm"},
    {"HuggingFaceTB/SmolVLM2-2.2B-Instruct", "smolvlm_2_2b"}, {"HuggingFaceTB/SmolVLM2-500M-Video-Instruct", "smolvlm"}, {"allenai/Molmo-7B-D-0924", "molmo"},
    {"allenai/MolmoE-1B-0924", "molmo"}, {"allenai/Molmo2-8B", "molmo2"}, {"mistralai/Pixtral-12B-2409", "pixtral_hf"},
    {"mistralai/Mistral-Small-3.1-24B-Instruct-2503", "mistral3_hf"}, {"openbmb/MiniCPM-V-2_6", "minicpm_v_2_6"}, {"LiquidAI/LFM2-VL-1.6B", "lfm2_vl"},
    {"google/paligemma2-3b-pt-448", "paligemma_448"}, {"google/paligemma-3b-mix-224", "paligemma_224"}, {"AIDC-AI/Ovis2-8B", "ovis2_hf"},
    {"deepseek-ai/DeepSeek-OCR-2", "deepseek_ocr2"}, {"moonshotai/Kimi-VL-A3B-Instruct", "kimi_vl"}, {"zai-org/GLM-4.1V-9B-Thinking", "glm4v"},
    {"CohereLabs/command-a-vision-07-2025", "cohere2_vision"}, {"stepfun-ai/GOT-OCR-2.0-hf", "got_ocr2"}, {"gpt-4o-2024-08-06", "openai_tiles"},
    {"OpenGVLab/InternVL4-8B", ""}, {"openbmb/MiniCPM-V-4_7", ""}, {"AIDC-AI/Ovis2.5-9B", ""}, {"gpt-4o-mini", "openai_tiles_4o_mini"}, {"Qwen/Qwen3-8B", ""},
    {"SmolVLM-Instruct-AWQ", ""}, {"7B-Instruct", ""}, {"/", ""}, {"llava-hf/LLaVA-NeXT-Video-7B-hf", ""}, {"x/y/qwen3-vl/", ""}};

/* ------------------------------------------------------------------------------------------------------------- keys */
static void test_keys(void) {
    static vp_family family, before;
    vp_error error = {VP_OK, -1, "", ""};
    check_case("names: every preset is found by its name, aliases are unique, case and - _ . do not matter");
    for (int32_t i = 0; vp_family_at(i); i++) {
        char words[200], *word;
        CHECK(vp_family_find(vp_family_at(i)->name) == vp_family_at(i));
        snprintf(words, sizeof words, "%s", vp_family_at(i)->aliases);
        for (word = strtok(words, " "); word; word = strtok(NULL, " "))
            check_note(vp_family_find(word) == vp_family_at(i), __FILE__, __LINE__, "alias %s of %s finds another", word, vp_family_at(i)->name);
        CHECK_TEXT(vp_certainty_text(vp_family_at(i)->certainty), vp_family_at(i)->certainty == VP_CERTAINTY_EXECUTED ? "executed"
                   : vp_family_at(i)->certainty == VP_CERTAINTY_NUMBERS ? "numbers" : vp_family_at(i)->certainty == VP_CERTAINTY_READ ? "read" : "documented");
    }
    CHECK(vp_family_find("Qwen2.5-VL") == vp_family_find("qwen2_5_vl") && vp_family_find("InternVL3") == vp_family_find("internvl"));
    CHECK(vp_family_find("MolmoE") == vp_family_find("molmo"));
    for (size_t i = 0; i < sizeof PUBLISHED / sizeof *PUBLISHED; i++) {
        const vp_family_preset *preset = vp_family_find(PUBLISHED[i][0]);
        check_note(!strcmp(preset ? preset->name : "", PUBLISHED[i][1]), __FILE__, __LINE__, "%s is %s", PUBLISHED[i][0], preset ? preset->name : "none");
    }
    CHECK((int)vp_count_tokens("nonsense", 640, 480) == VP_ERR_NOT_FOUND && (int32_t)vp_count_tokens("Qwen/Qwen3-VL-8B-Instruct", 0, 480) == VP_ERR_RANGE);
    CHECK_INT(vp_count_tokens("Qwen/Qwen3-VL-8B-Instruct", 640, 480), 300);
    CHECK(!vp_family_find(NULL) && !vp_tier_find(NULL) && vp_count_tokens(NULL, 640, 480) == VP_ERR_NOT_FOUND);
    CHECK(!vp_family_find("") && !vp_family_find("qwen") && !vp_family_find("internvl3 internvl") && !vp_family_find("-") && !vp_family_at(-1));
    check_case("an unknown key: the error names the nearest key, and nothing changes");
    vp_family_default(vp_family_find("internvl"), &family);
    before = family;
    CHECK_INT(vp_family_set(&family, "max_patch", "3", &error), VP_ERR_NOT_FOUND);
    CHECK(strstr(error.text, "max_patches") != NULL);
    CHECK_INT(vp_family_set(&family, NULL, "3", &error), VP_ERR_RANGE);
    CHECK_TEXT(error.where, "key");
    CHECK_INT(vp_family_set_number(&family, NULL, 3, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_family_set(&family, "max_patches", NULL, &error), VP_ERR_RANGE);
    CHECK(strstr(error.text, "is NULL") != NULL);
    check_case("bad values are rejected and change nothing");
    {
        static const char *const bad[] = {"", "0", "-1", "1.5", "257", "x", "1x", "1e3", " 5", "99999999999999999999", "nan", "5."};
        for (size_t i = 0; i < sizeof bad / sizeof *bad - 1; i++)
            check_note(vp_family_set(&family, "max_patches", bad[i], NULL) == VP_ERR_RANGE, __FILE__, __LINE__, "\"%s\" was taken", bad[i]);
        CHECK_INT(vp_family_set_number(&family, "max_patches", NAN, NULL), VP_ERR_RANGE);
        CHECK(!memcmp(&family, &before, sizeof family));
    }
    vp_family_default(vp_family_find("gemma4"), &family);
    CHECK_INT(vp_family_set(&family, "max_soft_tokens", "281", NULL), VP_ERR_RANGE);
    vp_family_default(vp_family_find("aria"), &family);
    CHECK_INT(vp_family_set(&family, "max_image_size", "491", NULL), VP_ERR_RANGE);
    vp_family_default(vp_family_find("llava-next"), &family);
    CHECK_INT(vp_family_set(&family, "preset", "llava", &error), VP_ERR_RANGE);
    CHECK_INT(vp_family_set(&family, "preset", "granite_vision", NULL), VP_OK);
    CHECK_INT(family.value[VP_SLOT_TILE], 384);
    check_case("switches take 0, 1, false and true");
    vp_family_default(vp_family_find("gemma3"), &family);
    CHECK(vp_family_set(&family, "do_pan_and_scan", "true", NULL) == VP_OK && family.value[VP_SLOT_SPLIT] == 1);
    CHECK(vp_family_set(&family, "do_pan_and_scan", "0", NULL) == VP_OK && family.value[VP_SLOT_SPLIT] == 0);
    CHECK_INT(vp_family_set(&family, "do_pan_and_scan", "2", NULL), VP_ERR_RANGE);
    CHECK(vp_family_set(&family, "min_ratio_to_activate", "1.2", NULL) == VP_OK && family.ratio == 1.2);
    check_case("canvases given by the caller");
    static const int32_t one[1][2] = {{1, 1}}, bad[4][2] = {{1, 17}, {17, 1}, {0, 1}, {1, 0}};
    vp_family_default(vp_family_find("llava-next"), &family);
    for (int i = 0; i < 4; i++) CHECK_INT(vp_family_set_canvases(&family, &bad[i], 1, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_family_set_canvases(&family, one, 0, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_family_set_canvases(&family, one, 1, NULL), VP_OK);
    CHECK_INT(vp_family_set(&family, "size", "336", NULL), VP_OK); /* the list does not change */
    CHECK_INT(family.grid_count, 1);
    vp_family_default(vp_family_find("internvl"), &family);
    CHECK_INT(vp_family_set_canvases(&family, one, 1, NULL), VP_ERR_UNSUPPORTED);
}
/* ------------------------------------------------------------------------------------------------------------- properties */
static uint64_t state = 20261121; /* the seed */
static int32_t below(int32_t n) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int32_t)((state >> 33) % (uint64_t)n);
}
static int32_t any_side(void) { return 1 + below(1 << (1 + below(24))); }
static void check_bounds(const vp_family *family, int32_t width, int32_t height) {
    vp_vision_count c;
    const char *name = family->preset->name;
    if (vp_family_count(family, width, height, &c, NULL) != VP_OK) return;
    check_note(c.feature_tokens > 0 && c.separator_tokens >= 0 && c.marker_tokens >= 0 && c.total_tokens > 0, __FILE__, __LINE__, "%s %dx%d: counts", name, width,
        height);
    check_note(c.total_tokens == c.feature_tokens + c.separator_tokens + c.marker_tokens || !strcmp(name, "mllama"), __FILE__, __LINE__, "%s %dx%d: sum", name, width,
        height);
    check_note(c.resized_width_px != 0 && c.resized_height_px != 0 && c.rows >= -1 && c.cols >= -1 && c.views != 0, __FILE__, __LINE__, "%s %dx%d: zero", name, width,
        height);
    if (!strcmp(family->preset->rule, "smart") && !strcmp(name, "qwen2_vl_hf"))
        check_note(c.resized_width_px * c.resized_height_px <= family->value[VP_SLOT_MAX] || c.rows == 2 || c.cols == 2, __FILE__, __LINE__, "%s %dx%d: over the limit",
            name, width, height);
    if (!strcmp(family->preset->rule, "closest")) check_note(c.rows * c.cols <= family->value[VP_SLOT_MAX], __FILE__, __LINE__, "%s %dx%d: tiles", name, width, height);
}
static void test_properties(void) {
    static vp_family family;
    static const char *const turned[] = {"qwen2_vl_hf", "qwen3_vl_hf", "glm4v", "kimi_k25", "gemma4", "pixtral_hf", "mistral_common", "llama4", "mllama", "claude",
        "openai_tiles",
                                         "molmo", "molmo2", "nemotron_h_omni"};
    check_case("extreme sizes: no overflow, no zero, sums are consistent (seed 20261121)");
    for (int32_t i = 0; vp_family_at(i); i++) {
        static const int32_t sides[] = {1, 2, 3, 27, 28, 111, 112, 113, 4096, 32768, 1048576, 16777215, 16777216};
        const int count = (int)(sizeof sides / sizeof *sides);
        vp_family_default(vp_family_at(i), &family);
        for (int k = 0; k < count * count; k++) check_bounds(&family, sides[k / count], sides[k % count]);
        for (int k = 0; k < 3000; k++) check_bounds(&family, any_side(), any_side());
        CHECK(refused(vp_family_at(i)->name, "", 0, 5) && refused(vp_family_at(i)->name, "", 5, -1) && refused(vp_family_at(i)->name, "", 16777217, 5));
    }
    check_case("extreme keys: no overflow, sums are consistent");
    for (int32_t i = 0; vp_family_at(i); i++) {
        for (int k = 0; k < VP_FAMILY_KEYS_LIMIT; k++) {
            static const double numbers[] = {0, 1, 2, 3, 13, 63, 256, 4096, 65535, 65536, 1e6, 16777216, 1099511627776.0};
            for (size_t n = 0; n < sizeof numbers / sizeof *numbers && vp_family_at(i)->keys[k].name; n++) {
                vp_family_default(vp_family_at(i), &family);
                if (vp_family_set_number(&family, vp_family_at(i)->keys[k].name, numbers[n], NULL) != VP_OK) continue;
                for (int turn = 0; turn < 40; turn++) {
                    const int32_t width = any_side(), height = any_side();
                    vp_vision_count c;
                    if (vp_family_count(&family, width, height, &c, NULL) != VP_OK) continue;
                    check_note(c.feature_tokens >= 0 && c.separator_tokens >= 0 && c.marker_tokens >= 0 && c.total_tokens > 0 && c.rows >= -1 && c.cols >= -1
                                   && (c.total_tokens == c.feature_tokens + c.separator_tokens + c.marker_tokens || !strcmp(family.preset->name, "mllama")),
                               __FILE__, __LINE__, "%s with %s = %g, %dx%d: %lld tokens", family.preset->name, family.preset->keys[k].name, numbers[n], width, height,
                               (long long)c.total_tokens);
                }
            }
        }
    }
    check_case("rotated images give the rotated grid if the rule is symmetric");
    for (size_t i = 0; i < sizeof turned / sizeof *turned; i++) {
        vp_family_default(vp_family_find(turned[i]), &family);
        for (int k = 0; k < 5000; k++) {
            const int32_t w = 1 + below(4000), h = 1 + below(4000);
            vp_vision_count a, b;
            const vp_result first = vp_family_count(&family, w, h, &a, NULL), second = vp_family_count(&family, h, w, &b, NULL);
            if (!strcmp(turned[i], "nemotron_h_omni") && (a.rows == b.cols ? 0 : a.rows * a.cols == b.rows * b.cols)) continue; /* this rule makes the height even first
                                                                                                                                 * */
            check_note(first == second && (first != VP_OK || strcmp(turned[i], "nemotron_h_omni") == 0 || (a.rows == b.cols && a.cols == b.rows && a.feature_tokens
                == b.feature_tokens)),
                       __FILE__, __LINE__, "%s %dx%d and turned", turned[i], w, h);
        }
    }
    check_case("a higher limit never gives fewer tokens");
    static const char *const grows[] = {"qwen2_vl_hf", "qwen3_vl_hf", "qwen_vl_utils", "glm4v", "ernie4_5_vl", "internvl", "kimi_k25", "glm5_next", "molmo",
        "cohere2_vision", "claude"};
    for (size_t i = 0; i < sizeof grows / sizeof *grows; i++) {
        for (int k = 0; k < 300; k++) {
            const int32_t w = 200 + below(3000), h = 200 + below(3000);
            int64_t last = 0;
            vp_family_default(vp_family_find(grows[i]), &family);
            for (double limit = family.value[VP_SLOT_MAX] > 300 ? 1024 : 1; limit <= (double)vp_family_knob(&family)->fallback;
                limit *= family.value[VP_SLOT_MAX] > 300 ? 1.37 : 2) {
                vp_vision_count c;
                CHECK_INT(vp_family_set_number(&family, vp_family_knob(&family)->name, floor(limit), NULL), VP_OK);
                if (vp_family_set_number(&family, "min_pixels", 1, NULL) == VP_OK) {}
                if (vp_family_count(&family, w, h, &c, NULL) != VP_OK) continue;
                check_note(c.total_tokens >= last, __FILE__, __LINE__, "%s %dx%d at %.0f: %lld after %lld", grows[i], w, h, floor(limit), (long long)c.total_tokens,
                    (long long)last);
                last = c.total_tokens;
            }
        }
    }
}
/* ------------------------------------------------------------------------------------------------------------- inversion */
static void test_largest(void) {
    static vp_family family;
    static const int32_t photo[1][2] = {{4032, 3024}}, many[4][2] = {{100, 100}, {640, 480}, {1920, 1080}, {4032, 3024}};
    static const struct { const char *name; int64_t tokens; } cases[] = {{"qwen3-vl", 1000}, {"qwen2-vl", 500}, {"internvl", 1800}, {"smolvlm", 500}, {"kimi-k2.5",
        2000}, {"gemma4", 600},
                                                                     {"pixtral", 1000}, {"phi-4-multimodal", 2000}, {"molmo", 800}, {"glm5_next", 1234}, {"claude", 700}};
    int64_t value = 0;
    int unlimited = -1;
    vp_vision_count c;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_case("the largest limit of %s under %d tokens", cases[i].name, (int)cases[i].tokens);
        vp_family_default(vp_family_find(cases[i].name), &family);
        if (!CHECK_INT(vp_family_largest(&family, photo, 1, 1.0, cases[i].tokens, &value, &unlimited, NULL), VP_OK)) continue;
        CHECK_INT(unlimited, 0);
        CHECK_INT(vp_family_set_number(&family, vp_family_knob(&family)->name, (double)value, NULL), VP_OK);
        CHECK(vp_family_count(&family, 4032, 3024, &c, NULL) == VP_OK && c.total_tokens <= cases[i].tokens);
        if (strcmp(cases[i].name, "gemma4")) { /* whose next step is 1120 */
            CHECK_INT(vp_family_set_number(&family, vp_family_knob(&family)->name, (double)value + 1, NULL), VP_OK);
            CHECK(vp_family_count(&family, 4032, 3024, &c, NULL) != VP_OK || c.total_tokens > cases[i].tokens);
        } else CHECK_INT(value, 560);
    }
    check_case("a budget divided among several images; no possible value; no knob");
    vp_family_default(vp_family_find("qwen3-vl"), &family);
    CHECK_INT(vp_family_largest(&family, many, 4, 0.75, 2040, &value, &unlimited, NULL), VP_OK);
    CHECK_INT(unlimited, 1);
    CHECK_INT(vp_family_largest(&family, many, 4, 0.76, 2040, &value, &unlimited, NULL), VP_OK);
    CHECK_INT(unlimited, 0);
    CHECK_INT(vp_family_largest(&family, many, 4, NAN, 10, &value, &unlimited, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_family_largest(&family, many, 0, 1.0, 10, &value, &unlimited, NULL), VP_ERR_RANGE);
    vp_family_default(vp_family_find("smolvlm"), &family); /* a view is 64 tokens */
    CHECK_INT(vp_family_largest(&family, many, 4, 1.0, 10, &value, &unlimited, NULL), VP_ERR_NOT_FOUND);
    vp_family_default(vp_family_find("llava-1.5"), &family);
    CHECK_INT(vp_family_largest(&family, many, 4, 1.0, 10, &value, &unlimited, NULL), VP_ERR_NOT_FOUND);
}
/* ------------------------------------------------------------------------------------------------------------- checkpoints */
static vp_result from_texts(vp_family *family, const char *const texts[3], vp_error *error) {
    static vp_json_node nodes[3][500];
    static vp_json json[3];
    const vp_json *files[3] = {NULL, NULL, NULL};
    for (int i = 0; i < 3; i++)
        if (texts[i] && CHECK_INT(vp_json_parse(texts[i], strlen(texts[i]), nodes[i], 500, &json[i], NULL, NULL), VP_OK)) files[i] = &json[i];
    return vp_family_from_config(family, files, error);
}
#define FROM(...) from_texts(&family, (const char *const[3]){__VA_ARGS__}, NULL)
static void test_layouts(void) { /* transformers' own numbers */
    static vp_family family;
    static golden_rows rows;
    vp_vision_count c;
    if (golden_open(&rows, "families/layouts.jsonl")) while (golden_next(&rows)) {
        char *name = golden_text(&rows, "folder"), *texts[3] = {golden_text(&rows, "preprocessor"), golden_text(&rows, "processor"), golden_text(&rows, "config")};
        const uint32_t list = vp_json_get(&rows.json, 0, "counts");
        int64_t row[3];
        check_case("the checkpoint %s", name ? name : "?");
        if (CHECK_INT(FROM(texts[0], texts[1], texts[2]), VP_OK)) for (uint32_t i = 0; i < rows.json.nodes[list].count; i += 3) {
            for (uint32_t k = 0; k < 3; k++) CHECK_INT(vp_json_to_int(&rows.json, vp_json_at(&rows.json, list, i + k), &row[k]), VP_OK);
            if (!CHECK_INT(vp_family_count(&family, (int32_t)row[0], (int32_t)row[1], &c, NULL), VP_OK)) continue;
            /* some separators are image tokens */
            if (c.feature_tokens + c.separator_tokens != row[2]) CHECK_INT(c.feature_tokens, row[2]);
        }
        FREE_ALL(name, texts[0], texts[1], texts[2]);
    }
    CHECK_INT(rows.count, 75);
    check_case("image_processor that is null; defaults of the class");
    CHECK_INT(FROM("{\"max_pixels\": 99999}", "{\"image_processor\": null}", "{\"model_type\": \"qwen2_vl\"}"), VP_OK);
    CHECK_INT(family.value[VP_SLOT_MAX], 99999);
    CHECK_INT(FROM(NULL, "{\"image_processor\": {}}", "{\"model_type\": \"qwen2_vl\"}"), VP_OK);
    CHECK_INT(family.value[VP_SLOT_MAX], 1003520);
    CHECK_INT(FROM(NULL, NULL, "{\"model_type\": \"qwen2_vl\"}"), VP_OK);
    CHECK_INT(family.value[VP_SLOT_MAX], 12845056);
    CHECK_INT(FROM("{\"crop_size\": {\"height\": 84}}", NULL, "{\"model_type\": \"llava\", \"vision_config\": {\"image_size\": 84, \"patch_size\": 14}}"), VP_OK);
    CHECK_INT(family.value[VP_SLOT_TOKENS], 36);
    CHECK_INT(FROM("{\"size\": {\"height\": 84}}", NULL, "{\"model_type\": \"molmo2\"}"), VP_ERR_UNSUPPORTED);
    CHECK_INT(FROM("{\"vision_input_type\": \"vanilla\"}", NULL, "{\"model_type\": \"perception_lm\"}"), VP_ERR_UNSUPPORTED);
}
static void test_config(void) {
    static vp_family family;
    golden_rows rows;
    if (golden_open(&rows, "families/checkpoints.jsonl")) while (golden_next(&rows)) {
        char *preprocessor = golden_text(&rows, "preprocessor"), *config = golden_text(&rows, "config"),
             *name = golden_text(&rows, "name"), *key = golden_text(&rows, "key");
        int64_t value = -1;
        check_case("checkpoint of %s: %s %s", name ? name : "no family", preprocessor ? preprocessor : "", config ? config : "");
        if (CHECK_INT(FROM(preprocessor, NULL, config), golden_code(&rows)) && name) {
            CHECK_TEXT(family.preset->name, name);
            CHECK_INT(vp_json_to_int(&rows.json, vp_json_get(&rows.json, 0, "value"), &value), VP_OK);
            if (!key) CHECK_INT(family.value[VP_SLOT_TOKENS], value);
            for (int k = 0; k < VP_FAMILY_KEYS_LIMIT; k++)
                if (key && family.preset->keys[k].name && !strcmp(family.preset->keys[k].name, key)) CHECK_INT(family.value[family.preset->keys[k].slot], value);
        }
        FREE_ALL(preprocessor, config, name, key);
    }
    CHECK_INT(rows.count, 25);
    check_case("canvases given in a checkpoint");
    CHECK_INT(FROM("{\"image_grid_pinpoints\": [[384, 768], [768, 384]], \"size\": {\"shortest_edge\": 384}, \"patches_per_side\": 27}", NULL,
        "{\"model_type\": \"llava_next\"}"), VP_OK);
    CHECK(family.grid_count == 2 && family.value[VP_SLOT_TILE] == 384);
}
/* ------------------------------------------------------------------------------------------------------------- the command */
static void test_count_tokens(void) {
    check_case("vp_count_tokens");
    CHECK_INT(vp_count_tokens("smolvlm", 1920, 1080), 862);
    CHECK_INT(vp_count_tokens("qwen3-vl", 1920, 1080), vp_count_tokens("Qwen3_VL_HF", 1920, 1080));
    CHECK(vp_count_tokens("qwen3-vl", 1920, 1080) > 1000);
    CHECK_INT(vp_count_tokens("nosuch", 1920, 1080), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_count_tokens("qwen3-vl", 0, 1080), VP_ERR_RANGE);
    CHECK_INT(vp_count_tokens("qwen3-vl", 1, 1080), VP_ERR_RANGE);
}
int main(void) {
    RUN_TESTS(test_golden, test_vectors, test_traps, test_keys, test_properties, test_largest, test_config, test_layouts, test_count_tokens);
    return check_done("test_families");
}
