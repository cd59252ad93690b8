/* Conversions (every f16 and bf16 value), config.json (every rejection), the list of tensors, safetensors files (every rejection), folders of shards, released memory,
 * and file reading. Files are built in a temporary folder; the golden checkpoints are opened unchanged. */
#define _DEFAULT_SOURCE 1
#include "support/allocations.h"
#define VLMPROF_FILE_IMPLEMENTATION
#include "vlmprof_file.h"
#include "vlmprof_config.c"
#include "vlmprof_checkpoint.c"
#undef malloc
#undef calloc
#undef realloc
#undef free
#include "support/check.h"
#include "support/golden_rows.h"
#include "support/folder.h"

static void file_write(const char *name, const void *bytes, size_t count) {
    write_file(in_folder(name), bytes, count);
}
/* length field, header, `buffer` bytes 0, 1, 2, ... ; claim: the value of the length field, -1 = the true one */
static void safetensors_write(const char *name, const char *header, size_t header_bytes, int64_t buffer, int64_t claim) {
    FILE *f = fopen(in_folder(name), "wb");
    uint64_t length = claim >= 0 ? (uint64_t)claim : header_bytes;
    if (!f) { printf("cannot write %s\n", in_folder(name)); exit(1); }
    for (int64_t i = 0; i < 8; i++) fputc((int)(length >> (8 * i) & 255), f);
    fwrite(header, 1, header_bytes, f);
    for (int64_t i = 0; i < buffer; i++) fputc((int)(i & 255), f);
    fclose(f);
}
/* opens the temporary folder. The error must be one line that names its location, and a failure must not return a checkpoint. */
static vp_result folder_open(const vp_model_config *config, vp_error *error) {
    vp_checkpoint *cp = NULL;
    memset(error, 0, sizeof *error);
    vp_result result = vp_checkpoint_open(folder, config, &cp, error);
    if (result == VP_OK) CHECK(cp != NULL);
    else {
        CHECK(cp == NULL);
        CHECK_INT(error->code, result);
        CHECK(error->where[0] && error->text[0] && !strchr(error->text, '\n'));
    }
    vp_checkpoint_close(cp);
    return result;
}

/* ------------------------------------------------------------------------------------------------- conversions */
/* the value of a small float format from its definition */
static double small_float(unsigned bits, int exponent_bits, int fraction_bits) {
    int bias = (1 << (exponent_bits - 1)) - 1, exponent = (int)(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    double fraction = (double)(bits & ((1u << fraction_bits) - 1)) / (double)(1 << fraction_bits);
    double sign = bits >> (exponent_bits + fraction_bits) & 1 ? -1.0 : 1.0;
    if (exponent == (1 << exponent_bits) - 1) return fraction > 0 ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1.0 + fraction, exponent - bias) : ldexp(fraction, 1 - bias));
}
static int same_float(float got, double wanted) {
    if (wanted != wanted) return got != got;
    return got == (float)wanted && !signbit(got) == !signbit(wanted);
}
static uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}
static float bits_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static void test_conversions(void) {
    uint32_t i, seed = 12345, wrong = 0;
    check_case("every f16 value against its definition; NaN is quiet and keeps its sign");
    for (i = 0; i < 65536; i++) {
        float got = vp_f16_to_f32((uint16_t)i);
        wrong += !same_float(got, small_float(i, 5, 10));
        if (got != got) wrong += !(float_bits(got) & 0x400000) || (float_bits(got) >> 31) != i >> 15;
    }
    CHECK_INT(wrong, 0);
    check_case("every bf16 value against its definition, and back unchanged");
    for (i = 0; i < 65536; i++) {
        float got = vp_bf16_to_f32((uint16_t)i);
        wrong += !same_float(got, small_float(i, 8, 7));
        if (got != got) wrong += vp_f32_to_bf16(got) != (i | 0x40);
        else wrong += vp_f32_to_bf16(got) != i;
    }
    CHECK_INT(wrong, 0);
    check_case("f32 to bf16 takes the nearest of the two neighbours, ties to even (random bits, seed 12345)");
    for (i = 0; i < 400000; i++) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t bits = (seed >> 8) * 2654435761u;
        if (i % 4 == 0) bits = (bits & 0xffff0000u) | 0x8000u;                    /* a tie */
        if (i % 4 == 1) bits = (bits & 0xffff0000u) | (0x7fffu + (bits & 2));      /* next to a tie */
        if (i % 16 == 2) bits &= 0x807fffffu;                                      /* subnormal */
        if ((bits & 0x7fffffffu) >= 0x7f000000u) continue;                         /* the largest ones are tested below */
        uint32_t low = bits >> 16;
        uint32_t high = low + 1;
        double value = fabs((double)bits_float(bits));
        double below = fabs((double)bits_float(low << 16));
        double above = fabs((double)bits_float(high << 16));
        uint32_t got = vp_f32_to_bf16(bits_float(bits));
        if (value - below < above - value) wrong += got != low;
        else if (value - below > above - value) wrong += got != high;
        else wrong += got != (low & 1 ? high : low);
    }
    CHECK_INT(wrong, 0);
    check_case("f32 to bf16: overflow, infinity, NaN");
    CHECK_INT(vp_f32_to_bf16(bits_float(0x7f7fffffu)), 0x7f80);
    CHECK_INT(vp_f32_to_bf16(bits_float(0x7f7f7fffu)), 0x7f7f);
    CHECK_INT(vp_f32_to_bf16(bits_float(0x7f7f8000u)), 0x7f80);
    CHECK_INT(vp_f32_to_bf16(bits_float(0xff800000u)), 0xff80);
    CHECK_INT(vp_f32_to_bf16(bits_float(0x7f800001u)), 0x7fc0);
    CHECK_INT(vp_f32_to_bf16(bits_float(0xffffffffu)), 0xffff);
    CHECK_INT(vp_f32_to_bf16(-0.0f), 0x8000);
}

/* ------------------------------------------------------------------------------------------------------ config */
static char *config_text, *preprocessor_text;

/* config_text with the first `find` replaced; malloc'ed */
static char *replaced(const char *text, const char *find, const char *replace) {
    const char *at = strstr(text, find);
    char *out = (char *)malloc(strlen(text) + strlen(replace) + 1);
    if (!out || !at) { printf("replaced(): \"%s\" does not stand in the text\n", find); exit(1); }
    memcpy(out, text, (size_t)(at - text));
    strcpy(out + (at - text), replace);
    strcat(out, at + strlen(find));
    return out;
}
static void config_expect(const char *config, const char *preprocessor, vp_result code, const char *where) {
    vp_model_config c, poison;
    vp_error error = {0};
    memset(&c, 0x55, sizeof c);
    poison = c;
    CHECK_INT(vp_model_config_parse(config, strlen(config), preprocessor, preprocessor ? strlen(preprocessor) : 0, &c, &error), code);
    if (code == VP_OK) return;
    CHECK_INT(error.code, code);
    CHECK_TEXT(error.where, where);
    CHECK(error.text[0] && !strchr(error.text, '\n'));
    CHECK(memcmp(&c, &poison, sizeof c) == 0);
}

