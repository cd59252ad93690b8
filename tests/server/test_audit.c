/* test_audit.c: `vlmprof audit`: the sizes at the corners of families' rules, the verdict on synthetic counts for every cause, and the command against this test's
 * server, which counts by the rule in the model's name, "qwen2-vl,max_pixels=1003520,offset=2,ignore". */
#define _POSIX_C_SOURCE 200809L
#include "base/options.h"
#include "server/checks/audit.h"
#include "support/check.h"
#include "support/hostile_server.h"
#include "support/program.h"
#include <signal.h>

static const vp_family_preset *preset_of(const char *name) {
    const vp_family_preset *preset = vp_family_find(name);
    if (!preset) { printf("no family %s\n", name); abort(); }
    return preset;
}
static int64_t tokens(const vp_family *family, int32_t width, int32_t height) {
    vp_vision_count count;
    return vp_family_count(family, width, height, &count, NULL) == VP_OK ? count.total_tokens : -1;
}

/* ---- corners */
static struct corner corners[2][CORNERS_MOST];
static struct text_list notes;
static size_t corners_for(const vp_family *family, int64_t pixels, size_t most, int which) {
    text_list_free(&notes);
    notes.items = NULL;
    notes.count = 0;
    return corners_of(family, pixels, most, corners[which], &notes);
}
static void test_corners(void) {
    static const size_t mosts[] = {CORNERS_LEAST, CORNERS_DEFAULT, 60};
    check_case("corners of all families: the requested number, accepted by the family, small enough, no duplicates, reproducible");
    for (int32_t i = 0; vp_family_at(i); i++) {
        vp_family family;
        vp_family_default(vp_family_at(i), &family);
        for (size_t k = 0; k < 3; k++) {
            const size_t count = corners_for(&family, 4194304, mosts[k], 0), again = corners_for(&family, 4194304, mosts[k], 1);
            check_note(count >= CORNERS_LEAST && count <= mosts[k] && count == again, __FILE__, __LINE__, "%s: %zu of %zu", family.preset->name, count, mosts[k]);
            CHECK(!memcmp(corners[0], corners[1], count * sizeof *corners[0]));
            for (size_t a = 0; a < count; a++) {
                const struct corner *corner = &corners[0][a];
                check_note(tokens(&family, corner->width_px, corner->height_px) == corner->count.total_tokens && corner->count.total_tokens > 0, __FILE__, __LINE__,
                           "%s: %dx%d", family.preset->name, corner->width_px, corner->height_px);
                CHECK((int64_t)corner->width_px * corner->height_px <= 4194304);
                for (size_t b = 0; b < a; b++) CHECK(corners[0][b].width_px != corner->width_px || corners[0][b].height_px != corner->height_px);
            }
        }
    }
    check_case("corners: the count changes between a pixel below a step and a pixel above it; thin, wide, tiny and large ones");
    for (int32_t i = 0; vp_family_at(i); i++) {
        vp_family family;
        size_t count, steps = 0, thin = 0, wide = 0, tiny = 0;
        vp_family_default(vp_family_at(i), &family);
        if (!strcmp(family.preset->rule, "constant") || !strcmp(family.preset->rule, "gemini")) continue;
        count = corners_for(&family, 4194304, CORNERS_DEFAULT, 0);
        for (size_t a = 0; a < count; a++) {
            const struct corner *at = &corners[0][a], *before = at - 1;
            wide += at->width_px >= 30 * at->height_px;
            thin += at->height_px >= 30 * at->width_px;
            tiny += at->width_px <= 32 && at->height_px <= 32;
            if (strncmp(at->why, "at a ", 5) || !strstr(at->why, " step")) continue;
            if (!a || strncmp(before->why, "below a ", 8) || !strstr(before->why, " step")) continue; /* a step directly above another */
            steps++;
            CHECK(before->count.total_tokens != at->count.total_tokens);
            CHECK(at->width_px - before->width_px + at->height_px - before->height_px == 1 || at->width_px - before->width_px == 1);
        }
        check_note((steps >= 2 || !strcmp(family.preset->name, "mllama") || !strcmp(family.preset->name, "gemma3") || !strcmp(family.preset->name, "aria")) && tiny,
                   __FILE__,
                   __LINE__, "%s: %zu steps, %zu tiny", family.preset->name, steps, tiny);
        check_note(wide && thin, __FILE__, __LINE__, "%s: %zu wide, %zu thin", family.preset->name, wide, thin);
    }
    check_case("corners: many, spread over all steps");
    {
        vp_family family;
        int32_t least = INT32_MAX, most = 0;
        vp_family_default(preset_of("qwen2-vl"), &family);
        for (size_t a = 0, count = corners_for(&family, 4194304, 60, 0); a < count; a++) {
            if (strcmp(corners[0][a].why, "at a width step")) continue;
            if (corners[0][a].width_px < least) least = corners[0][a].width_px;
            if (corners[0][a].width_px > most) most = corners[0][a].width_px;
        }
        CHECK(least < 1000 && most > 6000);
    }
    check_case("corners: the sizes at which limits start to apply, and the limits that no image reaches");
    {
        vp_family family, lifted;
        size_t count, found = 0, lower = 0;
        vp_family_default(preset_of("qwen2-vl"), &family);
        CHECK_INT(vp_family_set(&family, "max_pixels", "1003520", NULL), VP_OK);
        lifted = family;
        CHECK_INT(vp_family_set(&lifted, "max_pixels", "1099511627776", NULL), VP_OK);
        count = corners_for(&family, 4194304, CORNERS_DEFAULT, 0);
        CHECK_INT(notes.count, 0);
        for (size_t i = 0; i < count; i++) {
            const struct corner *at = &corners[0][i];
            if (!strcmp(at->why, "at an upper limit")) {
                found++;
                CHECK(tokens(&lifted, at->width_px, at->height_px) != at->count.total_tokens);
                CHECK(tokens(&lifted, at->width_px - 1, at->height_px - 1) == tokens(&family, at->width_px - 1, at->height_px - 1));
            }
            lower += !strcmp(at->why, "at a lower limit");
        }
        CHECK_INT(found, 1);
        CHECK_INT(lower, 1);
        vp_family_default(preset_of("qwen2-vl"), &family);
        corners_for(&family, 4194304, CORNERS_DEFAULT, 0);
        CHECK_INT(notes.count, 1);
        CHECK(notes.count == 1 && strstr(notes.items[0], "max_pixels = 12845056 is not tested"));
        corners_for(&family, 20000000, CORNERS_DEFAULT, 0);
        CHECK_INT(notes.count, 0);
        text_list_free(&notes);
    }
}
static void test_scene(void) {
    static const int32_t sides[][2] = {{1, 1}, {8, 8}, {640, 480}, {1, 900}};
    check_case("synthetic pictures: equal seeds give equal pictures, other seeds other pictures, with many colours");
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        struct picture one, same, other;
        vp_image image;
        scene_draw(sides[i][0], sides[i][1], 7, &one);
        scene_draw(sides[i][0], sides[i][1], 7, &same);
        scene_draw(sides[i][0], sides[i][1], 8, &other);
        CHECK(one.byte_count == same.byte_count && !memcmp(one.bytes, same.bytes, one.byte_count));
        CHECK(one.byte_count != other.byte_count || memcmp(one.bytes, other.bytes, one.byte_count));
        CHECK_INT(vp_image_decode((const uint8_t *)one.bytes, one.byte_count, &image, NULL), VP_OK);
        CHECK(image.width_px == sides[i][0] && image.height_px == sides[i][1]);
        if (sides[i][0] == 640) {
            size_t changes = 0;
            for (size_t k = 3; k < 640u * 480 * 3; k++) changes += image.rgb[k] != image.rgb[k - 3];
            CHECK(changes > 640u * 480 / 50 && changes < 640u * 480 * 2); /* runs of equal colour, not noise */
        }
        vp_image_free(&image);
        picture_free(&one);
        picture_free(&same);
        picture_free(&other);
    }
}

