/* test_plan.c: the plan of a sweep in this process: its grid and file names in order, the longest request, layouts of a configuration, the inputs of the
 * fingerprint, and rejected lists. */
#define _POSIX_C_SOURCE 200809L
#include "data/plan.h"
#include "base/console.h"
#include "commands/commands.h"
#include "commands/settings.h"
#include "data/choice.h"
#include "support/check.h"
#include "support/folder.h"
#include "support/room.h"
#include "model/prompt.h"
#include "tile/family.h"

static struct model tiny;
static struct options options;
static struct plan plan;
/* plans a sweep with these options; returns 0 or an exit code */
static int make_of(const struct model *model, const char *before, const char *words) {
    char line[1500];
    plan_free(&plan);
    options_free(&options);
    memset(&plan, 0, sizeof plan);
    snprintf(line, sizeof line, "%s %s", before, words);
    listen_begin();
    int code = options_of_words(&options, &command_sweep, line);
    if (!code) code = plan_of_options(&options, model, &plan);
    listen_end();
    return code;
}
static int make(const char *words) { return make_of(&tiny, "--synthetic tiny --output_dir none", words); }
/* ... for the set of three records: a wide image, a small one, none */
static int make_set(const char *words) {
    char line[1200];
    snprintf(line, sizeof line, "--data %%F/set.jsonl %s", words);
    return make(line);
}
static void write_set(const char *name, const char *question) {
    char text[2000], here[512] = "";
    if (!getcwd(here, sizeof here)) return;
    snprintf(text, sizeof text, "{\"question\": \"%s\", \"image\": \"%s/samples/chart.png\"}\n{\"question\": \"What is to be seen here, on the left?\", "
             "\"image\": \"%s/samples/rocket.jpg\"}\n{\"question\": \"Why?\"}\n", question, here, here);
    write_text(in_folder(name), text);
}
static void test_grid(void) {
    static const char *const names[] = {
        "set_imgsizetier-low_crops1_topk1_blocks2.json", "set_imgsizetier-low_crops1_topk1_blocks4.json", "set_imgsizetier-low_crops1_topk2_blocks2.json",
        "set_imgsizetier-low_crops1_topk2_blocks4.json", "set_imgsizetier-high_crops13_topk1_blocks2.json", "set_imgsizetier-high_crops13_topk1_blocks4.json",
        "set_imgsizetier-high_crops13_topk2_blocks2.json", "set_imgsizetier-high_crops13_topk2_blocks4.json"};
    check_case("the grid: tiers, top_k and blocks in the order of the lists");
    CHECK_INT(make_set("--tier_list low high --top_k_list 1 2 --num_active_blocks_list 2 4 --max_new_tokens 7 --num_runs_per_sample 5"), 0);
    CHECK_INT(plan.configuration_count, 8);
    CHECK(plan.point_count == 24 && plan.settings.run_count == 5 && plan.new_tokens == 7 && !plan.settings.ignore_eos && plan.repeats == 0 && plan.set_count == 1);
    for (size_t i = 0; i < plan.configuration_count && i < 8; i++) {
        const struct configuration *one = &plan.configurations[i];
        CHECK_TEXT(one->file_name, names[i]);
        CHECK_TEXT(knob_text(&one->knobs, KNOB_TIER), i < 4 ? "low" : "high");
        CHECK(knob_number(&one->knobs, KNOB_TOP_K) == (i / 2 % 2 ? 2 : 1) && knob_number(&one->knobs, KNOB_BLOCKS) == (i % 2 ? 4 : 2));
        CHECK(!knob_is_set(&one->knobs, KNOB_TOKENS) && one->in_index == -1);
        CHECK(one->set == &plan.sets[0] && one->knobs.of[KNOB_BLOCKS].list[0] == 0);
        for (int k = 1; k < one->knobs.of[KNOB_BLOCKS].list_count; k++) CHECK(one->knobs.of[KNOB_BLOCKS].list[k] > one->knobs.of[KNOB_BLOCKS].list[k - 1]);
    }
    check_case("weights: each grid point with each format");
    CHECK_INT(make_set("--tier_list low high --top_k_list 1 2 --weights_list bf16 int4 --num_active_blocks_list 4"), 0);
    CHECK(plan.configuration_count == 8 && plan.weights_count == 2 && plan.point_count == 24);
    for (size_t i = 0; i < plan.configuration_count && i < 8; i++) {
        CHECK_TEXT(knob_text(&plan.configurations[i].knobs, KNOB_WEIGHTS), i % 2 ? "int4" : "bf16");
        CHECK(plan.configurations[i].weights_at == i % 2 && knob_number(&plan.configurations[i].knobs, KNOB_TOP_K) == (i / 2 % 2 ? 2 : 1));
    }
    if (plan.configuration_count == 8) CHECK_TEXT(plan.configurations[3].file_name, "set_imgsizetier-low_crops1_topk2_blocks4_weightsint4.json");
    check_case("without lists: all tiers, and the model's own experts and blocks");
    CHECK_INT(make_set("--ignore_eos"), 0);
    CHECK(plan.configuration_count == 3 && plan.settings.ignore_eos);
    for (size_t i = 0; i < plan.configuration_count && i < 3; i++)
        CHECK(knob_tier(&plan.configurations[i].knobs) == vp_tier_at((int32_t)i) && knob_number(&plan.configurations[i].knobs, KNOB_TOP_K) == tiny.config.top_k
              && knob_number(&plan.configurations[i].knobs, KNOB_BLOCKS) == 4);
    check_case("target tokens instead of tiers; two data sets, each with the full grid");
    write_set("more.jsonl", "And?");
    CHECK_INT(make("--vision_tokens_list 288 432 --data %F/set.jsonl %F/more.jsonl"), 0);
    CHECK(plan.configuration_count == 4 && plan.point_count == 12 && plan.set_count == 2);
    CHECK_TEXT(plan.configurations[0].file_name, "set_imgsizetokens288_topk2_blocks4.json");
    CHECK_TEXT(plan.configurations[3].file_name, "more_imgsizetokens432_topk2_blocks4.json");
    CHECK(knob_number(&plan.configurations[1].knobs, KNOB_TOKENS) == 432 && !knob_tier(&plan.configurations[1].knobs) && plan.configurations[2].set == &plan.sets[1]);
    CHECK_INT(make("--data %F/set.jsonl %F/./set.jsonl"), EXIT_USAGE);
    CHECK(strstr(room_said, "set.jsonl are both called set; sweep them into separate folders") != NULL);
    check_case("a strategy draws points of the grid and reports its number of duplicates");
    CHECK_INT(make_set("--sampling_strategy custom_sparse --tier_list low medium high --top_k_list 1 2 4 --num_active_blocks_list 1 2 4"), 0);
    static const int32_t counts[3] = {3, 3, 3};
    int32_t index[27 * 3];
    size_t count = 0, repeats = 0;
    CHECK_INT(choose_points(GRID_CUSTOM_SPARSE, counts, 3, 42, default_lhs_points(counts, 3), index, 27, &count, &repeats), VP_OK);
    CHECK(plan.configuration_count == count && plan.repeats == repeats && count > 0 && count <= 27);
    for (size_t i = 0; i < plan.configuration_count && i < count; i++) {
        static const int32_t levels[] = {1, 2, 4};
        CHECK(knob_tier(&plan.configurations[i].knobs) == vp_tier_at(index[3 * i]));
        CHECK(knob_number(&plan.configurations[i].knobs, KNOB_TOP_K) == levels[index[3 * i + 1]]);
        CHECK(knob_number(&plan.configurations[i].knobs, KNOB_BLOCKS) == levels[index[3 * i + 2]]);
    }
}
/* Each row of the table that has a list, by itself: both values are points of the grid, have their own files and are in the journal's head; those in the request reach
 * it. */