static void check_tiny_a(const vp_model_config *c) {
    CHECK_INT(c->d_model, 128); CHECK_INT(c->head_count, 4); CHECK_INT(c->head_dim, 32); CHECK_INT(c->block_count, 4);
    CHECK_INT(c->expert_count, 8); CHECK_INT(c->expert_dim, 64); CHECK_INT(c->top_k, 2);
    CHECK_INT(c->vocab_size, 655); CHECK_INT(c->embedding_size, 704); CHECK_INT(c->additional_vocab_size, 16);
    CHECK_INT(c->max_sequence_length, 4096); CHECK_NEAR(c->rope_theta, 10000, 0); CHECK(c->norm_eps == 1e-5f);
    CHECK_INT(c->vit_width, 64); CHECK_INT(c->vit_head_count, 4); CHECK_INT(c->vit_head_dim, 16); CHECK_INT(c->vit_mlp_dim, 256);
    CHECK_INT(c->vit_block_count, 5); CHECK_INT(c->vit_positions, 577); CHECK(c->vit_norm_eps == 1e-5f);
    CHECK_INT(c->vit_layer_count, 2); CHECK_INT(c->vit_layers[0], -2); CHECK_INT(c->vit_layers[1], -4); CHECK_INT(c->vit_blocks_needed, 4);
    CHECK_INT(c->projector_dim, 64);
    CHECK_INT(c->geometry.crop_px, 336); CHECK_INT(c->geometry.patch_px, 14); CHECK_INT(c->geometry.margin_left_patches, 4);
    CHECK_INT(c->geometry.margin_right_patches, 4); CHECK_INT(c->geometry.pool, 2); CHECK_INT(c->geometry.max_crops, 12);
    CHECK(c->geometry.mean[0] == 0.48145466f && c->geometry.std[2] == 0.27577711f);
}

static void test_zero_sizes(void) {
    static const char *const models[] = {"olmoe", "qwen3_moe", "qwen3_vl_moe", "own_qwen2_5_vl_a", "own_gemma3_a", "own_internvl_a", "own_llava_a", "own_idefics3_a",
        "own_molmo2_a", "own_olmoe_a"}, *const keys[] = {"num_experts", "num_experts_per_tok", "num_hidden_layers", "num_attention_heads", "vocab_size", "hidden_size"};
    int changed = 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char path[100];
        size_t bytes = 0;
        snprintf(path, sizeof path, "othermodels/%s/checkpoint/config.json", models[i]);
        char *whole = check_read(check_golden(path), &bytes);
        for (size_t k = 0; whole && k < sizeof keys / sizeof *keys; k++) {
            vp_model_config config;
            vp_error error = {VP_OK, 0, "", ""};
            char key[40], *text = (char *)calloc(1, bytes + 40), *at;
            snprintf(key, sizeof key, "\"%s\": ", keys[k]);
            const char *found = strstr(whole, key);
            if (found) {
                at = text + snprintf(text, bytes + 40, "%.*s%s0", (int)(found - whole), whole, key);
                strcpy(at, found + strlen(key) + strspn(found + strlen(key), "0123456789"));
                CHECK(vp_model_config_parse(text, strlen(text), NULL, 0, &config, &error) < 0);
                at = strstr(error.where, keys[k]); /* the error ends with that key */
                check_note(at && !strcmp(at, keys[k]), __FILE__, __LINE__, "%s, %s 0: %s: %s", models[i], keys[k], error.where, error.text);
                changed++;
            }
            free(text);
        }
        free(whole);
    }
    CHECK(changed > 20);
}
static void test_config(void) {
    vp_model_config c;
    vp_error error;
    char *text;
    config_text = check_read(check_golden("models/tiny-a/config.json"), NULL);
    preprocessor_text = check_read(check_golden("models/tiny-a/preprocessor_config.json"), NULL);
    if (!config_text || !preprocessor_text) { check_skip("config", "golden models not found"); return; }
    check_case("tiny-a: every field");
    memset(&c, 0x55, sizeof c);
    CHECK_INT(vp_model_config_parse(config_text, strlen(config_text), preprocessor_text, strlen(preprocessor_text), &c, &error), VP_OK);
    check_tiny_a(&c);
    check_case("tiny-a without preprocessor_config.json");
    memset(&c, 0x55, sizeof c);
    CHECK_INT(vp_model_config_parse(config_text, strlen(config_text), NULL, 0, &c, &error), VP_OK);
    check_tiny_a(&c);
    golden_rows rows;
    if (golden_open(&rows, "configs/edits.jsonl")) while (golden_next(&rows)) {
        char *file = golden_text(&rows, "file"), *from = golden_text(&rows, "from"), *to = golden_text(&rows, "to"), *where = golden_text(&rows, "where");
        const int is_config = !strcmp(file, "config");
        check_case("%s with %s", file, to);
        text = replaced(is_config ? config_text : preprocessor_text, from, to);
        config_expect(is_config ? text : config_text, is_config ? preprocessor_text : text, golden_code(&rows), where);
        FREE_ALL(text, file, from, to, where);
    }
    CHECK_INT(rows.count, 107);
    check_case("a number outside its range: the error gives the range");
    text = replaced(config_text, "\"n_layers\": 4", "\"n_layers\": 1025");
    CHECK_INT(vp_model_config_parse(text, strlen(text), NULL, 0, &c, &error), VP_ERR_RANGE);
    CHECK_TEXT(error.text, "this field must be in 1..1024");
    free(text);
    check_case("sizes of the other families are not 0");
    test_zero_sizes();
    check_case("values that are not objects");
    config_expect("[]", NULL, VP_ERR_FORMAT, "config.json");
    config_expect("", NULL, VP_ERR_FORMAT, "config.json");
    config_expect(config_text, "3", VP_ERR_FORMAT, "preprocessor_config.json");
    check_case("the extra embedding rows may be missing, and so may the position table");
    text = replaced(config_text, "\"additional_vocab_size\": 16", "\"additional_vocab_size\": 0");
    CHECK_INT(vp_model_config_parse(text, strlen(text), NULL, 0, &c, NULL), VP_OK);
    CHECK_INT(c.additional_vocab_size, 0);
    free(text);
    text = replaced(config_text, "\"max_position_embeddings\": 32768", "\"max_position_embeddings\": null");
    CHECK_INT(vp_model_config_parse(text, strlen(text), NULL, 0, &c, NULL), VP_OK);
    CHECK_INT(c.max_positions, 4096);
    free(text);
    check_case("values that the files override");
    text = replaced(config_text, "\"mlp_hidden_size\": null", "\"mlp_hidden_size\": 17");
    CHECK_INT(vp_model_config_parse(text, strlen(text), NULL, 0, &c, &error), VP_OK);
    CHECK_INT(c.expert_dim, 8);
    CHECK_INT(c.projector_dim, 8);
    free(text);
    text = replaced(config_text, "\"embedding_size\": 704", "\"embedding_size\": null");
    CHECK_INT(vp_model_config_parse(text, strlen(text), NULL, 0, &c, &error), VP_OK);
    CHECK_INT(c.embedding_size, 655);
    free(text);
    text = replaced(config_text, "-2,\n    -4", "0, -5, 2");
    CHECK_INT(vp_model_config_parse(text, strlen(text), NULL, 0, &c, &error), VP_OK);
    CHECK_INT(c.vit_layer_count, 3);
    CHECK_INT(c.vit_blocks_needed, 3);
    free(text);
    text = replaced(preprocessor_text, "    4,\n    4", "2, 6");
    CHECK_INT(vp_model_config_parse(config_text, strlen(config_text), text, strlen(text), &c, &error), VP_OK);
    CHECK_INT(c.geometry.margin_left_patches, 2);
    CHECK_INT(c.geometry.margin_right_patches, 6);
    free(text);
    check_case("NULL arguments are VP_ERR_RANGE");
    CHECK_INT(vp_model_config_parse(NULL, 0, NULL, 0, &c, NULL), VP_ERR_RANGE);
    CHECK_INT(vp_model_config_parse("{}", 2, NULL, 0, NULL, NULL), VP_ERR_RANGE);
}

