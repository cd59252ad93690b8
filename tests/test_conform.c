/* test_conform.c: `conform` as a program. A stack with one planted difference is reported with the stage of that difference; stacks that only round pass; damaged files
 * of another stack are errors; a server is judged by its visible values. The other stacks are copies of a golden checkpoint with one change, and folders of `run --dump`
 * with one changed file. Of 200 pairs of stacks that round differently, make test tries 20, make test-slow the others. Runs $PROGRAM
 * (default ./vlmprof) from the repository's root. */
#define _POSIX_C_SOURCE 200809L
#include "support/command.h"
#include "support/hostile_server.h"

#define PICTURE "tests/golden/othermodels/images/mix-200x150.png"
#define LLAVA "tests/golden/othermodels/llava/checkpoint"
#define MODEL "tests/golden/othermodels/%s/checkpoint"
#define CAT "samples/cat.jpg -p 'What is this?' --max_new_tokens 6"
#define QUESTION "-p 'What is this?' --max_new_tokens 6"

/* ---------------------------------------------------------------------------------------------------------- other stacks */
/* Replaces the first `from` after the first `after` in a file of a checkpoint's copy; the file was not linked. */
static void change_text(const char *golden, const char *copy, const char *name, const char *behind, const char *from, const char *to) {
    char path[1024], *text, *at, *out;
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s", golden, name);
    text = check_read(path, &bytes);
    at = text ? strstr(text, behind) : NULL;
    at = at ? strstr(at, from) : NULL;
    if (CHECK(at != NULL)) {
        out = (char *)calloc(bytes + strlen(to) + 1, 1);
        snprintf(out, bytes + strlen(to) + 1, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
        snprintf(path, sizeof path, "%s/%s", copy, name);
        write_text(path, out);
        free(out);
    }
    free(text);
}
/* The whole weights file of a checkpoint, and the position of a tensor's data in it. */
static unsigned char *tensor_of(char *file, const char *name, size_t *count) {
    char key[200], *at;
    long long begin = 0, end = 0;
    uint64_t header;
    memcpy(&header, file, 8);
    snprintf(key, sizeof key, "\"%s\"", name);
    at = strstr(file + 8, key);
    at = at ? strstr(at, "\"data_offsets\":[") : NULL;
    if (!CHECK(at && sscanf(at, "\"data_offsets\":[%lld,%lld]", &begin, &end) == 2)) return NULL;
    *count = (size_t)(end - begin) / 2; /* bf16 */
    return (unsigned char *)file + 8 + header + begin;
}
typedef void change(uint16_t *values, size_t count);
static void zero(uint16_t *values, size_t count) { memset(values, 0, count * 2); }
static void swap_halves(uint16_t *values, size_t count) {
    for (size_t i = 0; i < count / 2; i++) {
        const uint16_t first = values[i];
        values[i] = values[count / 2 + i];
        values[count / 2 + i] = first;
    }
}
/* Doubles query weights, so that the softmax has twice the scale. Exact in bf16 without overflow. */
static void make_double(uint16_t *values, size_t count) {
    for (size_t i = 0; i < count; i++) if (values[i] & 0x7f80u) values[i] = (uint16_t)(values[i] + 0x80u);
}
/* A copy of LLAVA at folder/NAME with one tensor changed; if tensor is NULL, all tensors. */
static void change_weights(const char *golden, const char *name, const char *tensor, change *how) {
    char path[1024];
    size_t bytes = 0, count = 0;
    char *file;
    unsigned char *data;
    snprintf(path, sizeof path, "%s/model.safetensors", golden);
    file = check_read(path, &bytes);
    if (!CHECK(file != NULL)) return;
    link_model(golden, in_folder(name), "model.safetensors");
    if (tensor) data = tensor_of(file, tensor, &count);
    else {
        uint64_t header;
        memcpy(&header, file, 8);
        data = (unsigned char *)file + 8 + header;
        count = (bytes - 8 - header) / 2;
    }
    if (data) {
        uint16_t *values = (uint16_t *)malloc(count * 2);
        memcpy(values, data, count * 2);
        how(values, count);
        memcpy(data, values, count * 2);
        free(values);
    }
    snprintf(path, sizeof path, "%s/model.safetensors", in_folder(name));
    write_file(path, file, bytes);
    free(file);
}

/* ------------------------------------------------------------------------------------------------------------- verdicts */
static const char *const stage_names[] = {"prompt_ids", "image", "pixels", "tower", "connector", "prefill", "tokens"};
static uint32_t stage_of(const document *d, const char *name) {
    const uint32_t all = member(d, 0, "stages");
    for (uint32_t i = all + 1; i < d->nodes[all].end; i = d->nodes[i].end) if (is_text(d, i, "stage", name)) return i;
    return all;
}
/* Runs conform. Checks that the first difference is at that stage (if NULL, that there is none) and that the JSON is consistent. The caller frees d->nodes if this
 * returns 1. */
static int parts_at(const char *arguments, const char *stage, document *d) {
    char command[2000];
    snprintf(command, sizeof command, "conform %s --json", arguments);
    if (!cli_json(command, stage ? 1 : 0, d)) {
        if (getenv("VERBOSE")) printf("%s\n", last.out);
        return 0;
    }
    if (stage) check_note(is_text(d, 0, "first_difference", stage), __FILE__, __LINE__, "%s: parts elsewhere than at %s: %s", arguments, stage, last.out);
    else CHECK(is_null(d, 0, "first_difference"));
    for (int i = 0; i < 7; i++) {
        const uint32_t row = stage_of(d, stage_names[i]);
        const int parted = is_text(d, row, "verdict", "parted"), equal = is_text(d, row, "verdict", "equal");
        check_keys(d, row, "stage verdict distance bound");
        if (stage && !strcmp(stage, stage_names[i])) CHECK(parted);
        if (!stage) CHECK(!parted);
        if (equal) CHECK_NEAR(number(d, row, "distance"), 0, 0);
        if (is_text(d, row, "verdict", "rounding")) CHECK(number(d, row, "distance") <= number(d, row, "bound"));
        if (parted && !is_null(d, row, "distance") && !is_null(d, row, "bound")) CHECK(number(d, row, "distance") > number(d, row, "bound"));
    }
    return 1;
}
static void expect_at(const char *arguments, const char *stage) {
    document d;
    if (parts_at(arguments, stage, &d)) free(d.nodes);
}

static void test_equal(void) {
    static const char *const models[] = {"llava", "smolvlm", "internvl", "molmo_7b_d"};
    char command[1000];
    document d;
    check_case("the same checkpoint against itself and its own dump: all stages are compared, none differs");
    for (int i = 0; i < 4; i++) {
        snprintf(command, sizeof command, PICTURE " " QUESTION " --gemm plain --model " MODEL " --against " MODEL, models[i], models[i]);
        if (parts_at(command, NULL, &d)) {
            for (int s = 0; s < 7; s++) CHECK(is_text(&d, stage_of(&d, stage_names[s]), "verdict", "equal"));
            free(d.nodes);
        }
        snprintf(command, sizeof command, "run " PICTURE " " QUESTION " --weights fp32 --cold --ignore_eos --model " MODEL " --dump %%F/dump", models[i]);
        CHECK_INT(cli(command), 0);
        snprintf(command, sizeof command, PICTURE " " QUESTION " --model " MODEL " --against dump:%%F/dump", models[i]);
        if (parts_at(command, NULL, &d)) {
            CHECK(is_text(&d, 0, "precision", "fp32"));
            for (int s = 0; s < 7; s++) CHECK(!is_text(&d, stage_of(&d, stage_names[s]), "verdict", "unseen"));
            free(d.nodes);
        }
        snprintf(command, sizeof command, "run " PICTURE " " QUESTION " --cold --ignore_eos --model " MODEL " --dump %%F/dump", models[i]);
        CHECK_INT(cli(command), 0);
        snprintf(command, sizeof command, PICTURE " " QUESTION " --model " MODEL " --against dump:%%F/dump", models[i]);
        if (parts_at(command, NULL, &d)) { /* bf16 was detected */
            CHECK(is_text(&d, 0, "precision", "bf16") && is_text(&d, stage_of(&d, "prefill"), "verdict", "rounding"));
            free(d.nodes);
        }
    }
    check_case("files of the reference implementation, and a text without an image");
    expect_at(PICTURE " --max_new_tokens 6 -p 'Describe the picture in one short sentence.' --model " LLAVA
              " --against dump:tests/golden/othermodels/llava/image-a", NULL);
    if (parts_at(QUESTION " --model " LLAVA " --against " LLAVA, NULL, &d)) {
        CHECK(is_text(&d, stage_of(&d, "tower"), "verdict", "unseen"));
        free(d.nodes);
    }
    CHECK_INT(cli("conform " QUESTION " --model " LLAVA " --against " LLAVA), 0);
    check_case("two images: each stage shows the worse one");
    change_weights(LLAVA, "other", "multi_modal_projector.linear_2.bias", zero);
    expect_at(PICTURE " tests/golden/othermodels/images/stripes-333x517.png " QUESTION " --model " LLAVA " --against %F/other", "connector");
    expect_at(PICTURE " tests/golden/othermodels/images/stripes-333x517.png " QUESTION " --model " LLAVA " --against " LLAVA, NULL);
    CHECK_INT(cli("conform " QUESTION " --model " LLAVA " --against " LLAVA), 0);
    CHECK(last.out && !strncmp(last.out, "The two ", 8));
}
static void test_planted_weights(void) {
    static const struct { const char *tensor; change *how; const char *stage; } faults[] = {
        {"vision_tower.vision_model.embeddings.patch_embedding.weight", swap_halves, "tower"},
        {"vision_tower.vision_model.encoder.layers.0.mlp.fc2.bias", zero, "tower"},
        {"vision_tower.vision_model.encoder.layers.2.self_attn.out_proj.bias", zero, "tower"},
        {"multi_modal_projector.linear_1.bias", zero, "connector"},
        {"multi_modal_projector.linear_2.bias", zero, "connector"},
        {"language_model.model.layers.1.self_attn.v_proj.weight", swap_halves, "prefill"},
        {"language_model.lm_head.weight", swap_halves, "prefill"},
        {"vision_tower.vision_model.encoder.layers.1.self_attn.q_proj.weight", make_double, "tower"},
        {"language_model.model.layers.1.self_attn.q_proj.weight", make_double, "prefill"}};
    check_case("planted in the weights: order of channels or of half a matrix, a missing bias in tower and connector, the scale of a softmax");
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        change_weights(LLAVA, "other", faults[i].tensor, faults[i].how);
        expect_at(PICTURE " " QUESTION " --model " LLAVA " --against %F/other", faults[i].stage);
    }
}
static void test_planted_settings(void) {
    static const struct { const char *file, *behind, *from, *to, *stage; } faults[] = {
        {"preprocessor_config.json", "image_mean", "0.48145466", "0.5", "pixels"},
        {"preprocessor_config.json", "image_std", "0.26130258", "0.25", "pixels"},
        {"config.json", "rope_theta", "10000.0", "20000.0", "prefill"},
        {"config.json", "rms_norm_eps", "1e-05", "1e-03", "prefill"},
        {"config.json", "vision_feature_layer", "-2", "-1", "tower"},
        {"config.json", "\"vision_config\"", "1e-05", "1e-02", "tower"}};
    char copy[600];
    check_case("planted in the settings: mean, deviation, RoPE base, epsilon, the tower's layer and its epsilon");
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        snprintf(copy, sizeof copy, "%s", in_folder("other"));
        link_model(LLAVA, copy, faults[i].file);
        change_text(LLAVA, copy, faults[i].file, faults[i].behind, faults[i].from, faults[i].to);
        expect_at(PICTURE " " QUESTION " --model " LLAVA " --against %F/other", faults[i].stage);
    }
}