/* ---- the verdict */
static struct audit_rule rule, truth;
static struct audit_size sizes[CORNERS_MOST];
static size_t size_count;
static struct audit_verdict verdict;
static struct text_list words;
/* sets keys "a=1 b=2" */
static void set_keys(vp_family *family, const char *keys) {
    char text[200], *rest = text, *word;
    snprintf(text, sizeof text, "%s", keys);
    while ((word = strtok_r(rest, " ", &rest)) != NULL) {
        char *value = strchr(word, '=');
        *value++ = 0;
        CHECK_INT(vp_family_set(family, word, value, NULL), VP_OK);
    }
}
/* Counts from a server that uses `measured`, for the sizes that audit sends for `asked`. */
static void measure(const char *asked, const char *asked_keys, const char *measured, const char *measured_keys, int64_t offset) {
    memset(&rule, 0, sizeof rule);
    memset(&truth, 0, sizeof truth);
    vp_family_default(preset_of(asked), &rule.family);
    set_keys(&rule.family, asked_keys);
    vp_family_default(preset_of(measured), &truth.family);
    set_keys(&truth.family, measured_keys);
    const size_t count = corners_for(&rule.family, 4194304, CORNERS_DEFAULT, 0);
    size_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct corner *corner = &corners[0][i];
        const int64_t its = tokens(&truth.family, corner->width_px, corner->height_px);
        if (its >= 0) sizes[size_count++] = (struct audit_size){corner->width_px, corner->height_px, corner->count.total_tokens, its + offset, 0, 0, 0};
    }
}
static void judge(void) {
    audit_judge(&rule, sizes, size_count, &verdict);
    text_list_free(&words);
    memset(&words, 0, sizeof words);
    audit_words(&rule, sizes, size_count, &verdict, &words);
}
static void says(const char *text) {
    int found = 0;
    for (size_t i = 0; i < words.count; i++) found |= strstr(words.items[i], text) != NULL;
    check_note(found, __FILE__, __LINE__, "%s: \"%s\" is not in \"%s\" \"%s\"", rule.family.preset->name, text, words.items[0], words.count > 1 ? words.items[1] : "");
}
static void is_cause(audit_cause cause) {
    check_note(!verdict.is_equal && verdict.cause == cause, __FILE__, __LINE__, "%s: %s, not %s", rule.family.preset->name, audit_cause_name(verdict.cause),
               audit_cause_name(cause));
}
static int varies(void) {
    int differ = 0;
    for (size_t i = 1; i < size_count; i++) differ |= sizes[i].by_rule != sizes[0].by_rule;
    return differ;
}
static void test_equal(void) {
    check_case("all families: equal counts, and a constant offset");
    for (int32_t i = 0; vp_family_at(i); i++) {
        const char *name = vp_family_at(i)->name;
        static const int64_t offsets[] = {0, 2, -2, 16, 40};
        for (size_t k = 0; k < sizeof offsets / sizeof *offsets; k++) {
            measure(name, "", name, "", offsets[k]);
            judge();
            if (k == 4 && !varies()) CHECK(!verdict.is_equal); /* without a template, the count differs */
            else if (!strcmp(name, "mllama") && offsets[k] < 0) CHECK(!verdict.is_equal);
            else {
                check_note(verdict.is_equal && verdict.offset == offsets[k] && !verdict.different, __FILE__, __LINE__, "%s %+lld", name, (long long)offsets[k]);
                says(offsets[k] ? "constant offset" : "equal: the server counts all");
            }
        }
    }
    measure("qwen2-vl", "", "qwen2-vl", "", -1);
    judge();
    says("1 token fewer for every image");
}
static void test_dropped(void) {
    static const char *const names[] = {"qwen2-vl", "qwen2.5-vl", "llava-1.5", "llava-next", "internvl", "idefics3", "smolvlm", "gemma3", "openai_tiles", "mllama"};
    check_case("a server that drops the image, and one that counts placeholders");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (int64_t constant = 0; constant <= 3; constant += constant ? 2 : 1) {
            if (constant && !strcmp(names[i], "mllama")) continue; /* its sequence has one token */
            measure(names[i], "", names[i], "", 0);
            for (size_t k = 0; k < size_count; k++) sizes[k].measured = constant;
            judge();
            is_cause(constant ? AUDIT_PLACEHOLDERS : AUDIT_DROPPED);
            CHECK_INT(verdict.first, 0);
            CHECK_INT(verdict.constant, constant);
            says(constant == 3 ? "every image adds 3 tokens" : constant ? "every image adds 1 token;" : "no image adds a token");
        }
    }
}
/* each knob maps to its family's key, and a server that ignores it is found */
static void test_knobs(void) {
    static const struct { const char *family, *path, *value, *keys; } rows[] = {
        {"qwen2-vl", "mm_processor_kwargs.max_pixels", "200704", "max_pixels=200704"},
        {"qwen2.5-vl", "mm_processor_kwargs", "{\"min_pixels\":50176,\"max_pixels\":100352}", "min_pixels=50176 max_pixels=100352"},
        {"qwen3-vl", "mm_processor_kwargs.size.longest_edge", "1048576", "max_pixels=1048576"},
        {"qwen3-vl", "mm_processor_kwargs.size", "{\"shortest_edge\":4096,\"longest_edge\":1048576}", "min_pixels=4096 max_pixels=1048576"},
        {"internvl", "mm_processor_kwargs.max_dynamic_patch", "4", "max_patches=4"},
        {"internvl", "max_dynamic_patch", "6", "max_patches=6"},
        {"smolvlm", "mm_processor_kwargs.size.longest_edge", "1024", "longest_edge=1024"},
        {"gemma3", "mm_processor_kwargs.do_pan_and_scan", "true", "do_pan_and_scan=1"},
        {"llava-onevision", "mm_processor_kwargs.anyres_max", "4", "anyres_max=4"},
        {"minicpm-v-2.6", "mm_processor_kwargs.max_slice_nums", "\"4\"", "max_slice_nums=4"}};
    check_case("knobs of requests map to keys; ignored knobs are found");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const vp_chat_knob knob = {rows[i].path, rows[i].value};
        vp_error error = {VP_OK, -1, "", ""};
        measure(rows[i].family, "", rows[i].family, rows[i].keys, 2);
        CHECK_INT(audit_set_knob(&rule, &knob, &error), VP_OK);
        check_note(!memcmp(&rule.family.value, &truth.family.value, sizeof rule.family.value), __FILE__, __LINE__, "%s %s", rows[i].family, rows[i].path);
        measure(rows[i].family, rows[i].keys, rows[i].family, "", 2); /* the rule as the knob sets it; the server unchanged */
        for (size_t k = 0; k < size_count; k++) {
            sizes[k].has_without = 1;
            sizes[k].measured_without = sizes[k].measured;
            sizes[k].by_rule_without = sizes[k].measured - 2;
        }
        judge();
        is_cause(AUDIT_KNOB_IGNORED);
        says("the same with and without it");
        if (i == 0 || i == 4) CHECK_INT(verdict.offset, 2);
        sizes[0].measured_without++; /* the knob has an effect, but not the expected one */
        judge();
        CHECK(verdict.cause != AUDIT_KNOB_IGNORED && !verdict.is_equal);
    }
    static const vp_chat_knob none = {"temperature", "0"}, low = {"image_url.detail", "\"low\""}, high = {"image_url.detail", "\"high\""},
                              wrong = {"mm_processor_kwargs.max_pixels", "\"many\""}, inside = {"a", "{\"b\":{\"c\":1}}"};
    vp_vision_count count;
    measure("openai_tiles", "", "openai_tiles", "", 0);
    CHECK_INT(audit_set_knob(&rule, &none, NULL), VP_ERR_NOT_FOUND);
    CHECK_INT(audit_set_knob(&rule, &inside, NULL), VP_ERR_NOT_FOUND);
    CHECK_INT(audit_set_knob(&rule, &high, NULL), VP_OK);
    CHECK_INT(audit_count(&rule, 1024, 1024, &count, NULL), VP_OK);
    CHECK_INT(count.total_tokens, 765);
    CHECK_INT(audit_set_knob(&rule, &low, NULL), VP_OK);
    CHECK_INT(audit_count(&rule, 1024, 1024, &count, NULL), VP_OK);
    CHECK_INT(count.total_tokens, 85);
    measure("qwen2-vl", "", "qwen2-vl", "", 0);
    CHECK_INT(audit_set_knob(&rule, &low, NULL), VP_ERR_NOT_FOUND);
    CHECK_INT(audit_set_knob(&rule, &wrong, NULL), VP_ERR_RANGE);
    check_case("a knob that changes nothing");
    for (size_t k = 0; k < 4; k++) {
        sizes[k].has_without = 1;
        sizes[k].measured_without = sizes[k].by_rule_without = sizes[k].measured;
    }
    judge();
    CHECK(verdict.is_equal && verdict.without_effect == AUDIT_BY_RULE);
    says("by the rule, they change nothing");
    sizes[0].by_rule_without++;
    judge();
    CHECK(verdict.is_equal && verdict.without_effect == AUDIT_AS_STARTED);
    says("already seems to be configured this way");
    sizes[0].measured_without++;
    judge();
    CHECK(verdict.is_equal && verdict.without_effect == AUDIT_HAS_EFFECT);
}
static void test_limits(void) {
    static const struct { const char *family, *key, *value; } rows[] = {
        {"qwen2-vl", "max_pixels", "1003520"}, {"qwen2.5-vl", "max_pixels", "501760"}, {"qwen2.5-vl", "min_pixels", "200704"}, {"qwen3-vl", "max_pixels", "1048576"},
        {"qwen3-vl", "min_pixels", "4096"}, {"glm-4.1v", "max_pixels", "1003520"}, {"kimi_vl", "in_token_limit", "1024"}, {"kimi_k25", "max_patches", "4096"},
        {"glm5", "max_image_tokens", "1024"}, {"internvl", "max_patches", "6"}, {"internvl", "max_patches", "1"}, {"internvl", "image_seq_length", "64"},
        {"smolvlm", "longest_edge", "1024"}, {"idefics3", "longest_edge", "728"}, {"idefics3", "image_seq_len", "64"}, {"gemma3", "do_pan_and_scan", "1"},
        {"gemma4", "max_soft_tokens", "560"}, {"pixtral", "longest_edge", "512"}, {"mistral3", "longest_edge", "1024"}, {"minicpm-v-2.6", "max_slice_nums", "4"},
        {"llava-onevision", "anyres_max", "4"}, {"phi4_multimodal", "dynamic_hd", "16"}, {"phi3_5_vision", "num_crops", "16"}, {"ovis2", "max_patches", "4"},
        {"openai_tiles", "tile_tokens", "129"}, {"openai_patches", "patch_budget", "2500"}, {"claude", "max_image_tokens", "784"}, {"molmo", "max_crops", "36"},
        {"molmo2", "max_crops", "24"}, {"llama4", "max_patches", "4"}, {"deepseek_ocr", "max_patches", "4"}, {"lfm2_vl", "max_tiles", "4"},
        {"perception_lm", "max_num_tiles", "16"},
        {"minicpm_v_4_6", "downsample_mode", "4x"}};
    check_case("another limit is found by inversion, with and without tokens around the images");
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        const char *key = rows[i / 2].key;
        char keys[100];
        size_t fit = 0;
        snprintf(keys, sizeof keys, "%s=%s", key, rows[i / 2].value);
        measure(rows[i / 2].family, "", rows[i / 2].family, keys, i % 2 ? 2 : 0);
        judge();
        is_cause(AUDIT_LIMIT);
        check_note(verdict.fit_count == 1 && !strcmp(verdict.fits[0].key, key), __FILE__, __LINE__, "%s %s: %zu fits, %s", rows[i / 2].family, keys,
                   verdict.fit_count, verdict.fit_count ? verdict.fits[0].key : "none");
        if (!verdict.fit_count) continue;
        check_note(verdict.fit_offset == (i % 2 ? 2 : 0), __FILE__, __LINE__, "%s %s: offset %lld", rows[i / 2].family, keys, (long long)verdict.fit_offset);
        if (strcmp(rows[i / 2].value, "4x"))
            check_note(verdict.fits[0].lowest <= atoll(rows[i / 2].value) && verdict.fits[0].highest >= atoll(rows[i / 2].value), __FILE__, __LINE__,
                       "%s %s: %lld..%lld", rows[i / 2].family, keys, (long long)verdict.fits[0].lowest, (long long)verdict.fits[0].highest);
        vp_family fitted = rule.family; /* the value in the message gives these counts */
        CHECK_INT(vp_family_set_number(&fitted, verdict.fits[0].key, (double)verdict.fits[0].value, NULL), VP_OK);
        for (size_t k = 0; k < size_count; k++) fit += tokens(&fitted, sizes[k].width_px, sizes[k].height_px) + verdict.fit_offset == sizes[k].measured;
        CHECK_INT(fit, size_count);
        says("another limit configured: all counts fit ");
    }
    measure("qwen2-vl", "", "qwen2-vl", "max_pixels=1003520", 0);
    judge();
    says("fit qwen2_vl_hf with max_pixels = 1003520");
    measure("minicpm_v_4_6", "", "minicpm_v_4_6", "downsample_mode=4x", 0);
    judge();
    says("downsample_mode = 4x");
    measure("internvl", "", "gemma3", "", 0);
    judge();
    is_cause(AUDIT_LIMIT);
    says("max_patches = 1; they also fit the published rule of gemma3");
    measure("deepseek_ocr2", "", "gemma3", "", 0);
    judge();
    is_cause(AUDIT_FIXED);
    measure("paddleocr_vl", "", "qwen2-vl", "", 0);
    judge();
    says("max_pixels of at least ");
    CHECK(verdict.fits[0].highest == AUDIT_UNBOUNDED && verdict.fits[0].value == verdict.fits[0].lowest);
    check_case("both limits");
    measure("qwen2.5-vl", "", "qwen2.5-vl", "min_pixels=200704 max_pixels=1003520", 2);
    judge();
    is_cause(AUDIT_LIMIT);
    CHECK_INT(verdict.fit_count, 2);
    CHECK(verdict.fits[0].lowest <= 1003520 && verdict.fits[0].highest >= 1003520 && !strcmp(verdict.fits[0].key, "max_pixels"));
    CHECK(verdict.fits[1].lowest <= 200704 && verdict.fits[1].highest >= 200704 && !strcmp(verdict.fits[1].key, "min_pixels"));
    says(" and min_pixels = ");
    says("with +2 tokens around every image");
}
/* llama.cpp's rounding */
static void test_rounding(void) {
    static const char *const limits[] = {"", "min_pixels=6272", "min_pixels=50176 max_pixels=200704"};
    check_case("halves rounded up, with and without other limits");
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        measure("qwen2-vl", "", "qwen2-vl", limits[i], 3);
        for (size_t k = 0; k < size_count; k++) {
            const int32_t width = sizes[k].width_px, height = sizes[k].height_px;
            sizes[k].measured = 3 + tokens(&truth.family, width + (width % 28 == 14), height + (height % 28 == 14));
        }
        judge();
        is_cause(AUDIT_ROUNDING);
        CHECK_INT(verdict.fit_count, i);
        CHECK_INT(verdict.fit_offset, 3);
        says("the server rounds a side of n + 1/2 units of 28 px up");
        if (i) says("min_pixels = ");
    }
}
/* A square at the limit: in double precision its side is one part in 2^53 below 16 units; in single precision it is not. */
static void test_32_bit(void) {
    static const int32_t sides[][2] = {{680, 680}, {640, 480}, {280, 280}, {1000, 500}, {10, 300}, {70, 70}};
    for (size_t count = 5; count <= 6; count++) {
        check_case("a 32-bit square root is named, not a limit one pixel higher that also fits%s", count == 6 ? "; halves rounded up" : "");
        measure("qwen2-vl", "max_pixels=200704", "qwen2-vl", "max_pixels=200704", 3);
        memset(sizes, 0, count * sizeof *sizes);
        size_count = count;
        for (size_t k = 0; k < count; k++) {
            sizes[k].width_px = sides[k][0];
            sizes[k].height_px = sides[k][1];
            sizes[k].by_rule = tokens(&rule.family, sides[k][0], sides[k][1]);
            sizes[k].measured = sizes[k].by_rule + 3;
        }
        CHECK_INT(sizes[0].by_rule, 225);
        sizes[0].measured = 256 + 3;
        if (count == 6) {
            CHECK_INT(sizes[5].by_rule, 4);
            sizes[5].measured = 9 + 3;
        }
        judge();
        is_cause(AUDIT_32_BIT);
        CHECK_INT(verdict.fit_count, 0);
        CHECK_INT(verdict.fit_offset, 3);
        CHECK_INT(verdict.is_half_up, count == 6);
        says(count == 6 ? "in 32 bits, with halves rounded up; at a limit"
                        : "llama.cpp's 32-bit square root: all counts fit qwen2_vl_hf and these limits if the size is computed in 32 bits; at a limit");
    }
    static const int32_t own[][3] = {{1812, 1812, 4096}, {640, 480, 391}, {280, 280, 100}, {1000, 500, 648}, {56, 56, 9}};
    check_case("llama.cpp's own limits with its square root are named with the limits");
    measure("qwen2-vl", "", "qwen2-vl", "", 0);
    memset(sizes, 0, sizeof own / sizeof *own * sizeof *sizes);
    size_count = sizeof own / sizeof *own;
    for (size_t k = 0; k < size_count; k++)
        sizes[k] = (struct audit_size){.width_px = own[k][0], .height_px = own[k][1], .by_rule = tokens(&rule.family, own[k][0], own[k][1]), .measured = own[k][2]};
    judge();
    is_cause(AUDIT_32_BIT);
    says("all counts fit qwen2_vl_hf and max_pixels = 3211264 and min_pixels = 6272 if");
}
static int has_family(const char *name) {
    for (size_t i = 0; i < verdict.family_count; i++) if (!strcmp(verdict.families[i]->name, name)) return 1;
    return 0;
}
static void test_families(void) {
    static const char *const pairs[][2] = {{"qwen2-vl", "internvl"},   {"qwen2-vl", "smolvlm"}, {"llava-next", "llava-onevision"}, {"internvl", "gemma4"},
                                           {"gemma3", "qwen3-vl"},     {"llava_1_5", "gemma4"}, {"smolvlm", "pixtral_hf"},         {"openai_tiles", "molmo"},
                                           {"pixtral", "mistral_common"}};
    check_case("another family");
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        measure(pairs[i][0], "", pairs[i][1], "", 0);
        judge();
        is_cause(AUDIT_FAMILY);
        check_note(has_family(preset_of(pairs[i][1])->name), __FILE__, __LINE__, "%s: %s is not found", pairs[i][0], pairs[i][1]);
        says("another family: all counts fit the published rule of ");
    }
    check_case("another family with other limits than the published ones");
    measure("internvl", "", "qwen2-vl", "max_pixels=100352", 0);
    judge();
    is_cause(AUDIT_FAMILY);
    says("another family: all counts fit the rule of qwen2");
    says(" with max_pixels = 100352 (any value from ");
    check_case("a fixed size");
    measure("qwen2.5-vl", "", "llava-1.5", "", 0);
    judge();
    is_cause(AUDIT_FIXED);
    CHECK(has_family("llava_1_5"));
    says("every image costs 576 tokens, whatever its size");
    measure("llava-1.5", "", "llava-1.5", "", 257 - 576);
    judge();
    is_cause(AUDIT_FAMILY);
    measure("internvl", "", "internvl", "", 0);
    for (size_t k = 0; k < size_count; k++) sizes[k].measured = 500;
    judge();
    is_cause(AUDIT_FIXED);
    CHECK_INT(verdict.family_count, 0);
    check_case("no known cause: the first difference beyond the tokens around each image");
    measure("qwen2.5-vl", "", "qwen2.5-vl", "", 2);
    sizes[7].measured += 3;
    sizes[9].measured -= 1;
    judge();
    is_cause(AUDIT_UNEXPLAINED);
    CHECK_INT(verdict.different, 2);
    CHECK_INT(verdict.first, 7);
    CHECK_INT(verdict.offset, 2);
    says("(+5; other sizes have an offset of +2)");
    measure("qwen2.5-vl", "", "qwen2.5-vl", "", 0);
    sizes[0].measured++;
    judge();
    CHECK_INT(verdict.different, 1);
    CHECK_INT(verdict.first, 0);
    size_count = 1;
    judge(); /* with only one size, a template's token */
    CHECK(verdict.is_equal && verdict.offset == 1);
}