/* ----------------------------------------------------------------------------------------- presets and tensors */
static void test_presets(void) {
    vp_model_config c;
    vp_special_ids ids;
    vp_tensor_spec spec;
    int64_t i, k, parameters = 0, count;
    check_case("molmoe-1b has 3573 tensors and 7221875712 parameters");
    CHECK_INT(vp_model_config_preset("molmoe-1b", &c), VP_OK);
    CHECK_INT(vp_geometry_check(&c.geometry), VP_OK);
    count = vp_model_tensor_count(&c);
    CHECK_INT(count, 3573);
    for (i = 0; i < count; i++) {
        int64_t elements = 1;
        if (!CHECK_INT(vp_model_tensor(&c, i, &spec), VP_OK)) break;
        for (k = 0; k < spec.dimensions; k++) elements *= spec.shape[k];
        parameters += elements;
    }
    CHECK_INT(parameters, 7221875712);
    CHECK_INT(vp_model_preset_ids("molmoe-1b", &ids), VP_OK);
    CHECK(ids.pad == 1 && ids.bos == 50279 && ids.eos == 50279 && ids.im_start == 50280 && ids.im_end == 50281 && ids.im_patch == 50282);
    CHECK(ids.im_col == 50283 && ids.image == 50284);
    char *list = check_read("../shared/reference/molmoe-tensors.txt", NULL);
    if (!list) check_skip("the published list of tensors", "../shared/reference is not there");
    else {
        const char *p = list;
        char line[160];
        check_case("molmoe-1b: names, shapes and order match the published list");
        for (i = 0; i < count; i++) {
            vp_model_tensor(&c, i, &spec);
            if (spec.dimensions == 2) snprintf(line, sizeof line, "%s [%lld, %lld]\n", spec.name, (long long)spec.shape[0], (long long)spec.shape[1]);
            else snprintf(line, sizeof line, "%s [%lld]\n", spec.name, (long long)spec.shape[0]);
            if (!CHECK(strncmp(p, line, strlen(line)) == 0)) break;
            p += strlen(line);
        }
        CHECK_INT(*p, 0);
        free(list);
    }
    check_case("tiny matches tiny-a except for its vocabulary");
    CHECK_INT(vp_model_config_preset("tiny", &c), VP_OK);
    CHECK_INT(vp_model_preset_ids("tiny", &ids), VP_OK);
    CHECK(ids.pad == 1 && ids.bos == 258 && ids.eos == 258 && ids.im_start == 259 && ids.image == 263);
    CHECK(ids.image < c.embedding_size);
    c.vocab_size = 655;
    c.embedding_size = 704;
    check_tiny_a(&c);
    check_case("presets of other models: the published parameters; ids are below the number of rows");
    for (i = 0; vp_model_preset_name(i); i++) {
        static const struct { const char *name; int64_t parameters; } known[] = {
            {"molmo-7b-d", 8021025280}, {"molmo2-4b", 4850869200}, {"olmoe-1b-7b", 6919161856}, {"qwen2.5-vl-3b", 3754622976}, {"qwen2.5-vl-7b", 8292166656},
            {"qwen3-vl-2b", 2127532032}, {"qwen3-vl-4b", 4437815808}, {"qwen3-vl-8b", 8767123696}, {"qwen3-vl-30b-a3b-12-blocks", 8638410992},
            {"molmo-7b-o", 7665032192}, {"llava-1.5-7b", 7063427072}, {"smolvlm-256m", 256484928}, {"smolvlm-500m", 507482304},
            {"smolvlm-2.2b", 2246272880}, {"internvl3-1b", 938193024}, {"internvl3-2b", 2088957440}, {"internvl3-8b", 7944373760},
            {"internvl3.5-1b", 1060897792}, {"internvl3.5-2b", 2348347392}, {"internvl3.5-4b", 4732489216}, {"internvl3.5-8b", 8528318464},
            {"gemma-3-4b", 4300079472}};
        const char *name = vp_model_preset_name(i);
        CHECK_INT(vp_model_config_preset(name, &c), VP_OK);
        CHECK_INT(vp_model_preset_ids(name, &ids), VP_OK);
        CHECK(ids.eos < c.embedding_size + c.additional_vocab_size && (c.connector != VP_CONNECTOR_POOLING || ids.image < c.embedding_size + c.additional_vocab_size));
        CHECK(!vp_model_preset_preprocessor(name) == (!c.vit_block_count || c.connector == VP_CONNECTOR_POOLING));
        for (size_t at = 0; at < sizeof known / sizeof known[0]; at++) {
            int64_t sum = 0;
            if (strcmp(name, known[at].name)) continue;
            for (int64_t t = 0; vp_model_tensor(&c, t, &spec) == VP_OK; t++) {
                int64_t elements = 1;
                for (int32_t d = 0; d < spec.dimensions; d++) elements *= spec.shape[d];
                sum += elements;
            }
            CHECK_INT(sum, known[at].parameters);
        }
    }
    check_case("preset and tensor errors");
    memset(&spec, 0x55, sizeof spec);
    CHECK_INT(vp_model_config_preset("large", &c), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_model_config_preset(NULL, &c), VP_ERR_RANGE);
    CHECK_INT(vp_model_preset_ids("large", &ids), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_model_preset_ids("tiny", NULL), VP_ERR_RANGE);
    CHECK_INT(vp_model_tensor(&c, -1, &spec), VP_ERR_RANGE);
    CHECK_INT(vp_model_tensor(&c, vp_model_tensor_count(&c), &spec), VP_ERR_RANGE);
    CHECK_INT(spec.name[0], 0x55);
}

/* the published config.json and preprocessor_config.json give the preset's shape (12 of 48 blocks if the name says so) */
static void test_published_configs(void) {
    golden_rows rows;
    if (!golden_open(&rows, "configs/published.jsonl")) return;
    while (golden_next(&rows)) {
        const vp_json_node *config = &rows.nodes[vp_json_get(&rows.json, 0, "config")], *preprocessor = &rows.nodes[vp_json_get(&rows.json, 0, "preprocessor")];
        char *name = golden_text(&rows, "preset");
        vp_model_config published = {0}, preset;
        vp_error error = { VP_OK, -1, "", "" };
        check_case("%s: the published files", name);
        memset(&preset, 0, sizeof preset);
        if (!CHECK_INT(vp_model_config_parse(rows.json.text + config->start, config->bytes, rows.json.text + preprocessor->start, preprocessor->bytes, &published,
                       &error), VP_OK)) printf("%s: %s\n", error.where, error.text);
        CHECK_INT(vp_model_config_preset(name, &preset), VP_OK);
        if (published.architecture == VP_ARCHITECTURE_INTERNVL_CHAT) published.architecture = VP_ARCHITECTURE_INTERNVL; /* another name of the same architecture */
        if (strstr(name, "-12-blocks") && CHECK_INT(published.block_count, 48)) published.block_count = 12;
        CHECK(memcmp(&published, &preset, sizeof preset) == 0);
        free(name);
    }
    CHECK_INT(rows.count, 7);
}