/* --------------------------------------------------------------------------------------------------------------- files */
enum { NPY_START = 128 };
/* The start and size in bytes of the data in one of vlmprof's files. */
static char *npy_data(char *file, size_t bytes, size_t *data_bytes) {
    const size_t start = 10 + (unsigned char)file[8] + 256u * (unsigned char)file[9];
    *data_bytes = bytes - start;
    return file + start;
}
/* A copy of a dumped file, changed by `how`. */
enum damage { NO_BOS, SWAP_CHANNELS, SHIFT_HALF_A_PIXEL, SWAP_VIEWS, DROP_FIRST, LAST_OTHER, NOT_A_NUMBER, CUT_SHORT, LONGER, OTHER_TYPE, NO_NPY, HUGE_SHAPE, FORTRAN };
static void damage_file(const char *folder_name, const char *name, enum damage how) {
    char path[1024];
    size_t bytes = 0, data_bytes = 0;
    char *file, *data;
    snprintf(path, sizeof path, "%s/%s", in_folder(folder_name), name);
    file = check_read(path, &bytes);
    if (!CHECK(file != NULL)) return;
    data = npy_data(file, bytes, &data_bytes);
    if (how == SWAP_CHANNELS) { /* [views, 3, y, x]: red and blue of each view */
        char *plane = (char *)malloc(84 * 84 * 4);
        for (size_t view = 0; view < data_bytes / (3 * 84 * 84 * 4); view++) {
            char *red = data + view * 3 * 84 * 84 * 4, *blue = red + 2 * 84 * 84 * 4;
            memcpy(plane, red, 84 * 84 * 4);
            memmove(red, blue, 84 * 84 * 4);
            memcpy(blue, plane, 84 * 84 * 4);
        }
        free(plane);
    } else if (how == SHIFT_HALF_A_PIXEL) {
        float *values = (float *)malloc(data_bytes);
        memcpy(values, data, data_bytes);
        for (size_t i = 0; i + 1 < data_bytes / 4; i++) values[i] = (values[i] + values[i + 1]) / 2;
        memcpy(data, values, data_bytes);
        free(values);
    } else if (how == SWAP_VIEWS) { /* two of thirteen views swap places */
        const size_t view = data_bytes / 13;
        char *first = (char *)malloc(view);
        memcpy(first, data, view);
        memcpy(data, data + view, view);
        memcpy(data + view, first, view);
        free(first);
    } else if (how == NO_BOS) { /* one id fewer, and header padding instead */
        char *shape = strchr(file + 10, '('), *end = strchr(shape, '}') + 1, tail[40];
        const int left = atoi(shape + 1) - 1, length = snprintf(tail, sizeof tail, "(%d,), }", left);
        memset(shape, ' ', (size_t)(end - shape));
        if (CHECK(length <= end - shape)) memcpy(shape, tail, (size_t)length);
        memmove(data, data + 8, data_bytes -= 8);
        bytes -= 8;
    } else if (how == DROP_FIRST || how == LAST_OTHER) { /* int64; the header contains the count */
        if (how == LAST_OTHER) data[data_bytes - 8] = (char)(data[data_bytes - 8] ^ 1);
        else data[0] = (char)(data[0] ^ 2);
    } else if (how == NOT_A_NUMBER) memset(data + data_bytes / 2 / 4 * 4, 0xff, 4);
    else if (how == OTHER_TYPE) memcpy(strstr(file + 10, "'<") + 1, "<c8", 3);
    else if (how == NO_NPY) memcpy(file, "GIF89a", 6);
    else if (how == HUGE_SHAPE) memcpy(strchr(file + 10, '(') + 1, "99999999999999999999", 1), memset(strchr(file + 10, '(') + 1, '9', 3);
    else if (how == FORTRAN) memcpy(strstr(file + 10, "False"), "True ", 5);
    if (how == CUT_SHORT) bytes -= 5;
    write_file(path, file, bytes);
    if (how == LONGER) {
        FILE *f = fopen(path, "ab");
        if (CHECK(f != NULL)) CHECK(fputs("more", f) >= 0 && !fclose(f));
    }
    free(file);
}
static void dump_again(const char *model) {
    char command[600];
    snprintf(command, sizeof command, "run " PICTURE " " QUESTION " --weights fp32 --cold --ignore_eos --model " MODEL " --dump %%F/dump", model);
    CHECK_INT(cli(command), 0);
}
static void test_planted_files(void) {
    static const struct { const char *model, *file; enum damage how; const char *stage; } faults[] = {
        {"llava", "pixels.npy", SWAP_CHANNELS, "pixels"}, {"llava", "pixels.npy", SHIFT_HALF_A_PIXEL, "pixels"},
        {"smolvlm", "pixels.npy", SWAP_VIEWS, "pixels"},  {"smolvlm", "tower.npy", SWAP_VIEWS, "tower"},
        {"smolvlm", "image_features.npy", SWAP_VIEWS, "connector"},
        {"llava", "input_ids.npy", DROP_FIRST, "prompt_ids"}, {"llava", "input_ids.npy", LAST_OTHER, "prompt_ids"},
        {"llava", "input_ids.npy", NO_BOS, "prompt_ids"}, {"llava", "tokens.npy", LAST_OTHER, "tokens"}};
    char command[600];
    check_case("planted in files of another stack: channels, half a pixel, order of tiles, another first or last id, no BOS, another answer");
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        dump_again(faults[i].model);
        damage_file("dump", faults[i].file, faults[i].how);
        snprintf(command, sizeof command, PICTURE " " QUESTION " --precision fp32 --model " MODEL " --against dump:%%F/dump", faults[i].model);
        expect_at(command, faults[i].stage);
    }
}
static void test_hostile_files(void) {
    static const struct { const char *file; enum damage how; const char *words; } faults[] = {
        {"logits.npy", NOT_A_NUMBER, "not a finite number"}, {"logits.npy", CUT_SHORT, "bytes of data"}, {"tower.npy", LONGER, "bytes of data"},
        {"pixels.npy", OTHER_TYPE, "the type is"}, {"image_features.npy", NO_NPY, "expected a .npy file"}, {"tower.npy", HUGE_SHAPE, "shape"},
        {"tower.npy", FORTRAN, "Fortran"}};
    check_case("damaged files of another stack: exit 3 and an error that describes the damage");
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        dump_again("llava");
        damage_file("dump", faults[i].file, faults[i].how);
        REFUSED("conform " PICTURE " " QUESTION " --model " LLAVA " --against dump:%F/dump", 3, faults[i].words);
    }
    dump_again("smolvlm");
    expect_at(PICTURE " " QUESTION " --model " LLAVA " --against dump:%F/dump", "prompt_ids"); /* dump of another model, whose shapes are not damage */
    check_case("inputs that cannot be compared");
    REFUSED("conform " PICTURE " " QUESTION " --model " LLAVA " --against dump:%F/nowhere", 3, "expected a folder");
    REFUSED("conform " PICTURE " " QUESTION " --model " LLAVA " --against dump:tests", 3, "no file of any stage");
    REFUSED("conform " PICTURE " " QUESTION " --model " LLAVA " --against %F/nowhere", 3, "nowhere: no such folder or file; use dump:DIR");
    REFUSED("conform " PICTURE " " QUESTION " --model %F/nowhere --against " LLAVA, 3, "--model ");
    REFUSED("conform " PICTURE " " QUESTION " --model " LLAVA " --against dump:", 2, "--against dump:DIR: give the folder");
    REFUSED("conform " PICTURE " " QUESTION " --model " LLAVA " --against ftp://127.0.0.1", 2, "--against ftp://127.0.0.1: a URL must begin with http");
    REFUSED("conform --script --json", 2, "--script and --json cannot be used together");
    REFUSED("conform " PICTURE " " QUESTION " --model " LLAVA " --against tests/golden/othermodels/molmo_7b_d/checkpoint", 3, "not the same model");
    REFUSED("conform " PICTURE " --model " LLAVA " --against " LLAVA, 2, "-p TEXT");
    REFUSED("conform " PICTURE " " QUESTION " --model " LLAVA, 2, "--against");
    REFUSED("conform " PICTURE " " QUESTION " --model " LLAVA " --against " LLAVA " --precision fp16", 2, "fp16");
    CHECK_INT(cli("conform --script"), 0);
    CHECK(last.out && strstr(last.out, "numpy.save") && strstr(last.out, "LlavaForConditionalGeneration"));
}