static void test_rows(void) {
    check_case("every knob with a list is varied by its table row only");
    for (int knob = 0; knob < KNOB_COUNT; knob++) {
        const struct knob *row = &KNOBS[knob];
        char words[300], first[40] = "1", second[40] = "2";
        struct pass_input inputs[2];
        const struct sample sample = {.tokens.count = 3};
        CHECK(row->list || row->of != KNOB_OF_ENGINE);
        if (!row->list) continue;
        if (row->choices) CHECK_INT(sscanf(row->choices, "%39s %39s", first, second), 2);
        else if (row->of == KNOB_OF_IMAGES) snprintf(first, sizeof first, "288"), snprintf(second, sizeof second, "432");
        else if (row->type == KNOB_IS_TEXT) snprintf(first, sizeof first, "none"), snprintf(second, sizeof second, "random:keep=0.5");
        CHECK_INT(make_set(row->of == KNOB_OF_IMAGES ? "--vision_tokens_list 288" : "--tier_list low"), 0);
        size_t all = plan.configuration_count;
        snprintf(words, sizeof words, "%s --%s %s %s", row->of == KNOB_OF_IMAGES ? "" : "--tier_list low", row->list, first, second);
        CHECK_INT(make_set(words), 0);
        CHECK(all == 1 && plan.configuration_count == 2);
        for (size_t i = 0; i < 2 && plan.configuration_count == 2; i++) {
            struct text_buffer text = {NULL, 0, 0};
            const struct knob_values *values = &plan.configurations[i].knobs;
            char out[KNOB_TEXT_BYTES], key[80];
            vp_json_writer writer;
            CHECK_TEXT(knob_value_text(values, knob, out), i ? second : first);
            vp_json_writer_init_sink(&writer, text_sink, &text, 0);
            vp_json_begin_object(&writer);
            knob_put_journal(&writer, values);
            vp_json_end_object(&writer);
            CHECK_INT(vp_json_finish(&writer), VP_OK);
            snprintf(key, sizeof key, "\"%s\"", row->key);
            CHECK(text.data && strstr(text.data, key));
            free(text.data);
            configuration_input(&plan, &plan.configurations[i], &sample, NULL, NULL, &inputs[i]);
        }
        if (plan.configuration_count != 2) continue;
        CHECK(strcmp(plan.configurations[0].file_name, plan.configurations[1].file_name) != 0);
        CHECK(knob_compare(row->of == KNOB_OF_IMAGES ? KNOB_SIZE : knob, &plan.configurations[0].knobs, &plan.configurations[1].knobs) != 0);
        if (knob < KNOB_EACH && row->of == KNOB_OF_ENGINE) CHECK(memcmp(&inputs[0], &inputs[1], sizeof inputs[0]) != 0);
    }
}
static void test_requests(void) {
    struct cuts cuts = {0};
    char reason[LINE_BYTES];
    int32_t most = 0, most_views = 0;
    struct pass_input input;
    check_case("the longest request of a configuration, and of the plan");
    CHECK_INT(make_set("--tier_list low high --max_new_tokens 9"), 0);
    const struct dataset *set = &plan.sets[0];
    for (size_t i = 0; i < plan.configuration_count; i++) {
        const struct configuration *one = &plan.configurations[i];
        int32_t need = 0, views = 0;
        for (size_t k = 0; k < set->count; k++) {
            const struct cuts *found = configuration_cuts(&tiny, one, &set->samples[k], &cuts, reason, sizeof reason);
            int32_t sequence = 1 + (found ? found->whole.image_tokens : 0) + set->samples[k].text_count;
            CHECK_TEXT(reason, "");
            CHECK((found != NULL) == (k < 2));
            CHECK_INT(entry_sequence(&set->samples[k], found), sequence);
            if (sequence + 8 > need) need = sequence + 8;
            if (found && found->whole.views > views) views = found->whole.views;
        }
        CHECK(one->need_sequence == need && one->need_views == views);
        if (need > most) most = need;
        if (views > most_views) most_views = views;
    }
    CHECK(plan.max_sequence == most && plan.max_views == most_views && most_views > 3);
    check_case("a sample without BOS, and one with an unusable image");
    {
        struct entry entry = set->samples[1];
        struct dataset other = *set;
        struct configuration one = plan.configurations[0];
        struct image_px none = {0, 0};
        entry.no_bos = 1;
        CHECK_INT(entry_sequence(&entry, NULL), entry.text_count);
        other.reasons[0] = (char *)(size_t)"broken";
        one.set = &other;
        entry.reason = 1;
        CHECK(!configuration_cuts(&tiny, &one, &entry, &cuts, reason, sizeof reason));
        CHECK_TEXT(reason, "broken");
        entry.reason = 0;
        entry.sizes = &none;
        CHECK(!configuration_cuts(&tiny, &one, &entry, &cuts, reason, sizeof reason) && reason[0]);
    }
    check_case("tiles of a configuration, and the inputs of a pass");
    vp_tile_options tiles = configuration_tiles(&plan.configurations[1]);
    CHECK(tiles.rule == VP_TILE_TIER && tiles.fit == VP_FIT_FILL && tiles.tier == knob_tier(&plan.configurations[1].knobs));
    struct sample sample = {.tokens = {&most, 5, 1}};
    plan.settings.ignore_eos = 1;
    configuration_input(&plan, &plan.configurations[1], &sample, &cuts, NULL, &input);
    CHECK(input.cuts == &cuts && !input.images && input.tokens.count == 5 && input.tokens.no_bos == 1 && input.tokens.ids == &most && input.engine.ignore_eos == 1);
    CHECK(input.engine.top_k == 2 && input.engine.active_block_count == 4 && input.engine.max_new_tokens == 9);
    CHECK(input.engine.active_blocks == plan.configurations[1].knobs.of[KNOB_BLOCKS].list);
    cuts_free(&cuts);
    check_case("a request that is too long for the model takes no memory; here all are too long");
    CHECK_INT(make_set("--tier_list low --max_new_tokens 4096"), 0);
    CHECK(plan.configurations[0].need_sequence == 0 && plan.max_sequence == 0 && plan.max_views == 1 && plan.configuration_count == 1);
    char words[80];
    snprintf(words, sizeof words, "--tier_list low --max_new_tokens %d", 4096 - plan.sets[0].samples[2].text_count);
    CHECK_INT(make_set(words), 0); /* the record without an image just fits */
    CHECK_INT(plan.max_sequence, 4096);
    CHECK(plan.max_views == 1 && plan.configurations[0].need_views == 0);
    check_case("a configuration's name contains its mean number of crops, truncated to an integer");
    write_text(in_folder("text.jsonl"), "{\"question\": \"Why?\"}\n");
    CHECK_INT(make("--tier_list medium --data %F/text.jsonl"), 0);
    CHECK_TEXT(plan.configurations[0].file_name, "text_imgsizetier-medium_crops0_topk2_blocks4.json");
    CHECK_INT(make("--vision_tokens_list 432 --data %F/set.jsonl"), 0);
    CHECK(configuration_tiles(&plan.configurations[0]).rule == VP_TILE_TOKENS && configuration_tiles(&plan.configurations[0]).vision_tokens == 432);
}
static uint64_t print_of(const char *words) {
    CHECK_INT(make_set(words), 0);
    return plan.fingerprint;
}
static void test_fingerprint(void) {
    static const char *const others[] = {"--num_runs_per_sample 2", "--seed 7", "--threads 2",
                                         "--max_runs 50 --stop_half_width 0.5", "--bare_every 3", "--weights fp32", "--device cpu",
                                         "--gemm plain", "--timing off", "--time_box_s 5", "--ignore_eos", "--max_new_tokens 3", "--dataset_name other",
                                         "--metric mc", "--num_samples 2"};
    uint64_t first = print_of(""), seen[32];
    size_t count = 0;
    check_case("the fingerprint covers model, data, seed and options, but not the grid");
    CHECK(print_of("--tier_list low") == first && print_of("--top_k_list 1 --num_active_blocks_list 2") == first && print_of("--quiet") == first);
    seen[count++] = first;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        uint64_t print = print_of(others[i]);
        for (size_t k = 0; k < count; k++) check_note(seen[k] != print, __FILE__, __LINE__, "%s has the fingerprint of another plan", others[i]);
        seen[count++] = print;
    }
    write_set("set.jsonl", "What was it?");
    CHECK(print_of("") != first);
    write_set("set.jsonl", "What is it?");
    CHECK(print_of("") == first);
    tiny.identity++;
    CHECK(print_of("") != first);
    tiny.identity--;
    static const char words[] = "--importance_scores_file %F/scores.json";
    write_text(in_folder("scores.json"), "{\"0\": 0.1, \"1\": 0.4, \"2\": 0.2, \"3\": 0.3}");
    uint64_t scored = print_of(words);
    write_text(in_folder("scores.json"), "{\"0\": 0.1, \"1\": 0.4, \"2\": 0.3, \"3\": 0.2}");
    CHECK(scored != first && print_of(words) != scored);
    unlink(in_folder("scores.json"));
    CHECK_INT(make_set(words), EXIT_INPUT);
    CHECK(strstr(room_said, "scores.json") != NULL);
}
static int make_served(const char *words) { return make_of(NULL, "--data %F/set.jsonl --endpoint http://h:1/v1/", words); }
static void test_served(void) {
    static const char *const others[] = {"--seed 7", "--no_cache", "--same_image", "--ignore_eos", "--num_runs_per_sample 2", "--endpoint_api ollama",
                                         "--family qwen2_vl", "--family qwen2_vl --max_pixels 50000", "--answer_hint Short."};
    uint64_t prints[12];
    size_t count = 0;
    char line[200];
    check_case("servers: the grid has models, knobs and sizes; names differ; messages are not tokenized");
    CHECK_INT(make_served("--endpoint_model a/b c --request_knob x.max_pixels=1,2 y=[1,2] --tier_list low high"), 0);
    CHECK_INT(plan.configuration_count, 8);
    for (size_t i = 0; i < plan.configuration_count; i++) {
        const struct configuration *one = &plan.configurations[i];
        CHECK(one->variant && !knob_is_set(&one->knobs, KNOB_TOP_K) && !knob_is_set(&one->knobs, KNOB_BLOCKS));
        CHECK(!strchr(one->file_name, '/') && strstr(one->file_name, "set_imgsizetier-") == one->file_name);
        for (size_t k = 0; k < i; k++) CHECK(strcmp(one->file_name, plan.configurations[k].file_name) != 0);
    }
    CHECK_TEXT(plan.configurations[0].variant->endpoint, "http://h:1");
    CHECK_TEXT(plan.configurations[0].variant->model, "a/b");
    CHECK_TEXT(plan.configurations[0].variant->words, "max_pixels=1 y=[1,2]");
    CHECK_INT(plan.sets[0].samples[0].text_count, 0);
    prints[count++] = plan.fingerprint;
    CHECK_INT(make_served("--endpoint_model c"), 0);
    CHECK(plan.fingerprint == prints[0] && plan.configuration_count == 1 && !knob_is_set(&plan.configurations[0].knobs, KNOB_TIER)
          && !knob_is_set(&plan.configurations[0].knobs, KNOB_TOKENS));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(line, sizeof line, "--endpoint_model c %s", others[i]);
        CHECK_INT(make_served(line), 0);
        for (size_t k = 0; k < count; k++) check_note(prints[k] != plan.fingerprint, __FILE__, __LINE__, "%s has the fingerprint of another plan", others[i]);
        prints[count++] = plan.fingerprint;
    }
    CHECK_INT(make_served("--endpoint_model c c"), EXIT_USAGE);
    CHECK(strstr(room_said, "listed twice") != NULL);
}
static void test_messages(void) {
    static const struct { const char *record, *dataset, *hint, *want; } table[] = {
        {"{\"question\": \"What is it?\"}", NULL, NULL, "What is it?"},
        {"{\"question\": \" What is it? \", \"style\": \"vqa2\"}", NULL, "Be brief.", "What is it?\nBe brief."},
        {"{\"question\": \"\", \"style\": \"vqa2\"}", NULL, NULL, ""},
        {"{\"question\": \"Which?\", \"options\": [\"a b\", \"c\"]}", NULL, NULL, "Which?\nA: a b\nB: c"},
        {"{\"question\": \" User: x Assistant:\"}", "doc_qa", NULL, "User: x Assistant:"},
        {"{\"questions\": [\"How many?\", \"And cats?\"]}", "tally_qa", NULL, "And cats?"},
        {"{\"question\": \"Why?\", \"options\": [\"x\"], \"hint\": \"A hint\"}", "science_qa_img", NULL, "A hint\nA hint\nA: x"},
        {"{\"rng_seed\": 66}", "coco_caption", NULL, "Write a brief caption describing the image"}};
    check_case("messages to chat servers: the question without roles and style, followed by options and a hint");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
        struct prompt_fields fields = {0};
        vp_prompt_info info;
        char *text = NULL;
        CHECK_INT(parse_json(&parsed, table[i].record, strlen(table[i].record), NULL), VP_OK);
        CHECK_INT(read_prompt_fields(&parsed.json, &fields, NULL), VP_OK);
        CHECK_INT(build_message(&fields, vp_prompt_dataset_find(table[i].dataset), 42, 0, table[i].hint, &text, &info, NULL), VP_OK);
        CHECK_TEXT(text ? text : "(none)", table[i].want);
        free(text);
        prompt_fields_free(&fields);
        free(parsed.nodes);
    }
}
/* The size that family_size_for returns equals the best of all longer sides. */
static void test_sizes(void) {
    static const char *const names[] = {"qwen2_vl", "internvl", "llava", "pixtral"};
    static const int32_t images[][2] = {{640, 480}, {333, 517}, {2000, 300}, {37, 37}};
    static const int64_t targets[] = {64, 300, 576, 1600};
    char reason[LINE_BYTES];
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (size_t i = 0; i < sizeof images / sizeof *images; i++)
            for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
                const int32_t width = images[i][0], height = images[i][1], longer = width > height ? width : height;
                int32_t sent[2] = {-1, -1}, code;
                int64_t best = -1;
                vp_vision_count count;
                vp_family family;
                check_case("%s, %dx%d, at most %d tokens", names[n], (int)width, (int)height, (int)targets[t]);
                if (!CHECK(vp_family_find(names[n]) != NULL)) return;
                vp_family_default(vp_family_find(names[n]), &family);
                code = family_size_for(&family, width, height, targets[t], &sent[0], &sent[1], reason, sizeof reason);
                for (int32_t side = 1; side <= 4096; side++) {
                    const int32_t w = (int32_t)((double)width * side / longer + 0.5), h = (int32_t)((double)height * side / longer + 0.5);
                    if (vp_family_count(&family, w ? w : 1, h ? h : 1, &count, NULL) == VP_OK && count.total_tokens <= targets[t] && count.total_tokens > best)
                        best = count.total_tokens;
                }
                CHECK_INT(code, best < 0 ? EXIT_INPUT : 0);
                if (code) {
                    CHECK(strstr(reason, "no size of this shape costs at most") != NULL);
                    continue;
                }
                CHECK(vp_family_count(&family, sent[0] ? sent[0] : width, sent[1] ? sent[1] : height, &count, NULL) == VP_OK);
                CHECK_INT(count.total_tokens, best);
                if (vp_family_count(&family, width, height, &count, NULL) == VP_OK && count.total_tokens == best) CHECK(!sent[0] && !sent[1]);
            }
}
static void refuse(const char *words, const char *message) {
    CHECK_INT(make_set(words), EXIT_USAGE);
    check_note(strstr(room_said, message) != NULL, __FILE__, __LINE__, "%s: \"%s\" is not in \"%s\"", words, message, room_said);
}
/* weight formats that fit into memory together */
static void test_fitting(void) {
    static const struct { uint64_t bytes[4], free_bytes; const char *text; } cases[] = {
        {{29, 15, 9, 6}, 100, "bf16 fp32 int8 int4"}, {{15, 29, 9, 6}, 24, "int8 int4; bf16 int4; bf16 int8"}, {{15, 29, 9, 6}, 29, "fp32; bf16 int4; bf16 int8"},
        {{15, 29, 9, 6}, 8, "int4"}, {{15, 29, 9, 6}, 5, ""}, {{15, 0, 9, 0}, 100, "bf16 int8"}, {{15, 0, 9, 0}, 20, "int8; bf16"}};
    check_case("weights that fit into memory together");
    CHECK_INT(make_set("--weights_list bf16 fp32 int8 int4"), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text_buffer text = {NULL, 0, 0};
        plan_fitting(&text, &plan, cases[i].bytes, cases[i].free_bytes);
        if (i == 1 || i == 2) CHECK(text.data && strstr(text.data, "bf16 int8") && strstr(text.data, "bf16 int4"));
        else CHECK_TEXT(text.data ? text.data : "", cases[i].text);
        CHECK(i != 2 || strstr(text.data, "fp32"));
        free(text.data);
    }
}
static void test_refused(void) {
    check_case("impossible lists");
    refuse("--tier_list low huge", "--tier_list: unknown value \"huge\"; expected one of: low medium high");
    refuse("--vision_tokens_list 432 287", "--vision_tokens_list 287: the global view and one crop already have 288 tokens");
    refuse("--top_k_list 8 9", "--top_k_list 9: the model has 8 experts");
    refuse("--num_active_blocks_list 5", "4 blocks");
    refuse("--weights_list bf16 int5", "--weights_list: unknown value \"int5\"; did you mean int8, int4?");
    refuse("--weights_list bf16 int8 bf16", "--weights_list: bf16 is listed twice");
    refuse("--sampling_strategy seed_lhs --tier_list low", "--sampling_strategy seed_lhs draws no point from such a small grid; lengthen the lists or use full");
    CHECK_INT(make_set("--top_k_list 8 --vision_tokens_list 288"), 0);
    CHECK_INT(make("--data samples/none.jsonl"), EXIT_INPUT);
}

static void test_same_knobs(void) {
    static const int32_t lists[][2] = {{0, 3}, {0, 2}};
    struct knob_values values[2] = {0};
    check_case("knobs are the same only if their lists are");
    for (int i = 0; i < 2; i++) knob_set_list(&values[i], KNOB_BLOCKS, lists[i], 2);
    CHECK(!knob_values_are_same(&values[0], &values[1]));
    knob_set_list(&values[1], KNOB_BLOCKS, lists[0], 2);
    CHECK(knob_values_are_same(&values[0], &values[1]));
    for (int i = 0; i < 2; i++) knob_values_free(&values[i]);
}

int main(void) {
    if (!folder_make("plan")) return 1;
    tiny.name = "tiny";
    CHECK_INT(model_load_preset(&tiny), 0);
    write_set("set.jsonl", "What is it?");
    RUN_TESTS(test_same_knobs, test_grid, test_rows, test_requests, test_fingerprint, test_fitting, test_refused, test_served, test_messages, test_sizes);
    plan_free(&plan);
    options_free(&options);
    model_free(&tiny);
    return room_end("test_plan");
}