/* RoPE scalings as published files name them; unsupported ones are rejected with an error that names them */
static void test_rope_scaling(void) {
    static const struct { const char *rope; vp_result code; vp_rope_scaling scaling; const char *where; } rows[] = {
        { "\"rope_type\":\"default\"", VP_OK, VP_ROPE_PLAIN, "" },
        { "\"type\":\"dynamic\",\"factor\":2.0", VP_OK, VP_ROPE_PLAIN, "" },
        { "\"type\":\"linear\",\"factor\":2.0", VP_OK, VP_ROPE_LINEAR, "" },
        { "\"rope_type\":\"yarn\",\"factor\":4.0,\"original_max_position_embeddings\":32768", VP_OK, VP_ROPE_YARN, "" },
        { "\"type\":\"yarn\",\"factor\":4.0,\"mscale\":null,\"truncate\":true", VP_OK, VP_ROPE_YARN, "" },
        { "\"rope_type\":\"yarn\",\"factor\":4.0,\"mscale\":0.7", VP_ERR_UNSUPPORTED, VP_ROPE_PLAIN, "text_config.rope_scaling.mscale" },
        { "\"rope_type\":\"yarn\",\"factor\":4.0,\"truncate\":false", VP_ERR_UNSUPPORTED, VP_ROPE_PLAIN, "text_config.rope_scaling.truncate" },
        { "\"rope_type\":\"yarn\",\"factor\":4.0,\"beta_fast\":1,\"beta_slow\":1", VP_ERR_RANGE, VP_ROPE_PLAIN, "text_config.rope_scaling.beta_fast" },
        { "\"rope_type\":\"longrope\"", VP_ERR_UNSUPPORTED, VP_ROPE_PLAIN, "text_config.rope_scaling.rope_type" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        vp_model_config config;
        vp_error error = { VP_OK, -1, "", "" };
        char text[400];
        check_case("rope: %s", rows[i].rope);
        snprintf(text, sizeof text, "{\"model_type\":\"llava\",\"text_config\":{\"rope_scaling\":{%s}},\"vision_config\":{}}", rows[i].rope);
        if (!CHECK_INT(vp_model_config_parse(text, strlen(text), NULL, 0, &config, &error), rows[i].code)) printf("%s: %s\n", error.where, error.text);
        if (rows[i].code != VP_OK) { CHECK(strstr(error.where, strrchr(rows[i].where, '.') + 1)); continue; }
        CHECK_INT(config.rope.scaling, rows[i].scaling);
        if (config.rope.scaling != VP_ROPE_YARN) continue;
        CHECK(config.rope.factor == 4.0 && config.rope.low_frequency == 1.0 && config.rope.high_frequency == 32.0);
        CHECK(config.rope.magnitude > 1.13862 && config.rope.magnitude < 1.13864); /* 0.1 ln 4 + 1 */
        CHECK(config.rope.original_positions == (i == 3 ? 32768.0 : 2048.0)); /* from the file, or max_position_embeddings */
    }
}

/* InternVL's original names: the golden's config.json with one change is either rejected with an error that names it, or read as the class's default */
/* which tie_word_embeddings counts, as transformers 5.24 does with files without a head: outer, inner absent, true, false */
static void test_ties(void) {
    static const char *const models[][2] = {{"llava", "010111010"}, {"qwen2_5_vl", "010111010"}, {"smolvlm", "000111000"}, {"own_idefics3_a", "000111000"},
                                            {"qwen3_vl", "000111000"}, {"internvl", "110111000"}, {"gemma3", "111111000"}};
    static const char *const values[] = {"", "\"tie_word_embeddings\":true,", "\"tie_word_embeddings\":false,"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char tied[10] = "", place[100], with[100], *at;
        vp_model_config c;
        snprintf(place, sizeof place, "othermodels/%s/checkpoint/config.json", models[i][0]);
        char *text = check_read(check_golden(place), NULL);
        check_case("tied heads of %s", models[i][0]);
        while (text && (at = strstr(text, "tie_word_embeddings")) != NULL) *at = '_';
        for (int k = 0; k < 9 && text; k++) {
            snprintf(with, sizeof with, "\"text_config\": {%s", values[k % 3]);
            char *inner = replaced(text, "\"text_config\": {", with);
            snprintf(with, sizeof with, "{%s", values[k / 3]);
            char *outer = replaced(inner, "{", with);
            tied[k] = vp_model_config_parse(outer, strlen(outer), NULL, 0, &c, NULL) != VP_OK ? 'x' : c.tied_head ? '1' : '0';
            free(inner);
            free(outer);
        }
        free(text);
        CHECK_TEXT(tied, models[i][1]);
    }
}
static void test_internvl_chat(void) {
    static const struct { const char *from, *to, *where; vp_result code; } rows[] = {
        { "\"ps_version\": \"v2\"", "\"ps_version\": \"v1\"", "ps_version", VP_ERR_UNSUPPORTED },
        { "\"ps_version\": \"v2\",", "", "ps_version", VP_ERR_UNSUPPORTED },
        { "\"select_layer\": -1", "\"select_layer\": 0", "select_layer", VP_ERR_UNSUPPORTED },
        { "\"select_layer\": -1", "\"select_layer\": -9", "select_layer", VP_ERR_RANGE },
        { "\"select_layer\": -1,", "", "", VP_OK },
        { "\"use_llm_lora\": 0", "\"use_llm_lora\": 8", "use_llm_lora", VP_ERR_UNSUPPORTED },
        { "\"pad2square\": false", "\"pad2square\": true", "pad2square", VP_ERR_UNSUPPORTED },
        { "\"force_image_size\": 56", "\"force_image_size\": 84", "force_image_size", VP_ERR_UNSUPPORTED },
        { "\"force_image_size\": 56", "\"force_image_size\": null", "", VP_OK },
        { "\"model_type\": \"qwen2\"", "\"model_type\": \"internlm2\"", "llm_config.model_type", VP_ERR_UNSUPPORTED },
        { "\"llm_config\"", "\"text_config\"", "llm_config", VP_ERR_NOT_FOUND },
        { "\"vision_config\"", "\"tower\"", "vision_config", VP_ERR_NOT_FOUND },
        { "\"qk_normalization\": false", "\"qk_normalization\": true", "vision_config.qkv_bias", VP_ERR_UNSUPPORTED },
        { "\"qk_normalization\": false,", "", "vision_config.qkv_bias", VP_ERR_UNSUPPORTED },
        { "\"norm_type\": \"layer_norm\",", "", "", VP_OK },
        { "\"norm_type\": \"layer_norm\",", "\"norm_type\": \"batch_norm\",", "vision_config.norm_type", VP_ERR_UNSUPPORTED },
        { "\"use_moe\": false", "\"use_moe\": true", "vision_config.use_moe", VP_ERR_UNSUPPORTED },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t bytes = 0;
        char *file = check_read(check_golden("othermodels/own_internvl_chat/checkpoint/config.json"), &bytes), text[8192], *at;
        vp_model_config config;
        vp_error error = { VP_OK, -1, "", "" };
        check_case("internvl_chat: %s as %s", rows[i].from, rows[i].to);
        at = file ? strstr(file, rows[i].from) : NULL;
        if (!CHECK(at && bytes < 7000)) { free(file); continue; }
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - file), file, rows[i].to, at + strlen(rows[i].from));
        if (!CHECK_INT(vp_model_config_parse(text, strlen(text), NULL, 0, &config, &error), rows[i].code)) printf("%s: %s\n", error.where, error.text);
        if (rows[i].code == VP_OK) CHECK(config.vit_layers[0] == -1 && config.vit_blocks_needed == 2 && config.vit_qkv_bias && config.geometry.crop_px == 56);
        else CHECK_TEXT(error.where, rows[i].where);
        free(file);
    }
}