/* ------------------------------------------------------------------------------------------------------------ rounding */
static uint64_t draws;
static uint64_t draw(void) { /* splitmix64 */
    uint64_t z = (draws += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
/* One weight in twelve becomes the next bf16 number up or down. This is the mean square of a rounding error, 2^2 / 12 half units. */
static void round_otherwise(uint16_t *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const uint64_t random = draw();
        const unsigned magnitude = values[i] & 0x7fffu;
        if (random % 12 || magnitude < 0x0100 || magnitude > 0x7e00) continue;
        values[i] = (uint16_t)(values[i] + (random >> 32 & 1 ? 1 : -1));
    }
}
static void test_rounding_alone(void) {
    static const char *const models[] = {"llava", "smolvlm", "internvl", "molmo_7b_d", "molmo_7b_o"};
    static const char *const questions[] = {"What is this?", "How many stripes are there?", "Is it red?", "Describe the picture in one short sentence.", "Why?"};
    static const char *const pictures[] = {"mix-200x150", "stripes-333x517"};
    const int first = check_all() ? 20 : 0, end = check_all() ? 200 : 20;
    char golden[200], command[1000];
    double largest[3] = {0, 0, 0};
    document d;
    draws = 20261124 + (uint64_t)first;
    check_case("%d pairs that differ only by rounding: weights rounded otherwise, bf16 against fp32 arithmetic; no pair is reported", end - first);
    for (int i = first; i < end; i++) {
        const char *model = models[i % 5];
        snprintf(golden, sizeof golden, MODEL, model);
        change_weights(golden, "other", NULL, round_otherwise);
        snprintf(command, sizeof command, "tests/golden/othermodels/images/%s.png -p '%s' --max_new_tokens 8 --precision bf16 --model %s --against %%F/other",
                 pictures[i / 5 % 2], questions[i / 10 % 5], golden);
        if (parts_at(command, NULL, &d)) {
            for (int s = 3; s < 6; s++) {
                const double ratio = number(&d, stage_of(&d, stage_names[s]), "distance") / number(&d, stage_of(&d, stage_names[s]), "bound");
                if (ratio > largest[s - 3]) largest[s - 3] = ratio;
            }
            free(d.nodes);
        }
    }
    printf("the largest distances, as shares of what rounding explains: tower %.2f, connector %.2f, prefill %.2f\n", largest[0], largest[1], largest[2]);
}

/* ------------------------------------------------------------------------------------------------------------- servers */
static hostile_server server;
static char body[4000], reply[5000];
static hostile_step steps[] = {{HOSTILE_SEND, reply, 0}, {HOSTILE_CLOSE, NULL, 0}};
static hostile_reply answer_always(hostile_server *asked) {
    (void)asked;
    snprintf(reply, sizeof reply, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", strlen(body), body);
    return steps;
}
static void server_says(int prompt_tokens, int image_tokens, double logprob, const char *token, const char *text) {
    snprintf(body, sizeof body,
             "{\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"%s\"},\"finish_reason\":\"length\","
             "\"logprobs\":{\"content\":[{\"token\":\"%s\","
             "\"logprob\":%.6f,\"top_logprobs\":[{\"token\":\"%s\",\"logprob\":%.6f}]}]}}],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":6,"
             "\"prompt_tokens_details\":{\"image_tokens\":%d}}}",
             text, token, logprob, token, logprob, prompt_tokens, image_tokens);
}
/* the content of {text} without characters that JSON escapes, because the random model's answers may contain any bytes */
static void escaped(const char *text, char *out, size_t capacity) {
    size_t used = 0;
    for (; *text && used + 8 < capacity; text++)
        used += (size_t)snprintf(out + used, capacity - used, strchr("\"\\", *text) || (unsigned char)*text < 32 ? "\\u%04x" : "%c", *text);
}
static void test_server(void) {
    char text[1000] = "", token[200] = "", arguments[400], part[600];
    double logprob = 0, sum = 0;
    int32_t prompt = 0, image = 0;
    check_array logits;
    document d;
    check_case("a server: counts, the first token's log probability and the text are compared; unseen stages remain possible causes");
    if (cli_json("run " CAT " --weights fp32 --cold --ignore_eos --model samples/tiny/model --dump %F/dump --json", 0, &d)) {
        char answer[1000] = "";
        vp_json_text(&d.json, member(&d, 0, "answer"), answer, sizeof answer, NULL);
        escaped(answer, text, sizeof text);
        prompt = (int32_t)number(&d, 0, "total_sequence_length");
        free(d.nodes);
    }
    if (cli_json("run samples/cat.jpg -p 'What is this?' --max_new_tokens 1 --weights fp32 --cold --ignore_eos --model samples/tiny/model --json", 0, &d)) {
        char answer[200] = "";
        vp_json_text(&d.json, member(&d, 0, "answer"), answer, sizeof answer, NULL);
        escaped(answer, token, sizeof token);
        free(d.nodes);
    }
    image = prompt - 10; /* BOS and the text tokens */
    if (CHECK(check_npy(in_folder("dump/logits.npy"), &logits))) {
        double most = -1e30;
        for (int64_t i = 0; i < logits.count / 6; i++) most = fmax(most, check_at(&logits, i));
        for (int64_t i = 0; i < logits.count / 6; i++) sum += exp(check_at(&logits, i) - most);
        logprob = -log(sum);
        check_free(&logits);
    }
    hostile_start(&server, NULL, 0);
    server.choose = answer_always;
    snprintf(arguments, sizeof arguments, CAT " --model samples/tiny/model --against http://127.0.0.1:%d --endpoint_model m", server.port);
    server_says(prompt, image, logprob, token, text);
    if (parts_at(arguments, NULL, &d)) {
        CHECK(is_text(&d, stage_of(&d, "prompt_ids"), "verdict", "equal") && is_text(&d, stage_of(&d, "image"), "verdict", "equal"));
        CHECK(is_text(&d, stage_of(&d, "tower"), "verdict", "unseen") && is_text(&d, stage_of(&d, "tokens"), "verdict", "equal"));
        CHECK(!is_text(&d, stage_of(&d, "prefill"), "verdict", "parted") && !is_text(&d, stage_of(&d, "prefill"), "verdict", "unseen"));
        free(d.nodes);
    }
    server_says(prompt - 1, image, logprob, token, text);
    expect_at(arguments, "prompt_ids");
    server_says(prompt + 4, image + 4, logprob, token, text);
    expect_at(arguments, "image");
    server_says(prompt, image, logprob - 8, token, text);
    if (parts_at(arguments, "prefill", &d)) {
        const uint32_t possible = member(&d, 0, "possible_stages");
        CHECK_INT(d.nodes[possible].count, 4); /* pixels, tower, connector, and prefill itself */
        free(d.nodes);
    }
    CHECK_INT(cli((snprintf(part, sizeof part, "conform %s", arguments), part)), 1);
    CHECK(last.out && strstr(last.out, "They diverge at prefill") && strstr(last.out, "also possible: pixels tower connector"));
    server_says(prompt, image, logprob, token, "quite another answer");
    strcat(arguments, " --precision fp32"); /* in bf16, another choice of experts could also be the cause */
    expect_at(arguments, "tokens");
    hostile_stop(&server);
    check_case("an unreachable server");
    REFUSED("conform " CAT " --model samples/tiny/model --against http://127.0.0.1:1 --endpoint_model m", 4, "127.0.0.1:1");
}

int main(void) {
    if (!command_begin("conform")) return 1;
    test_rounding_alone();
    if (!check_all()) {
        test_equal();
        test_planted_weights();
        test_planted_settings();
        test_planted_files();
        test_hostile_files();
        test_server();
    }
    return command_end("test_conform");
}