/* ---- the command */
static hostile_server server;
static int number_after(const char *text, const char *word, int otherwise) {
    const char *found = strstr(text, word);
    return found ? atoi(found + strlen(word) + strspn(found + strlen(word), "\": =")) : otherwise;
}
/* Tokens of an image for the model's name; if the server obeys a knob, it is in the body. */
static int64_t image_tokens(const char *model, const char *body, const int32_t side[2]) {
    static const char *const keys[] = {"max_pixels", "min_pixels", "max_patches"};
    char name[64];
    vp_family family;
    vp_vision_count count;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(model, ",\""), model);
    vp_family_default(preset_of(name), &family);
    for (size_t i = 0; i < 3; i++) {
        char word[40];
        snprintf(word, sizeof word, ",%s", keys[i]);
        int value = number_after(model, word, -1);
        snprintf(word, sizeof word, "\"%s\"", keys[i]);
        if (!strstr(model, ",ignore")) value = number_after(body, word, value);
        if (value > 0) vp_family_set_number(&family, keys[i], value, NULL);
    }
    static int turn;
    const int every = number_after(model, ",drop=", 1);
    if (strstr(model, ",drop") && turn++ % every == 0) return 0;
    if (strstr(model, ",placeholder")) return 1;
    if (vp_family_count(&family, side[0], side[1], &count, NULL) != VP_OK) return 0;
    count.total_tokens += count.total_tokens * number_after(model, ",percent", 0) / 100 + count.rows * number_after(model, ",rows", 0);
    return (strstr(model, ",features") ? count.feature_tokens : count.total_tokens) + number_after(model, ",offset", 0);
}
static void counted_reply(const char *headers, const char *body, char *reply, size_t capacity) {
    char text[1000], model[128];
    const char *named = strstr(body, "\"model\"");
    int32_t side[2] = {0, 0};
    int64_t image = 0, prompt;
    if (!named) {
        snprintf(reply, capacity, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    (void)headers;
    named += 7 + strspn(named + 7, " :");
    snprintf(model, sizeof model, "%.*s", (int)strcspn(named + 1, "\""), named + 1);
    if (hostile_png_size(body, side)) image = image_tokens(model, body, side);
    if (strstr(model, ",slow") && side[0]) nanosleep(&(struct timespec){0, 300000000}, NULL);
    prompt = 21 + (strstr(model, ",constant") ? 0 : image);
    if (number_after(model, ",refuse", 1 << 30) < side[0]) {
        snprintf(text, sizeof text, "{\"error\":{\"message\":\"image too wide\",\"code\":400}}");
        snprintf(reply, capacity, "HTTP/1.1 400 Bad\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(text), text);
        return;
    }
    snprintf(text, sizeof text, "{\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"A\"},\"finish_reason\":\"length\"}]");
    if (!strstr(model, ",nousage"))
        snprintf(text + strlen(text), sizeof text - strlen(text), ",\"usage\":{\"prompt_tokens\":%lld,\"completion_tokens\":1", (long long)prompt);
    if (strstr(model, ",details"))
        snprintf(text + strlen(text), sizeof text - strlen(text), ",\"prompt_tokens_details\":{\"image_tokens\":%lld,\"cached_tokens\":5}", (long long)image);
    snprintf(text + strlen(text), sizeof text - strlen(text), strstr(model, ",nousage") ? "}" : "}}");
    snprintf(reply, capacity, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(text), text);
}
static int audit(const char *model, const char *more) {
    return run("audit --endpoint http://127.0.0.1:%d --endpoint_model %s %s", server.port, model, more);
}
static void has(const char *text, const char *what) { check_note(strstr(text, what) != NULL, __FILE__, __LINE__, "\"%s\" is not in \"%s\"", what, text); }
#define SMALL " --images 12 --image_pixels 200000"
static void test_command(void) {
    check_case("the command: equal counts, an offset, a difference, and their exit codes");
    CHECK_INT(audit("qwen2.5-vl", "--family qwen2.5-vl" SMALL), 0);
    CHECK(!strncmp(last.out, "  verdict: equal: the server counts all 12 sizes", 40));
    has(last.out, "prompt_tokens with the image minus prompt_tokens without it (21)");
    CHECK_TEXT(last.err, "");
    EXITS(audit("qwen2.5-vl,offset=2", "--family qwen2.5-vl" SMALL), 0, out, "2 tokens more for every image");
    EXITS(audit("qwen2.5-vl,max_pixels=100352", "--family qwen2.5-vl" SMALL), 1, out, "verdict: different: ");
    has(last.out, "another limit configured: all counts fit qwen2_5_vl_hf with max_pixels = ");
    CHECK_INT(audit("qwen2.5-vl,max_pixels=100352", "--family qwen2.5-vl --max_pixels 100352" SMALL), 0);
    EXITS(audit("internvl", "--family qwen2.5-vl" SMALL), 1, out, "another family: all counts fit the published rule of internvl");
    EXITS(audit("internvl,drop", "--family internvl" SMALL), 1, out, "image dropped: ");
    EXITS(audit("smolvlm,placeholder", "--family smolvlm" SMALL), 1, out, "placeholders counted: ");
    EXITS(audit("internvl,offset=5", "--family internvl --sizes 640x480,64x64"), 0, out, "640x480  given");
    check_case("the command: images dropped at times, with --repeat and without; a constant share; a token per row");
    EXITS(audit("internvl,drop=7", "--family internvl" SMALL), 1, out, "image dropped: 2 images add almost no tokens; the others follow the rule");
    EXITS(audit("internvl,drop=37", "--family internvl --repeat 5" SMALL), 1, out, "image sometimes dropped: 2 of 60 requests have fewer prompt tokens");
    CHECK_INT(audit("internvl", "--family internvl --repeat 3" SMALL), 0);
    EXITS(audit("qwen2.5-vl,percent=5", "--family qwen2.5-vl" SMALL), 1, out, "more or fewer everywhere: the server counts +4.8 % at all sizes");
    EXITS(audit("qwen2.5-vl,rows=1", "--family qwen2.5-vl" SMALL), 1, out, "tokens per row: all counts fit qwen2_5_vl_hf with +1 token for each row");
    check_case("the command: the family as a Hugging Face id, and guessed from the model's name");
    CHECK_INT(audit("qwen2.5-vl", "--family Qwen/Qwen2.5-VL-7B-Instruct" SMALL), 0);
    EXITS(audit("qwen2.5-vl", SMALL), 0, out, "the family qwen2_5_vl_hf was guessed from the model's name qwen2.5-vl");
    check_case("the command: knobs that work and knobs that are ignored");
#define KNOB " --request_knob mm_processor_kwargs.max_pixels=50176"
    EXITS(audit("qwen2.5-vl", "--family qwen2.5-vl" KNOB SMALL), 0, out, "knobs of each request: mm_processor_kwargs.max_pixels=50176");
    CHECK(!strstr(last.out, "without the knobs, the server's counts are the same"));
    CHECK_INT(audit("qwen2.5-vl,ignore", "--family qwen2.5-vl" KNOB SMALL), 1);
    has(last.out, "knob ignored: the counts are the same with and without it; they fit max_pixels of at least ");
    CHECK_INT(audit("qwen2.5-vl,ignore", "--family qwen2.5-vl --max_pixels 50176" KNOB SMALL), 1); /* the value that the knob sets */
    has(last.out, "knob ignored: ");
    EXITS(audit("qwen2.5-vl,ignore,max_pixels=50176", "--family qwen2.5-vl" KNOB SMALL), 0, out, "already seems to be configured this way");
    EXITS(audit("internvl,ignore", "--family internvl --request_knob max_dynamic_patch=2" SMALL), 1, out, "knob ignored: ");
    EXITS(audit("qwen2.5-vl", "--family qwen2.5-vl --request_knob top_p=1" SMALL), 0, out, "top_p: qwen2_5_vl_hf's rule has no such knob");
    has(last.out, "by the rule, they change nothing at these sizes");
    check_case("the command: usage that counts images");
    CHECK_INT(audit("qwen2.5-vl,details", "--family qwen2.5-vl" SMALL), 0);
    CHECK(!strstr(last.out, "image_tokens  "));
    has(last.out, "cached");
    EXITS(audit("qwen2.5-vl,details,constant", "--family qwen2.5-vl" SMALL), 0, out, "counted: image_tokens in usage");
    EXITS(audit("smolvlm,details,constant,features", "--family smolvlm" SMALL), 0, out, "feature tokens, without separators");
}
static void test_json(void) {
    static vp_json_node nodes[65536];
    vp_json json;
    size_t needed;
    int64_t number = 0;
    check_case("the command: its JSON");
    CHECK_INT(audit("qwen2.5-vl,offset=2,ignore,details", "--family qwen2.5-vl --json" KNOB SMALL), 1);
    CHECK_INT(vp_json_parse(last.out, strlen(last.out), nodes, 65536, &json, &needed, NULL), VP_OK);
    has(last.out, "\"schema\": \"vlmprof-audit-1\"");
    has(last.out, "\"verdict\": \"different\"");
    has(last.out, "\"cause\": \"knob ignored\"");
    has(last.out, "\"mm_processor_kwargs.max_pixels\": 50176");
    CHECK_INT(vp_json_to_int(&json, vp_json_get(&json, 0, "text_tokens"), &number), VP_OK);
    CHECK_INT(number, 21);
    CHECK_INT(vp_json_to_int(&json, vp_json_get(&json, 0, "offset"), &number), VP_OK);
    CHECK_INT(number, 2);
    uint32_t sizes_node = vp_json_get(&json, 0, "sizes");
    CHECK(sizes_node != VP_JSON_NONE && json.nodes[sizes_node].count == 12);
    uint32_t first = vp_json_at(&json, sizes_node, 0);
    CHECK_INT(vp_json_to_int(&json, vp_json_get(&json, vp_json_get(&json, first, "usage"), "prompt_tokens"), &number), VP_OK);
    CHECK(number > 21);
    CHECK_INT(vp_json_to_int(&json, vp_json_get(&json, first, "image_tokens_measured_without_knobs"), &number), VP_OK);
    CHECK(vp_json_get(&json, 0, "config") != VP_JSON_NONE && vp_json_get(&json, 0, "provenance") != VP_JSON_NONE);
    EXITS(audit("qwen2.5-vl", "--family qwen2.5-vl --json" SMALL), 0, out, "\"verdict\": \"equal\",\n  \"cause\": null");
    has(last.out, "\"first_difference\": null");
}
static void test_failures(void) {
    check_case("the command: sizes that the server rejects");
    EXITS(audit("internvl,refuse=1000", "--family internvl" SMALL), 1, out, "verdict: equal: the server counts all ");
    has(last.out, "the server refused ");
    has(last.out, "Refused by the server");
    has(last.out, "image too wide");
    EXITS(audit("internvl,refuse=1000", "--family internvl --json" SMALL), 1, out, "image too wide");
    EXITS(audit("internvl,refuse=1", "--family internvl" SMALL), 4, err, "the server refused every image");
    CHECK_TEXT(last.out, "");
    check_case("the command: a server that is unreachable, and one that counts no tokens");
    CHECK_INT(run("audit --endpoint http://127.0.0.1:1 --endpoint_model m --family internvl"), 4);
    EXITS(audit("internvl,nousage", "--family internvl" SMALL), 3, err, "there is nothing to compare");
    check_case("the command: usage");
    EXITS(run("audit --endpoint_model m --family internvl"), 2, err, "audit needs --endpoint URL");
    EXITS(audit("m", ""), 2, err, "audit needs --family NAME");
    CHECK_INT(audit("m", "--family nonsense"), 2);
    EXITS(audit("m", "--family internvl --max_pixels 5"), 2, err, "unknown option --max_pixels");
    CHECK_INT(audit("m", "--family internvl --request_knob max_dynamic_patch=1000"), 2);
    EXITS(audit("m", "--family internvl --request_knob max_dynamic_patch=1,2"), 2, err, "one value per knob");
    CHECK_INT(audit("m", "--family internvl --sizes 640"), 2);
    CHECK_INT(audit("m", "--family internvl --sizes 0x5"), 2);
    EXITS(audit("m", "--family qwen2.5-vl --sizes 2010x10"), 2, err, "factor of 200");
    CHECK_INT(audit("m", "--family internvl --sizes 640x480 --images 12"), 2);
    CHECK_INT(audit("m", "--family internvl --images 11"), 2);
    EXITS(audit("qwen2.5-vl", "--family qwen2.5-vl --request_knob messages[9].content=1" SMALL), 2, err, "messages[9]");
}
/* Ctrl-C: the counts so far are printed. */
static void test_interrupt(void) {
    char url[80], *out;
    int status = 0;
    pid_t child;
    const int before = hostile_count(&server, &server.request_count);
    check_case("the command: Ctrl-C");
    snprintf(url, sizeof url, "http://127.0.0.1:%d", server.port);
    fflush(stdout);
    if ((child = fork()) == 0) {
        if (!freopen(in_folder("out"), "w", stdout) || !freopen(in_folder("err"), "w", stderr)) _exit(99);
        execl(program, program, "audit", "--endpoint", url, "--endpoint_model", "internvl,slow", "--family", "internvl", "--image_pixels", "100000", (char *)NULL);
        _exit(99);
    }
    while (hostile_count(&server, &server.request_count) < before + 12) nanosleep(&(struct timespec){0, 20000000}, NULL); /* wait until some sizes are counted */
    kill(child, SIGINT);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 130);
    out = text_of_file(in_folder("out"));
    has(out, "verdict: equal: ");
    has(out, "stopped early: ");
    free(out);
    out = text_of_file(in_folder("err"));
    has(out, "vlmprof: interrupted: ");
    has(out, " sizes were counted and nothing was saved; run the same command again");
    free(out);
}

int main(void) {
    static const hostile_step call[] = {{HOSTILE_CALL, NULL, 0}, {HOSTILE_KEEP, NULL, 0}};
    static const hostile_reply replies[] = {call};
    unsetenv("OPENAI_API_KEY");
    if (!program_begin("audit")) return 1;
    RUN_TESTS(test_corners, test_scene, test_equal, test_dropped, test_knobs, test_limits, test_rounding, test_32_bit, test_families);
    hostile_start(&server, replies, 1);
    server.call = counted_reply;
    RUN_TESTS(test_command, test_json, test_failures, test_interrupt);
    hostile_stop(&server);
    text_list_free(&words);
    return program_done("test_audit");
}