/* ------------------------------------------------------------------------------------------------- safetensors */
#define METADATA "\"__" "metadata" "__\"" /* split, because the style check takes the whole name for a compiler's */
#define TENSOR(name, dtype, shape, begin, end) "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end "]}"
#define NESTED "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
static void test_headers(void) {
    vp_error error;
    golden_rows rows;
    if (golden_open(&rows, "configs/headers.jsonl")) while (golden_next(&rows)) {
        char *what = golden_text(&rows, "what"), *header = golden_text(&rows, "header"), *words = golden_text(&rows, "text");
        int64_t buffer = -1;
        check_case("safetensors: %s", what);
        CHECK_INT(vp_json_to_int(&rows.json, vp_json_get(&rows.json, 0, "buffer"), &buffer), VP_OK);
        make_empty(folder);
        safetensors_write("model.safetensors", header, strlen(header), buffer, -1);
        CHECK_INT(folder_open(NULL, &error), golden_code(&rows));
        CHECK(golden_code(&rows) == VP_OK || strstr(error.text, words));
        FREE_ALL(what, header, words);
    }
    CHECK_INT(rows.count, 63);
    check_case("safetensors: invalid UTF-8");
    safetensors_write("model.safetensors", "{" TENSOR("a\xff", "U8", "1", "0", "1") "}", strlen("{" TENSOR("a\xff", "U8", "1", "0", "1") "}"), 1, -1);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_FORMAT);
    make_empty(folder);
    check_case("safetensors: NULs as padding");
    safetensors_write("model.safetensors", "{}\0\0\0\0", 6, 0, -1);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_FORMAT);
    check_case("safetensors: length field");
    safetensors_write("model.safetensors", "{}", 2, 0, 3);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_FORMAT);
    CHECK(strstr(error.text, "beyond the file") != NULL);
    safetensors_write("model.safetensors", "{}", 2, 0, 0);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_FORMAT);
    safetensors_write("model.safetensors", "{}", 2, 0, 1);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_FORMAT);
    safetensors_write("model.safetensors", "{}", 2, 0, 100000001);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_FORMAT);
    CHECK(strstr(error.text, "100000000") != NULL);
    safetensors_write("model.safetensors", "{}", 2, 0, INT64_MAX);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_FORMAT);
    check_case("safetensors: an empty file and a short file");
    file_write("model.safetensors", "", 0);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_FORMAT);
    file_write("model.safetensors", "\2\0\0\0\0\0\0", 7);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_FORMAT);
    file_write("model.safetensors", "\0\0\0\0\0\0\0\0", 8);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_FORMAT);
}

static void test_find(void) {
    static const char header[] = "{" TENSOR("odd", "BOOL", "1", "0", "1") "," TENSOR("f", "F32", "1,2", "1", "9") ","
        TENSOR("h", "F16", "", "9", "11") "," TENSOR("b", "BF16", "0", "11", "11") "," TENSOR("deep", "F16", "1,1,1,1,1,1", "11", "13") "}";
    vp_checkpoint *cp = NULL;
    vp_tensor t;
    vp_error error;
    make_empty(folder);
    check_case("find: types, shapes, unaligned data");
    safetensors_write("model.safetensors", header, sizeof header - 1, 13, -1);
    CHECK_INT(vp_checkpoint_open(folder, NULL, &cp, &error), VP_OK);
    if (!cp) return;
    CHECK_INT(vp_checkpoint_find(cp, "f", &t), VP_OK);
    CHECK(t.dtype == VP_DTYPE_F32 && t.dimensions == 2 && t.shape[0] == 1 && t.shape[1] == 2 && t.bytes == 8 && t.shard == 0);
    CHECK(t.data[0] == 1 && t.data[7] == 8);
    CHECK_INT(vp_checkpoint_find(cp, "h", &t), VP_OK);
    CHECK(t.dtype == VP_DTYPE_F16 && t.dimensions == 0 && t.bytes == 2 && t.data[1] == 10);
    CHECK_INT(vp_checkpoint_find(cp, "b", &t), VP_OK);
    CHECK(t.dtype == VP_DTYPE_BF16 && t.dimensions == 1 && t.bytes == 0);
    check_case("find: names of other versions of transformers");
    static const char other[] = "{" TENSOR("model.language_model.norm.weight", "F16", "1", "0", "2") ","
        TENSOR("model.vision_tower.x", "F16", "1", "2", "4") "," TENSOR("lm_head.weight", "F16", "1", "4", "6") "," TENSOR("model.visual.x", "F16", "1", "6", "8") "}";
    static const char *const names[] = {"language_model.model.norm.weight", "model.norm.weight", "vision_tower.x", "vision_tower.vision_model.x", "visual.x",
                                        "language_model.lm_head.weight", "lm_head.weight"};
    CHECK_INT(vp_checkpoint_has_head(folder), 0);
    vp_checkpoint_close(cp);
    safetensors_write("model.safetensors", other, sizeof other - 1, 8, -1);
    if (!CHECK_INT(vp_checkpoint_open(folder, NULL, &cp, &error), VP_OK)) return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) check_note(vp_checkpoint_find(cp, names[i], &t) == VP_OK, __FILE__, __LINE__, "no %s", names[i]);
    CHECK_INT(vp_checkpoint_has_head(folder), 1);
    vp_checkpoint_close(cp);
    safetensors_write("model.safetensors", header, sizeof header - 1, 13, -1);
    if (!CHECK_INT(vp_checkpoint_open(folder, NULL, &cp, &error), VP_OK)) return;
    check_case("find: errors do not modify the tensor");
    memset(&t, 0x55, sizeof t);
    CHECK_INT(vp_checkpoint_find(cp, "odd", &t), VP_ERR_UNSUPPORTED);
    CHECK_INT(vp_checkpoint_find(cp, "deep", &t), VP_ERR_UNSUPPORTED);
    CHECK_INT(vp_checkpoint_find(cp, "g", &t), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_checkpoint_find(cp, "", &t), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_checkpoint_find(cp, NULL, &t), VP_ERR_RANGE);
    CHECK_INT(t.shard, 0x55555555);
    vp_checkpoint_close(cp);
}

/* ----------------------------------------------------------------------------------------------------- folders */
static void test_folders(void) {
    static const char one[] = "{" TENSOR("a", "U8", "1", "0", "1") "}", other[] = "{" TENSOR("b", "U8", "1", "0", "1") "}";
    static const char good[] = "{\"metadata\":{\"total_size\":2},\"weight_map\":{\"b\":\"2.safetensors\",\"a\":\"1.safetensors\"}}";
    static const struct { const char *what, *index; vp_result code; const char *text; } cases[] = {
        {"two shards", good, VP_OK, ""},
        {"no weight_map", "{}", VP_ERR_FORMAT, "weight_map"},
        {"not an object", "[]", VP_ERR_FORMAT, "weight_map"},
        {"not JSON", "{", VP_ERR_FORMAT, ""},
        {"a file that is a number", "{\"weight_map\":{\"a\":1}}", VP_ERR_FORMAT, "not a string"},
        {"a path", "{\"weight_map\":{\"a\":\"/etc/passwd\"}}", VP_ERR_FORMAT, "plain name"},
        {"a sub folder", "{\"weight_map\":{\"a\":\"x/1.safetensors\"}}", VP_ERR_FORMAT, "plain name"},
        {"an escaped slash", "{\"weight_map\":{\"a\":\"x\\u002f1.safetensors\"}}", VP_ERR_FORMAT, "plain name"},
        {"the folder above", "{\"weight_map\":{\"a\":\"..\"}}", VP_ERR_FORMAT, "plain name"},
        {"an empty name", "{\"weight_map\":{\"a\":\"\"}}", VP_ERR_FORMAT, "plain name"},
        {"a name with NUL", "{\"weight_map\":{\"a\":\"1.safetensors\\u0000x\"}}", VP_ERR_FORMAT, "plain name"},
        {"a tensor name with NUL", "{\"weight_map\":{\"a\\u0000\":\"1.safetensors\"}}", VP_ERR_FORMAT, "NUL"},
        {"a pickle", "{\"weight_map\":{\"a\":\"pytorch_model-1.bin\"}}", VP_ERR_UNSUPPORTED, "execute code"},
        {"a tensor twice", "{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"2.safetensors\",\"a\":\"2.safetensors\"}}", VP_ERR_FORMAT, "twice"},
        {"a missing shard",
         "{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"2.safetensors\",\"c\":\"3.safetensors\"}}", VP_ERR_NOT_FOUND, "3.safetensors"},
        {"a missing tensor", "{\"weight_map\":{\"a\":\"1.safetensors\",\"b\":\"2.safetensors\",\"c\":\"2.safetensors\"}}", VP_ERR_MISMATCH,
         "1 missing: c (not in 2.safetensors)"},
        {"a tensor outside the map", "{\"weight_map\":{\"b\":\"2.safetensors\",\"c\":\"1.safetensors\"}}", VP_ERR_MISMATCH,
         "1 missing: c (not in 1.safetensors); 1 extra: a (in 1.safetensors, not in the index)"},
        {"tensors in each other's file", "{\"weight_map\":{\"a\":\"2.safetensors\",\"b\":\"1.safetensors\"}}", VP_ERR_MISMATCH,
         "2 in a different file than in the index: a, b"},
    };
    vp_checkpoint *cp = NULL;
    vp_tensor t;
    vp_error error;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_case("index: %s", cases[i].what);
        make_empty(folder);
        safetensors_write("1.safetensors", one, sizeof one - 1, 1, -1);
        safetensors_write("2.safetensors", other, sizeof other - 1, 1, -1);
        file_write("model.safetensors.index.json", cases[i].index, strlen(cases[i].index));
        CHECK_INT(folder_open(NULL, &error), cases[i].code);
        if (cases[i].code != VP_OK && !CHECK(strstr(error.text, cases[i].text) != NULL)) printf("  (%s)\n", error.text);
        if (cases[i].code == VP_ERR_MISMATCH) CHECK_TEXT(error.text, cases[i].text); /* the error does not name anything else */
    }
    check_case("index: one tensor in two shards");
    safetensors_write("2.safetensors", "{" TENSOR("a", "U8", "1", "0", "1") "," TENSOR("b", "U8", "1", "1", "2") "}",
                      strlen("{" TENSOR("a", "U8", "1", "0", "1") "," TENSOR("b", "U8", "1", "1", "2") "}"), 2, -1);
    file_write("model.safetensors.index.json", good, sizeof good - 1);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_MISMATCH);
    CHECK(strstr(error.text, "1 in two files: a") != NULL);
    check_case("index: a broken shard is named");
    file_write("2.safetensors", "xx", 2);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_FORMAT);
    CHECK(strstr(error.where, "2.safetensors") != NULL);
    check_case("index: shards are sorted by name");
    safetensors_write("2.safetensors", other, sizeof other - 1, 1, -1);
    CHECK_INT(vp_checkpoint_open(folder, NULL, &cp, &error), VP_OK);
    CHECK(cp && vp_checkpoint_find(cp, "b", &t) == VP_ERR_UNSUPPORTED);
    vp_checkpoint_close(cp);
    check_case("model.safetensors takes precedence over the index");
    safetensors_write("model.safetensors", "{}", 2, 0, -1);
    cp = NULL;
    CHECK_INT(vp_checkpoint_open(folder, NULL, &cp, &error), VP_OK);
    vp_checkpoint_close(cp);
}

/* Reads a folder whose "file" can be read but whose model.safetensors cannot. Each fault is one bit. */
static int read_unreadable(void) {
    vp_checkpoint *cp = NULL;
    char *text;
    size_t bytes;
    return (vp_file_read("file", 100, &text, &bytes, NULL) != VP_OK) | (vp_checkpoint_open(".", NULL, &cp, NULL) != VP_ERR_READ) << 1
           | (vp_file_read("model.safetensors", 100, &text, &bytes, NULL) != VP_ERR_READ) << 2;
}
static void test_folder_errors(void) {
    vp_checkpoint *cp = NULL;
    vp_error error;
    make_empty(folder);
    check_case("an empty folder");
    CHECK_INT(folder_open(NULL, &error), VP_ERR_NOT_FOUND);
    CHECK(strstr(error.text, "model.safetensors") != NULL);
    check_case("only pytorch_model.bin: rejected with the reason");
    file_write("pytorch_model.bin", "x", 1);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_UNSUPPORTED);
    CHECK(strstr(error.text, "execute code") != NULL && strstr(error.text, "safe_serialization=True") != NULL);
    make_empty(folder);
    file_write("pytorch_model.bin.index.json", "{}", 2);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_UNSUPPORTED);
    check_case("OLMo's original format is named in the error");
    make_empty(folder);
    file_write("config.yaml", "", 0);
    file_write("model.pt", "x", 1);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_UNSUPPORTED);
    CHECK(strstr(error.text, "OLMo's original training format") != NULL);
    check_case("a folder instead of model.safetensors");
    CHECK(mkdir(in_folder("model.safetensors"), 0700) == 0);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_READ);
    CHECK(strstr(error.text, "folder") != NULL);
    make_empty(folder);
    check_case("a pipe instead of model.safetensors is rejected without waiting");
    CHECK(mkfifo(in_folder("model.safetensors"), 0600) == 0);
    CHECK_INT(folder_open(NULL, &error), VP_ERR_READ);
    make_empty(folder);
    check_case("a missing folder, a file instead of a folder, NULL");
    CHECK_INT(vp_checkpoint_open(in_folder("missing"), NULL, &cp, &error), VP_ERR_NOT_FOUND);
    file_write("file", "x", 1);
    CHECK_INT(vp_checkpoint_open(in_folder("file"), NULL, &cp, &error), VP_ERR_READ);
    CHECK_INT(vp_checkpoint_open(NULL, NULL, &cp, &error), VP_ERR_RANGE);
    CHECK_INT(vp_checkpoint_open(folder, NULL, NULL, &error), VP_ERR_RANGE);
    CHECK(cp == NULL);
    vp_checkpoint_close(NULL);
    check_case("unreadable files are VP_ERR_READ");
    safetensors_write("model.safetensors", "{}", 2, 0, -1);
    int modes = chmod(in_folder("file"), 0644) | chmod(in_folder("model.safetensors"), 0);
    int code = without_root(read_unreadable);
    if (code < 0) check_skip("unreadable files", "this user is root, and cannot be another");
    else CHECK_INT(modes | code, 0);
}

/* model.safetensors of the tiny preset with zeros for data; one fault at a time */
enum { FAULT_NONE, FAULT_BUFFERS, FAULT_MISSING, FAULT_EXTRA, FAULT_SHAPE, FAULT_RANK, FAULT_TYPE, FAULT_SEVERAL };
static void model_write(const vp_model_config *c, int fault) {
    int64_t i, count = vp_model_tensor_count(c), offset = 0;
    char *header = (char *)malloc(1 << 20), *p = header;
    if (!header) exit(1);
    *p++ = '{';
    for (i = 0; i < count; i++) {
        vp_tensor_spec s;
        const char *type = i % 3 ? "BF16" : "F16";
        int64_t bytes = 2;
        vp_model_tensor(c, i, &s);
        if ((fault == FAULT_MISSING || fault == FAULT_SEVERAL) && i == 2) continue;
        if ((fault == FAULT_SHAPE || fault == FAULT_SEVERAL) && i == 0) s.shape[1]++;
        if (fault == FAULT_RANK && i == 0) { s.shape[0] *= s.shape[1]; s.dimensions = 1; }
        if (fault == FAULT_TYPE && i == 1) { type = "I64"; bytes = 8; }
        if ((fault == FAULT_EXTRA || fault == FAULT_SEVERAL) && i == 0) p += sprintf(p, TENSOR("extra.weight", "F16", "1", "0", "2") ",");
        if (fault == FAULT_BUFFERS && i == 0)
            p += sprintf(p, TENSOR("a.rotary_emb.inv_freq", "F16", "1", "0", "2") "," TENSOR("position_ids", "I64", "1", "2", "10") ","
                            TENSOR("flag", "BOOL", "1", "10", "11") "," TENSOR("scalar", "F16", "", "11", "13") "," TENSOR("empty", "F32", "0,5", "13", "13") ",");
        if (i == 0) offset = fault == FAULT_EXTRA || fault == FAULT_SEVERAL ? 2 : fault == FAULT_BUFFERS ? 13 : 0;
        bytes *= s.shape[0] * (s.dimensions == 2 ? s.shape[1] : 1);
        p += sprintf(p, "\"%s\":{\"dtype\":\"%s\",\"shape\":[%lld", s.name, type, (long long)s.shape[0]);
        if (s.dimensions == 2) p += sprintf(p, ",%lld", (long long)s.shape[1]);
        p += sprintf(p, "],\"data_offsets\":[%lld,%lld]},", (long long)offset, (long long)(offset + bytes));
        offset += bytes;
    }
    p[-1] = '}';
    uint64_t length = (uint64_t)(p - header);
    FILE *f = fopen(in_folder("model.safetensors"), "wb");
    if (!f) exit(1);
    for (i = 0; i < 8; i++) fputc((int)(length >> (8 * i) & 255), f);
    fwrite(header, 1, (size_t)length, f);
    fseek(f, (long)offset - 1, SEEK_CUR);
    fputc(0, f);
    fclose(f);
    free(header);
}

static void test_model_faults(void) {
    static const struct { int fault; vp_result code; const char *text; } cases[] = {
        {FAULT_NONE, VP_OK, ""}, {FAULT_BUFFERS, VP_OK, ""},
        {FAULT_MISSING, VP_ERR_MISMATCH, "1 missing: model.transformer.ln_f.weight [128]"},
        {FAULT_EXTRA, VP_ERR_MISMATCH, "1 extra: extra.weight [1]"},
        {FAULT_SHAPE, VP_ERR_MISMATCH, "1 misshapen: model.transformer.wte.embedding is [320, 129], expected [320, 128]"},
        {FAULT_RANK, VP_ERR_MISMATCH, "1 misshapen: model.transformer.wte.embedding is [40960], expected [320, 128]"},
        {FAULT_TYPE, VP_ERR_UNSUPPORTED, "1 of an unusable type: model.transformer.wte.new_embedding is I64, not F32, BF16 or F16"},
        {FAULT_SEVERAL, VP_ERR_MISMATCH,
         "1 missing: model.transformer.ln_f.weight [128]; 1 extra: extra.weight [1]; "
         "1 misshapen: model.transformer.wte.embedding is [320, 129], expected [320, 128]"},
    };
    vp_model_config c;
    vp_error error;
    vp_model_config_preset("tiny", &c);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_case("names and shapes against the config, fault %d", cases[i].fault);
        make_empty(folder);
        model_write(&c, cases[i].fault);
        CHECK_INT(folder_open(&c, &error), cases[i].code);
        if (cases[i].code != VP_OK) CHECK_TEXT(error.text, cases[i].text); /* the error does not name anything else */
        CHECK_INT(folder_open(NULL, &error), VP_OK);
    }
    check_case("many faults: their numbers and the first names");
    c.block_count = 6;
    c.d_model = 132;
    CHECK_INT(folder_open(&c, &error), VP_ERR_MISMATCH);
    CHECK(strstr(error.text, "missing: model.transformer.") != NULL && strstr(error.text, " ...; 1") != NULL);
    CHECK(strstr(error.text, " misshapen: ") != NULL);
    CHECK(strlen(error.text) > 300 && strstr(error.text, "attn.q_norm.weight [132], model.") != NULL); /* three of each, with shapes */
}

/* tensors under the names of OLMo's training code, with and without the Hugging Face prefix */
static void test_original_format(void) {
    static const char *const headers[] = {
        "{" TENSOR("transformer.wte.embedding", "F32", "1", "0", "4") "," TENSOR("transformer.ff_out.weight", "F32", "1", "4", "8") "}",
        "{" TENSOR("transformer.blocks.0.att_proj.weight", "F32", "2", "0", "8") "}",
        "{" TENSOR("model.transformer.blocks.0.ffn.experts.mlp.w2", "F32", "2", "0", "8") "}"};
    vp_model_config c;
    vp_error error;
    vp_model_config_preset("tiny", &c);
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        check_case("OLMo's original tensor names, %d", (int)i);
        make_empty(folder);
        safetensors_write("model.safetensors", headers[i], strlen(headers[i]), 8, -1);
        CHECK_INT(folder_open(&c, &error), VP_ERR_UNSUPPORTED);
        CHECK(strstr(error.text, "OLMo's original training format") && strstr(error.text, "w2 transposed"));
        CHECK_INT(folder_open(NULL, &error), VP_OK);
    }
    check_case("other unknown names are only listed");
    make_empty(folder);
    safetensors_write("model.safetensors", "{" TENSOR("visual.x", "F32", "2", "0", "8") "}", strlen("{" TENSOR("visual.x", "F32", "2", "0", "8") "}"), 8, -1);
    CHECK_INT(folder_open(&c, &error), VP_ERR_MISMATCH);
    CHECK(strstr(error.text, "1 extra: visual.x [2]") != NULL);
}

/* ------------------------------------------------------------------------------------------------------- memory */
static int64_t file_pages_bytes(void) { /* size of mapped files in this process's memory; -1 if unknown */
    char line[128];
    long long kilobytes = -1, shared = 0; /* pages of /dev/shm are counted separately */
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "RssFile: %lld", &kilobytes);
        sscanf(line, "RssShmem: %lld", &shared);
    }
    if (f) fclose(f);
    return kilobytes < 0 ? -1 : (kilobytes + shared) * 1024;
}
static uint64_t sum_of(const vp_tensor *t) {
    uint64_t sum = 0, i;
    for (i = 0; i < t->bytes; i++) sum = sum * 31 + t->data[i];
    return sum;
}
static void test_advise(void) {
    enum { SIDE = 1 << 22 }; /* 16 MiB each in F32 */
    static const char header[] = "{" TENSOR("a", "F32", "4194304", "0", "16777216") "," TENSOR("odd", "F16", "1", "16777216", "16777218") ","
        TENSOR("b", "F32", "4194304", "16777218", "33554434") "," TENSOR("none", "F32", "0", "33554434", "33554434") "}";
    vp_checkpoint *cp = NULL;
    vp_tensor a, b, odd, none;
    vp_error error;
    make_empty(folder);
    safetensors_write("model.safetensors", header, sizeof header - 1, 33554434, -1);
    check_case("weights that were read leave memory and come back unchanged");
    CHECK_INT(vp_checkpoint_open(folder, NULL, &cp, &error), VP_OK);
    if (!cp) return;
    CHECK(!vp_checkpoint_find(cp, "a", &a) && !vp_checkpoint_find(cp, "b", &b) && !vp_checkpoint_find(cp, "odd", &odd));
    CHECK_INT(vp_checkpoint_find(cp, "none", &none), VP_OK);
    CHECK_INT(a.shape[0], SIDE);
    int64_t before = file_pages_bytes();
    vp_checkpoint_advise(cp, &a, 1);
    uint64_t sum_a = sum_of(&a);
    uint64_t sum_b = sum_of(&b);
    int64_t read_all = file_pages_bytes();
    vp_checkpoint_advise(cp, &a, 0);
    int64_t after = file_pages_bytes();
    if (before >= 0) {
        CHECK(read_all - before > 30 << 20 && read_all - after >= 16 << 20);
        vp_checkpoint_advise(cp, &b, 0);
        vp_checkpoint_advise(cp, &odd, 0);
        CHECK(file_pages_bytes() - before < 1 << 20);
    }
    vp_checkpoint_advise(cp, &none, 1);
    vp_checkpoint_advise(cp, &none, 0);
    vp_checkpoint_advise(NULL, &a, 0);
    vp_checkpoint_advise(cp, NULL, 0);
    CHECK(sum_of(&a) == sum_a && sum_of(&b) == sum_b);
    vp_checkpoint_close(cp);
    if (before < 0) check_skip("what leaves memory", "this system does not tell it");
}

static void test_golden_models(void) {
    static const char *const names[2] = {"tiny-a", "tiny-b"};
    for (int i = 0; i < 2; i++) {
        char name[64], directory[512];
        vp_model_config c;
        vp_checkpoint *cp = NULL;
        vp_tensor t;
        vp_error error = {0};
        int64_t k, found = 0;
        snprintf(name, sizeof name, "models/%s/config.json", names[i]);
        const char *path = check_golden(name);
        char *text = check_read(path, NULL);
        if (!text) { check_skip(name, "golden models not found"); continue; }
        check_case("%s opens; every tensor is found", names[i]);
        snprintf(directory, sizeof directory, "%.*s", (int)(strlen(path) - strlen("/config.json")), path);
        CHECK_INT(vp_model_config_parse(text, strlen(text), NULL, 0, &c, &error), VP_OK);
        CHECK_INT(vp_checkpoint_open(directory, &c, &cp, &error), VP_OK);
        CHECK_TEXT(error.text, "");
        for (k = 0; cp && k < vp_model_tensor_count(&c); k++) {
            vp_tensor_spec s;
            vp_model_tensor(&c, k, &s);
            found += vp_checkpoint_find(cp, s.name, &t) == VP_OK && t.dimensions == s.dimensions && t.shape[0] == s.shape[0];
        }
        CHECK_INT(found, vp_model_tensor_count(&c));
        CHECK_INT(vp_checkpoint_find(cp, "lm_head.weight", &t), VP_OK);
        CHECK_INT(t.dtype, i ? VP_DTYPE_F32 : VP_DTYPE_BF16);
        vp_checkpoint_close(cp);
        free(text);
    }
}

/* ------------------------------------------------------------------------------------------------- file reading */
static void test_file_read(void) {
    char *text = NULL, *big;
    size_t bytes = 0, i;
    vp_error error;
    make_empty(folder);
    check_case("a file, an empty file, the limit");
    file_write("five", "a\0b\nc", 5);
    CHECK_INT(vp_file_read(in_folder("five"), 5, &text, &bytes, &error), VP_OK);
    CHECK(bytes == 5 && !memcmp(text, "a\0b\nc", 6));
    free(text);
    text = NULL;
    CHECK_INT(vp_file_read(in_folder("five"), 4, &text, &bytes, &error), VP_ERR_RANGE);
    CHECK(text == NULL);
    file_write("empty", "", 0);
    CHECK_INT(vp_file_read(in_folder("empty"), 0, &text, &bytes, &error), VP_OK);
    CHECK(bytes == 0 && text && text[0] == 0);
    free(text);
    text = NULL;
    check_case("an endless file: reading stops at the limit");
    CHECK_INT(vp_stream_read("/dev/zero", 300000, &text, &bytes, &error), VP_ERR_RANGE);
    check_case("a larger file, with any limit");
    big = (char *)malloc(300000);
    if (!big) exit(1);
    for (i = 0; i < 300000; i++) big[i] = (char)(i * 7 + i / 251);
    file_write("big", big, 300000);
    CHECK_INT(vp_file_read(in_folder("big"), SIZE_MAX, &text, &bytes, &error), VP_OK);
    CHECK(bytes == 300000 && !memcmp(text, big, 300000) && text[300000] == 0);
    FREE_ALL(text, big);
    text = NULL;
    check_case("missing files and folders");
    CHECK_INT(vp_file_read(in_folder("missing"), 10, &text, &bytes, &error), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_file_read(in_folder("five/x"), 10, &text, &bytes, &error), VP_ERR_NOT_FOUND);
    CHECK_INT(vp_file_read(folder, 10, &text, &bytes, &error), VP_ERR_READ);
    CHECK_INT(vp_file_read(NULL, 10, &text, &bytes, &error), VP_ERR_RANGE);
    CHECK_INT(vp_file_read(in_folder("five"), 10, &text, &bytes, NULL), VP_OK);
    free(text);
}

/* each allocation fails once: VP_ERR_MEMORY, no output and (checked by sanitizers) no leak */
static void test_memory(void) {
    static const char index[] = "{\"weight_map\":{\"b\":\"2.safetensors\",\"a\":\"1.safetensors\"}}";
    static const char one[] = "{" METADATA ":{\"k\":\"v\"}," TENSOR("a", "U8", "1", "0", "1") "}", other[] = "{" TENSOR("b", "U8", "1", "0", "1") "}";
    vp_model_config c;
    vp_checkpoint *cp = NULL;
    vp_error error;
    char *text = NULL;
    size_t bytes;
    int i, failures[3] = {0, 0, 0}, wrong = 0;
    vp_result result;
    make_empty(folder);
    check_case("out of memory at each allocation");
    safetensors_write("1.safetensors", one, sizeof one - 1, 1, -1);
    safetensors_write("2.safetensors", other, sizeof other - 1, 1, -1);
    file_write("model.safetensors.index.json", index, sizeof index - 1);
    for (i = 0, result = VP_ERR_MEMORY; i < 100 && result != VP_OK; i++) {
        allocations_left = i;
        result = vp_checkpoint_open(folder, NULL, &cp, &error);
        failures[0] += result != VP_OK;
        wrong += result != VP_OK && (result != VP_ERR_MEMORY || cp != NULL);
    }
    allocations_left = -1;
    vp_checkpoint_close(cp);
    for (i = 0, result = VP_ERR_MEMORY; i < 100 && result != VP_OK && config_text; i++) {
        allocations_left = i;
        result = vp_model_config_parse(config_text, strlen(config_text), preprocessor_text, strlen(preprocessor_text), &c, &error);
        failures[1] += result != VP_OK;
        wrong += result != VP_OK && result != VP_ERR_MEMORY;
    }
    for (i = 0, result = VP_ERR_MEMORY; i < 100 && result != VP_OK; i++) {
        allocations_left = i;
        result = vp_file_read(in_folder("1.safetensors"), 1000, &text, &bytes, &error);
        failures[2] += result != VP_OK;
        wrong += result != VP_OK && result != VP_ERR_MEMORY;
    }
    allocations_left = -1;
    free(text);
    CHECK_INT(wrong, 0);
    CHECK(failures[0] >= 15 && (failures[1] == 2 || !config_text) && failures[2] == 1);
}

int main(void) {
    if (!folder_make("checkpoint")) return 1;
    RUN_TESTS(test_conversions, test_config, test_presets, test_rope_scaling, test_internvl_chat, test_ties,
              test_published_configs, test_headers, test_find, test_folders, test_folder_errors, test_model_faults,
              test_original_format, test_advise, test_golden_models, test_file_read, test_memory);
    remove_folder(folder);
    FREE_ALL(config_text, preprocessor_text);
    return check_done("test_checkpoint");
}
