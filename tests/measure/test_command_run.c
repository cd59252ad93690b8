/* test_command_run.c: the run command: whole requests against the goldens, its JSON, damaged models and images.
 * Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "support/command.h"
#include "support/scan.h"
#include "vlmprof.h"

/* ------------------------------------------------------------------------------------------------------------------ run */
static void test_show_prompt(void) {
    document d;
    check_case("run --show_prompt: text and ids, nothing runs");
    CHECK_INT(cli("run samples/cat.jpg --synthetic tiny -p 'Is it?' --style vqa2 --show_prompt"), 0);
    CHECK(last.out && strstr(last.out, "\"prompt_text\": \" User: vqa2: Is it? Assistant:\", \"ids\": [34, 87, "));
    if (CHECK(parse(&d, last.out, last.out_bytes))) {
        CHECK_INT(d.nodes[vp_json_get(&d.json, 0, "ids")].count, 30);
        CHECK_INT(number(&d, 0, "total_sequence_length"), 1 + 30 + number(&d, 0, "image_tokens"));
        CHECK(number(&d, 0, "image_tokens") > 0);
    }
    unload(&d);
    CHECK_INT(cli("run --synthetic molmoe-1b -p a --raw_prompt --show_prompt"), 0); /* the 14 GB of weights are not made */
    CHECK(last.out && strstr(last.out, "{\"prompt_text\": \"a\", \"ids\": [99]"));
    REFUSED("run --synthetic tiny -p a --show_prompt --dump %F/x", 2, "--dump");
}

static int same_integers(const char *ours, const char *golden, int64_t count) {
    check_array a, b;
    if (!check_npy(ours, &a)) return 0;
    if (!check_npy(golden, &b)) { check_free(&a); return 0; }
    int good = a.count >= count && b.count >= count && (count > 0 || a.count == b.count);
    for (int64_t i = 0; good && i < (count ? count : a.count); i++) good = check_at(&a, i) == check_at(&b, i);
    check_free(&a);
    check_free(&b);
    return good;
}

/* Runs a golden case with the whole command: question, style, picture and knobs are options. Inputs and tokens must match the reference's. */
static void run_case(const char *name, const char *words) {
    char relative[600], golden[512], command[1500];
    check_array a;
    check_case("run: golden case %s", name);
    snprintf(relative, sizeof relative, "models/cases/%s", name);
    const char *path = check_golden(relative);
    if (!CHECK(path != NULL)) return;
    snprintf(golden, sizeof golden, "%s", path);
    snprintf(command, sizeof command, "run %s --model %s --weights fp32 --ignore_eos --max_new_tokens 6 --dump %%F/dump", words,
             check_golden(name[0] == 'a' ? "models/tiny-a" : "models/tiny-b"));
    CHECK_INT(cli(command), 0);
    CHECK(last.out && strstr(last.out, "TTFT") && strstr(last.out, "unaccounted") && !strstr(last.out, "synthetic"));
    snprintf(relative, sizeof relative, "%s/input_ids.npy", golden);
    CHECK(same_integers(in_folder("dump/input_ids.npy"), relative, 0));
    snprintf(relative, sizeof relative, "%s/fp32/tokens.npy", golden);
    CHECK(same_integers(in_folder("dump/tokens.npy"), relative, 6));
    if (CHECK(check_npy(in_folder("dump/logits.npy"), &a))) {
        CHECK(a.dimensions == 2 && a.shape[0] == 6 && a.shape[1] == 704 && !strcmp(a.type, "<f4"));
        check_free(&a);
    }
    snprintf(relative, sizeof relative, "%s/image_input_idx.npy", golden);
    if (access(relative, F_OK) == 0) {
        CHECK(same_integers(in_folder("dump/image_input_idx.npy"), relative, 0));
        snprintf(relative, sizeof relative, "%s/image_masks.npy", golden);
        CHECK(same_integers(in_folder("dump/image_masks.npy"), relative, 0));
    } else if (CHECK(check_npy(in_folder("dump/pixels.npy"), &a))) { /* no image: no crops, and nothing from the previous case */
        CHECK(a.dimensions == 3 && a.shape[0] == 0 && a.shape[2] == 588);
        check_free(&a);
    }
}

static void test_run_json(void) {
    char command[700];
    document d;
    check_case("run: JSON of a synthetic model");
    snprintf(command, sizeof command, "run %s -p 'Where is it?' --style vqa2 --synthetic tiny --max_new_tokens 5 --ignore_eos --num_runs 2 --json",
             check_golden("images/img-640x300.png"));
    CHECK_INT(cli(command), 0);
    CHECK(last.err && !*last.err);
    if (CHECK(last.out && parse(&d, last.out, last.out_bytes))) {
        uint32_t s = vp_json_get(&d.json, 0, "stages"), runs = vp_json_get(&d.json, 0, "runs"), decode = vp_json_get(&d.json, 0, "T_decode_per_step");
        double sum = number(&d, 0, "unaccounted");
        for (int i = 0; i < 10; i++) {
            sum += number(&d, s, stages[i]);
            CHECK(number(&d, s, stages[i]) >= 0);
        }
        CHECK_NEAR(sum, number(&d, 0, "T_total"), 1e-6 * sum);
        CHECK(number(&d, 0, "T_total") > 0 && number(&d, 0, "closure") <= 1 && number(&d, 0, "unaccounted") >= 0);
        CHECK_NEAR(number(&d, 0, "T_vision_total"), number(&d, s, "vit") + number(&d, s, "connector"), 1e-9);
        CHECK_NEAR(number(&d, 0, "T_LLM_prefill"), number(&d, s, "embed") + number(&d, s, "prefill") + number(&d, s, "head") + number(&d, s, "sample"), 1e-9);
        CHECK_NEAR(number(&d, 0, "T_decode_per_token"), number(&d, 0, "T_LLM_decode") / 4, 1e-9);
        CHECK_INT(d.nodes[decode].count, 4); /* N tokens and N - 1 steps, in two runs */
        CHECK_INT(d.nodes[vp_json_at(&d.json, decode, 0)].count, 2);
        CHECK_INT(d.nodes[vp_json_get(&d.json, runs, "T_total")].count, 2);
        CHECK_INT(number(&d, 0, "output_tokens"), 5);
        CHECK(vp_json_equals(&d.json, vp_json_get(&d.json, 0, "prompt"), " User: vqa2: Where is it? Assistant:"));
        CHECK_INT(d.nodes[vp_json_get(&d.json, 0, "synthetic")].type, VP_JSON_TRUE);
        CHECK_INT(d.nodes[vp_json_get(&d.json, 0, "answers_equal_over_runs")].type, VP_JSON_TRUE);
        CHECK_INT(number(&d, vp_json_get(&d.json, 0, "config"), "max_crops"), 12);
        CHECK_INT(number(&d, 0, "total_sequence_length"), 1 + (480 + 24 + 4) + number(&d, 0, "input_text_tokens"));
        check_keys(&d, vp_json_get(&d.json, 0, "provenance"), "version build host date device device_note gpu gemm_rows_1 argv seed threads clocks");
        check_stage_detail(&d, 0, number(&d, 0, "total_sequence_length"), 4);
        check_case("run: the time to open a model is separate from the request");
        s = vp_json_get(&d.json, 0, "opening");
        check_keys(&d, s, "device_ms memory_ms weights_ms");
        CHECK(number(&d, s, "weights_ms") > 0);
        free(d.nodes);
    }
    check_case("run: text only, one token");
    CHECK_INT(cli("run -p hello --synthetic tiny --max_new_tokens 1 --json"), 0);
    if (CHECK(last.out && parse(&d, last.out, last.out_bytes))) {
        CHECK(is_null(&d, 0, "T_vision_total") && is_null(&d, 0, "T_decode_per_token") && is_null(&d, 0, "decode_tokens_per_s"));
        CHECK(number(&d, 0, "output_tokens_per_s") > 0);
        CHECK(is_null(&d, 0, "actual_tiling") && number(&d, 0, "T_LLM_prefill") > 0);
        check_stage_detail(&d, 0, number(&d, 0, "total_sequence_length"), 4);
        free(d.nodes);
    }
    CHECK_INT(cli("run -p hello --synthetic tiny --max_new_tokens 2"), 0);
    CHECK(last.out && strstr(last.out, "synthetic weights") && strstr(last.out, "TPOT") && !strstr(last.out, "per step "));
    CHECK_INT(cli("run -p hello --synthetic tiny --max_new_tokens 3 --ignore_eos"), 0);
    CHECK(last.out && strstr(last.out, "launches      GFLOP        GB   TFLOP/s     GB/s") && strstr(last.out, "decode (2 steps)") && strstr(last.out, "  per step "));
    check_case("run --device cpu uses the CPU, and the output names no GPU");
    if (cli_json("run -p hello --synthetic tiny --max_new_tokens 1 --device cpu --json", 0, &d)) {
        uint32_t from = member(&d, 0, "provenance");
        CHECK(is_null(&d, from, "device_note") && is_null(&d, from, "gpu"));
        CHECK(!strncmp(d.json.text + d.nodes[member(&d, from, "device")].start, "cpu: ", 5));
        free(d.nodes);
    }
}

/* a number of "medians" */
static double median_number(const document *d, const char *key, const char *what) {
    return number(d, vp_json_get(&d->json, vp_json_get(&d->json, 0, "medians"), key), what);
}
static int compare_numbers(const void *one, const void *other) {
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}
#define WORDS "run -p hello --synthetic tiny --max_new_tokens 3 --ignore_eos "
static void test_medians(void) {
    document d;
    check_case("run: medians over the runs, with their interval and its level");
    for (int count = 1; count <= 7; count++) {
        static const double levels[] = {0, 0, 0, 0.75, 0.875, 0.9375, 0.96875, 0.984375};
        char command[200];
        double totals[7];
        snprintf(command, sizeof command, WORDS "--json --num_runs %d", count);
        if (!cli_json(command, 0, &d)) continue;
        CHECK_INT(number(&d, 0, "num_runs"), count);
        CHECK_INT(d.nodes[member(&d, 0, "warm")].type, VP_JSON_TRUE);
        uint32_t list = vp_json_get(&d.json, vp_json_get(&d.json, 0, "runs"), "T_total");
        if (!CHECK(d.nodes[list].count == (uint32_t)count)) continue;
        for (int i = 0; i < count; i++) CHECK_INT(vp_json_to_double(&d.json, vp_json_at(&d.json, list, (uint32_t)i), &totals[i]), VP_OK);
        qsort(totals, (size_t)count, sizeof *totals, compare_numbers);
        CHECK_NEAR(median_number(&d, "T_total", "median"), (totals[count / 2] + totals[(count - 1) / 2]) / 2, 1e-9);
        if (count < 3) {
            uint32_t total = vp_json_get(&d.json, vp_json_get(&d.json, 0, "medians"), "T_total");
            CHECK(is_null(&d, total, "low") && is_null(&d, total, "high") && is_null(&d, total, "level"));
        } else {
            CHECK_NEAR(median_number(&d, "T_total", "low"), totals[0], 1e-9);
            CHECK_NEAR(median_number(&d, "T_total", "high"), totals[count - 1], 1e-9);
            CHECK_NEAR(median_number(&d, "T_total", "level"), levels[count], 1e-12);
            CHECK(median_number(&d, "prefill", "low") <= median_number(&d, "prefill", "high"));
        }
        CHECK_NEAR(number(&d, 0, "decode_tokens_per_s"), 1e3 / number(&d, 0, "T_decode_per_token"), 1e-6 * number(&d, 0, "decode_tokens_per_s"));
        CHECK_NEAR(number(&d, 0, "output_tokens_per_s"), 3e3 / number(&d, 0, "T_total"), 1e-6 * number(&d, 0, "output_tokens_per_s"));
        /* Either the first token takes longer than the later ones, or, if another program interfered, decoding has the higher rate. */
        CHECK(number(&d, 0, "TTFT") <= number(&d, 0, "T_decode_per_token") || number(&d, 0, "decode_tokens_per_s") > number(&d, 0, "output_tokens_per_s"));
        free(d.nodes);
    }
    check_case("run: the text contains the median's interval");
    CHECK_INT(cli(WORDS), 0);
    CHECK(last.out && strstr(last.out, "\n1 run after a warm-up; --num_runs 3 or more shows the spread\n") && !strstr(last.out, " ["));
    CHECK_INT(cli(WORDS "--num_runs 2"), 0);
    CHECK(last.out && strstr(last.out, "\n2 runs after a warm-up; medians\n") && !strstr(last.out, " ["));
    CHECK_INT(cli(WORDS "--num_runs 3"), 0);
    CHECK(last.out && strstr(last.out, "[min, max] of 3 runs contains the median with 75 % confidence\n") && strstr(last.out, "ms, median [range]"));
    EXITS(cli(WORDS "--num_runs 6"), 0, out, "[low, high] of 6 runs contains the median with 96.9 % confidence\n");
    CHECK(last.out && strstr(last.out, "\ndecode_tokens_per_s ") && strstr(last.out, "\noutput_tokens_per_s ") && strstr(last.out, "TPOT, time per output token"));
    CHECK(last.out && strstr(last.out, "ITL, inter-token latency"));
    check_case("run --cold: no warm-up, as reported in the output");
    EXITS(cli(WORDS "--cold"), 0, out, "\n1 run without a warm-up (--cold); ");
    EXITS(cli(WORDS "--cold --num_runs 3"), 0, out, "\n3 runs without a warm-up (--cold): the first is cold; medians");
    if (cli_json(WORDS "--cold --json", 0, &d)) {
        CHECK_INT(d.nodes[member(&d, 0, "warm")].type, VP_JSON_FALSE);
        free(d.nodes);
    }
}
/* Ctrl-C in the runs and in the warm-up: the current request is the last, complete runs are printed, and a second signal ends the program at once. */
static void test_interrupt(void) {
    static const char many[] = WORDS "--num_runs 10000 --json";
    document d;
    check_case("run: Ctrl-C during the runs");
    pid_t child = start(many, NULL, in_folder("stdout"), 0);
    pause_ms(1500);
    kill(child, SIGINT);
    CHECK_INT(finish(child, in_folder("stdout")), 130);
    CHECK(last.err && strstr(last.err, "vlmprof: interrupted: the numbers cover ") && strstr(last.err, " of 10000 runs, and nothing else is kept"));
    if (CHECK(last.out && parse(&d, last.out, last.out_bytes))) {
        CHECK(number(&d, 0, "num_runs") >= 1 && number(&d, 0, "num_runs") < 10000);
        CHECK_INT(d.nodes[vp_json_get(&d.json, vp_json_get(&d.json, 0, "runs"), "T_total")].count, (int)number(&d, 0, "num_runs"));
        free(d.nodes);
    }
    check_case("run: Ctrl-C during the warm-up prints nothing");
    for (int wait_ms = 350; wait_ms < 12000; wait_ms *= 2) { /* a slow machine is still opening the model, and says nothing */
        child = start("run samples/deep-field.jpg -p hello --synthetic tiny --max_new_tokens 1200 --ignore_eos --threads 1 --dump %F/stopped", NULL,
                      in_folder("stdout"), 0);
        pause_ms(wait_ms);
        kill(child, SIGINT);
        CHECK_INT(finish(child, in_folder("stdout")), 130);
        if (last.err && *last.err) break;
    }
    CHECK(last.out_bytes == 0 && last.err && strstr(last.err, "interrupted before a run was complete: nothing is kept; run the same command again")
          && access(in_folder("stopped/tokens.npy"), F_OK) != 0);
}
static void test_run(void) {
    char words[600];
    snprintf(words, sizeof words, "%s -p 'What color is the bus?'", check_golden("images/img-640x300.png"));
    run_case("a1-adaptive-wide", words);
    snprintf(words, sizeof words, "%s -p 'What is written on the sign?' --style text_vqa --tier medium --top_k 4 --active_blocks 0,1,3",
             check_golden("images/img-333x517.png"));
    run_case("a4-medium-k4-skip", words);
    run_case("a6-text-only", "-p 'Is there a clock next to the bridge?'");
    snprintf(words, sizeof words, "%s -p ' User: What can be seen behind the white tower? Assistant:' --raw_prompt", check_golden("images/img-333x517.png"));
    run_case("b2-adaptive-k8", words);
    RUN_TESTS(test_run_json, test_medians, test_interrupt);
}

/* ------------------------------------------------------------------------------------------------------------ bad input */
static void broken_model(const char *golden, const char *file, const char *words, size_t keep_bytes, const char *from, const char *to) {
    const char *model = in_folder("model");
    char path[600], *text, *found, *out;
    size_t bytes = 0;
    check_case("damaged checkpoint: %s %s", file, from ? from : keep_bytes ? "cut" : "missing");
    if (!CHECK(check_golden(golden) != NULL)) return;
    link_model(check_golden(golden), model, file);
    snprintf(path, sizeof path, "%s/%s", check_golden(golden), file);
    text = check_read(path, &bytes);
    snprintf(path, sizeof path, "%s/%s", model, file);
    if (CHECK(text != NULL) && from) {
        found = strstr(text, from);
        out = (char *)calloc(bytes + strlen(to) + 1, 1);
        if (CHECK(found != NULL)) {
            memcpy(out, text, (size_t)(found - text));
            strcat(out, to);
            strcat(out, found + strlen(from));
            write_text(path, out);
        }
        free(out);
    } else if (text && keep_bytes) write_file(path, text, keep_bytes < bytes ? keep_bytes : bytes);
    free(text);
    REFUSED("run -p hello --model %F/model --max_new_tokens 1", 3, words);
    REFUSED("info --model %F/model", 3, words);
}

static void put_be32(unsigned char *p, uint32_t v) {
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(v >> (24 - 8 * i));
}

/* The small trained model ends its answer itself; with --ignore_eos it continues. */
static void test_end_of_answer(void) {
    document d;
    check_case("run: an answer ends with the end-of-text token");
    for (int ignored = 0; ignored < 2; ignored++) {
        const char *words = "run samples/tiny/pictures/000.png -p 'Which word do you see?' --style vqa2 --model samples/tiny/model --max_new_tokens 6 --json";
        char command[300];
        snprintf(command, sizeof command, "%s%s", words, ignored ? " --ignore_eos" : "");
        if (!cli_json(command, 0, &d)) continue;
        CHECK_INT(number(&d, 0, "output_tokens"), ignored ? 6 : 2);
        CHECK_INT(d.nodes[member(&d, 0, "ends_with_eos")].type, ignored ? VP_JSON_FALSE : VP_JSON_TRUE);
        if (!ignored) CHECK(is_text(&d, 0, "answer", " LAMP"));
        free(d.nodes);
    }
}
/* Folders with inconsistent files: the error names the file, the token or the format. */
static void test_bad_folders(void) {
    const char *golden = check_golden("models/tiny-a");
    char path[600], from[600], *config, *at = NULL;
    check_case("more token ids than embedding rows");
    snprintf(from, sizeof from, "%s/config.json", golden);
    config = check_read(from, NULL);
    if (CHECK(config && (at = strstr(config, "\"embedding_size\": 704")) != NULL)) {
        link_model(golden, in_folder("few"), "config.json");
        memcpy(at + strlen("\"embedding_size\": "), "320", 3);
        if (CHECK((at = strstr(config, "\"vocab_size\": 655")) != NULL)) memcpy(at + strlen("\"vocab_size\": "), "320", 3);
        snprintf(path, sizeof path, "%s", in_folder("few/config.json"));
        write_text(path, config);
        REFUSED("run -p a --model %F/few", 3, "has no embedding: config.json has");
    }
    free(config);
    check_case("a tokenizer that lacks the special tokens");
    link_model(golden, in_folder("plain"), "tokenizer.json");
    write_text(in_folder("plain/tokenizer.json"), "{\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": []}}");
    REFUSED("run -p a --model %F/plain", 3, "tokenizer.json");
    check_case("unknown devices and kernels");
    REFUSED("run -p a --synthetic tiny --device cuda:99999999999", 2, "expected auto, cpu, cuda or cuda:N, got \"cuda:99999999999\"");
    REFUSED("run -p a --synthetic tiny --gemm none", 2, "unknown kernel of this processor \"none\"; expected one of: auto ");
    REFUSED("run -p a --synthetic tiny --gemm '' ", 2, "unknown kernel of this processor \"\"");
}
static void test_bad_input(void) {
    static const char *const scores[][2] = {
        {"[1]", "expected one object {\"block\": score, ...}"}, {"{\"1\": 0.5, \"2\": 0.9, \"1\": 3}", "block 1 is listed twice"},
        {"{\"1\": \"a\"}", "the score of block 1 is not a finite number"}, {"{\"4\": 1}", "\"4\" is not a block of this model (0..3)"},
        {"{\"-1\": 1}", "\"-1\" is not a block"}, {"{\"a\": 1}", "\"a\" is not a block"}, {"{\"0\": 1}", "3 active blocks cannot be chosen"},
        {"{}", "scores.json has no score; expected {\"block\": score, ...} of the blocks 0..3"}};
    static const unsigned char png_head[33] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D', 'R', 0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0};
    unsigned char bomb[33];
    size_t bytes = 0;
    char *image = check_read(check_golden("images/img-640x300.png"), &bytes);
    broken_model("models/tiny-a", "config.json", "config", 0, NULL, NULL);
    broken_model("models/tiny-a", "config.json", "config.json", 400, NULL, NULL);
    broken_model("models/tiny-a", "config.json", "", 0, "\"n_layers\": 4", "\"n_layers\": 5"); /* a block whose tensors are missing */
    broken_model("models/tiny-a", "config.json", "", 0, "\"vocab_size\": 655", "\"vocab_size\": 1e300");
    broken_model("models/tiny-a", "config.json", "", 0, "\"embedding_size\": 704", "\"embedding_size\": 640"); /* a different shape */
    broken_model("models/tiny-a", "tokenizer.json", "tokenizer.json", 0, NULL, NULL);
    broken_model("models/tiny-a", "tokenizer.json", "tokenizer.json", 5000, NULL, NULL);
    broken_model("models/tiny-a", "model.safetensors", "safetensors", 0, NULL, NULL);
    broken_model("models/tiny-a", "model.safetensors", "safetensors", 3000000, NULL, NULL);
    broken_model("models/tiny-a", "model.safetensors", "safetensors", 4, NULL, NULL);
    broken_model("models/tiny-b", "model-00002-of-00002.safetensors", "model-00002-of-00002.safetensors", 0, NULL, NULL);
    check_case("damaged images");
    REFUSED("run no.png -p a --synthetic tiny", 3, "no.png");
    REFUSED("run cli.c -p a --synthetic tiny", 3, "cli.c: not a PNG, JPEG, WebP or GIF file");
    REFUSED("run %F -p a --synthetic tiny", 3, "");
    check_case("an output that cannot be written is reported before anything is measured");
    REFUSED("run samples/cat.jpg -p a --synthetic tiny --profile --html %F/none/p.html", 5, "p.html: cannot be written: there is no folder ");
    REFUSED("run samples/cat.jpg -p a --synthetic tiny --profile --trace %F", 5, "cannot be written: it is a folder");
    check_case("damaged images");
    if (CHECK(image != NULL)) write_file(in_folder("cut.png"), image, bytes / 2);
    REFUSED("run %F/cut.png -p a --synthetic tiny", 3, "cut.png");
    memcpy(bomb, png_head, sizeof bomb);
    put_be32(bomb + 16, 100000);
    put_be32(bomb + 20, 100000);
    write_file(in_folder("bomb.png"), bomb, sizeof bomb);
    REFUSED("run %F/bomb.png -p a --synthetic tiny", 3, "bomb.png");
    write_text(in_folder("empty.png"), "");
    REFUSED("run %F/empty.png -p a --synthetic tiny", 3, "empty.png");
    free(image);
    check_case("importance scores");
    write_text(in_folder("scores.json"), "{\"1\": 0.5, \"2\": 0.9}");
    CHECK_INT(cli("run -p a --synthetic tiny --num_active_blocks 3 --importance_scores_file %F/scores.json --max_new_tokens 1 --json"), 0);
    CHECK(last.out && strstr(last.out, "\"active_block_indices\": [0, 2, 3]"));
    write_text(in_folder("scores.json"), "{\"1\": 0.5, \"7\": 0.9}");
    REFUSED("run -p a --synthetic tiny --num_active_blocks 3 --importance_scores_file %F/scores.json", 3, "\"7\"");
    write_text(in_folder("scores.json"), "{\"1\": NaN}");
    REFUSED("run -p a --synthetic tiny --num_active_blocks 3 --importance_scores_file %F/scores.json", 3, "scores.json");
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
        check_case("importance scores %s", scores[i][0]);
        write_text(in_folder("scores.json"), scores[i][0]);
        REFUSED("run -p a --synthetic tiny --num_active_blocks 3 --importance_scores_file %F/scores.json", 3, scores[i][1]);
    }
    REFUSED("run -p a --synthetic tiny --num_active_blocks 3 --importance_scores_file %F/none.json", 3, "none.json");
    check_case("among equal scores, the first one in the file wins");
    write_text(in_folder("scores.json"), "{\"3\": 0.1, \"0\": -2, \"2\": 0.9, \"1\": 0.9}");
    CHECK_INT(cli("run -p a --synthetic tiny --num_active_blocks 3 --importance_scores_file %F/scores.json --max_new_tokens 1 --json"), 0);
    CHECK(last.out && strstr(last.out, "\"active_block_indices\": [0, 2, 3]"));
    write_text(in_folder("scores.json"), "{\"3\": 0.1, \"0\": -2, \"1\": 0.9, \"2\": 0.9}");
    CHECK_INT(cli("run -p a --synthetic tiny --num_active_blocks 3 --importance_scores_file %F/scores.json --max_new_tokens 1 --json"), 0);
    CHECK(last.out && strstr(last.out, "\"active_block_indices\": [0, 1, 3]"));
    check_case("unusable folders");
    write_text(in_folder("file"), "x");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/file/x", 5, "file");
    REFUSED("run -p a --synthetic tiny --dump %F/file/x", 5, "file");
    make_empty(in_folder("dumped"));
    make_empty(in_folder("dumped/logits.npy"));
    EXITS(cli("run -p a --synthetic tiny --max_new_tokens 1 --dump %F/dumped"), 5, err, "dumped/logits.npy: it cannot be written: it is a folder");
}

/* the numbers of a list in case.json */
static int32_t *numbers_of(const document *d, const char *key, int32_t *count) {
    const uint32_t list = vp_json_get(&d->json, 0, key);
    int32_t *numbers = (int32_t *)malloc((size_t)d->json.nodes[list].count * sizeof *numbers + 4);
    *count = 0;
    for (uint32_t i = list + 1; i < d->json.nodes[list].end; i++) {
        int64_t number = -1;
        vp_json_to_int(&d->json, i, &number);
        numbers[(*count)++] = (int32_t)number;
    }
    return numbers;
}
static void check_dumped(const document *d, const char *key, const char *file) {
    int32_t count = 0, *want = numbers_of(d, key, &count);
    check_array a;
    if (CHECK(check_npy(in_folder(file), &a)) && CHECK_INT(a.count, count))
        for (int i = 0; i < count; i++) CHECK_INT(check_at(&a, i), want[i]);
    check_free(&a);
    free(want);
}
/* From an image file and a question to the reference's ids and greedy tokens (test_processor.c: pixels; test_prompt.c: templates). */
static void check_other_case(const char *model, const char *name, const char *knob) {
    char path[256], text[3][2048], image[256] = "", weights[256], command[8192];
    static const char *const keys[3] = { "prompt", "text", "image" };
    document d;
    size_t needed;
    snprintf(path, sizeof path, "othermodels/%s/%s/case.json", model, name);
    check_case("run: %s %s, ids and tokens match the reference", model, name);
    if (!check_golden(path)) { check_skip(path, "no ../shared/goldens/othermodels"); return; }
    if (!CHECK(load(&d, check_golden(path)))) return;
    for (int i = 0; i < 3; i++)
        if (vp_json_text(&d.json, vp_json_get(&d.json, 0, keys[i]), text[i], sizeof text[i], &needed) != VP_OK) text[i][0] = 0;
    if (text[2][0]) {
        snprintf(path, sizeof path, "othermodels/images/%s", strrchr(text[2], '/') + 1);
        snprintf(image, sizeof image, "%s", check_golden(path));
    }
    snprintf(path, sizeof path, "othermodels/%s/checkpoint/model.safetensors", model);
    if (!check_golden(path)) { check_skip(path, "no ../shared/goldens/othermodels"); unload(&d); return; }
    snprintf(weights, sizeof weights, "%s", check_golden(path));
    *strrchr(weights, '/') = 0;
    snprintf(command, sizeof command, "run %s --model %s -p \"%s\" %s %s --weights fp32 --ignore_eos --max_new_tokens 6 --cold --dump %%F/other", image, weights,
             text[0], strcmp(text[0], text[1]) ? "" : "--raw_prompt", knob); /* text2 of olmoe has no template */
    CHECK_INT(cli(command), 0);
    CHECK_INT(last.err_lines, 0);
    check_dumped(&d, "input_ids", "other/input_ids.npy");
    check_dumped(&d, "tokens", "other/tokens.npy");
    unload(&d);
}
/* InternVL's original form: tiles and prompt from its config.json. A different template is reported; unsupported settings are rejected. */
static void check_changed_chat(void) {
    static const char *const files[] = { "model.safetensors", "tokenizer.json", "preprocessor_config.json" };
    static const struct { const char *from, *to, *text; int code; } rows[] = {
        { "\"max_dynamic_patch\": 12", "\"max_dynamic_patch\": 2", "1 view of 56x56", 0 }, { "\"max_dynamic_patch\": 12,", "", "7 views", 0 },
        { "internvl2_5", "phi3-chat", "template", 0 }, { "\"use_thumbnail\": true", "\"use_thumbnail\": false", "use_thumbnail", 3 },
        { "\"dynamic_image_size\": true,", "", "dynamic_image_size", 3 }, { "\"min_dynamic_patch\": 1", "\"min_dynamic_patch\": \"one\"", "min_dynamic_patch", 3 },
    };
    char path[600], text[8192];
    mkdir(in_folder("chat"), 0777);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t bytes = 0;
        snprintf(path, sizeof path, "othermodels/own_internvl_chat/checkpoint/%s", files[i]);
        char *data = check_read(check_golden(path), &bytes);
        snprintf(path, sizeof path, "chat/%s", files[i]);
        if (CHECK(data)) write_file(in_folder(path), data, bytes);
        free(data);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *file = check_read(check_golden("othermodels/own_internvl_chat/checkpoint/config.json"), NULL), *at = file ? strstr(file, rows[i].from) : NULL;
        check_case("run: InternVL's original form with %s", rows[i].to[0] ? rows[i].to : rows[i].text);
        if (!CHECK(at)) { free(file); continue; }
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - file), file, rows[i].to, at + strlen(rows[i].from));
        write_file(in_folder("chat/config.json"), text, strlen(text));
        free(file);
        CHECK_INT(cli("run tests/golden/othermodels/images/mix-200x150.png --model %F/chat -p hi --max_new_tokens 1"), rows[i].code);
        CHECK((last.out && strstr(last.out, rows[i].text)) || (last.err && strstr(last.err, rows[i].text)));
    }
}
/* options that a model does not support are rejected, and unknown ones are reported */
static void test_other_models(void) {
#define OTHER "--model tests/golden/othermodels/"
#define PICTURE "tests/golden/othermodels/images/mix-200x150.png "
    static const char *const models[] = { "olmoe", "llava", "smolvlm", "internvl", "own_internvl_chat", "molmo_7b_d", "molmo_7b_o", "qwen2_5_vl", "qwen3_vl",
                                         "qwen3_vl_moe", "gemma3", "molmo2" };
    static const char *const cases[] = { "text1", "text2", "text3", "text", "image-a", "image-b" };
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (int i = m ? 3 : 0; i < (m ? 6 : 3); i++) check_other_case(models[m], cases[i], "");
    check_other_case("gemma3", "pan-a", "--image_knob min_crop_size=40");
    check_other_case("gemma3", "pan-b", "--image_knob max_num_crops=3");
    check_changed_chat();
    check_case("run: the output for other models");
    CHECK_INT(cli("run " OTHER "olmoe/checkpoint -p 'How many red circles are there?' --max_new_tokens 1"), 0);
    CHECK(last.out && strstr(last.out, "top_k 2 of 8, blocks 3 of 3") && strstr(last.out, "33 = 33 text, no image"));
    CHECK_INT(cli("run " PICTURE OTHER "smolvlm/checkpoint -p hi --max_new_tokens 1"), 0);
    CHECK(last.out && strstr(last.out, "200x150 -> 256x192, 13 views of 64x64 (3 rows x 4 cols + the whole image)"));
    CHECK(last.out && strstr(last.out, "99 = 83 image (52 features, 27 separators, 4 marker) + 16 text"));
    check_case("run: the image sizes of other models");
    EXITS(cli("run " PICTURE OTHER "smolvlm/checkpoint -p hi --max_new_tokens 1 --image_knob longest_edge=64"), 0, out, "1 view of 64x64");
    EXITS(cli("run " PICTURE OTHER "smolvlm/checkpoint -p hi --max_new_tokens 1 --vision_tokens 51"), 0, out, "(3 rows x 3 cols + the whole image)");
    EXITS(cli("run " PICTURE OTHER "internvl/checkpoint -p hi --max_new_tokens 1 --image_knob max_patches=1"), 0, out, "1 view of");
    CHECK_INT(cli("run " PICTURE OTHER "internvl/checkpoint -p hi --max_new_tokens 1 --json --vision_tokens 20"), 0);
    CHECK(last.out && strstr(last.out, "\"actual_vision_tokens\": 20") && strstr(last.out, "\"architecture\": \"InternVL\""));
    CHECK_INT(cli("run " PICTURE "--synthetic tiny-gemma3 -p hi --max_new_tokens 1 --image_knob min_crop_size=40"), 0);
    CHECK(last.out && strstr(last.out, "3 views of 112x112 (1 rows x 2 cols + the whole image)"));
    CHECK_INT(cli("run " PICTURE "--synthetic tiny-gemma3 -p hi --max_new_tokens 1 --json --vision_tokens 47 --num_active_blocks 4"), 0);
    CHECK(last.out && strstr(last.out, "\"actual_vision_tokens\": 16") && strstr(last.out, "\"architecture\": \"Gemma 3\""));
    check_case("run: a profile of another model, and text files given as images");
    const char *kept = program;
    program = built("tests/vlmprof-hooks"); /* with given ceilings */
    CHECK_INT(cli("run " PICTURE OTHER "internvl/checkpoint -p hi --max_new_tokens 2 --profile --html %F/other.html"), 0);
    CHECK_INT(cli("run " OTHER "llava/checkpoint -p hi --max_new_tokens 2 --profile"), 0);
    program = kept;
    check_case("run: options that other models do not support");
    REFUSED("run samples/cat.jpg " OTHER "olmoe/checkpoint -p a", 2, "OLMoE accepts only text");
    REFUSED("run " OTHER "olmoe/checkpoint -p a --style vqa2", 2, "--style");
    REFUSED("run " OTHER "olmoe/checkpoint -p a --top_k 9", 2, "8 experts");
    REFUSED("run " OTHER "llava/checkpoint -p a --top_k 1", 2, "--top_k: LLaVA has no experts");
    REFUSED("run " PICTURE OTHER "llava/checkpoint -p a --max_crops 3", 2, "--max_crops");
    REFUSED("run " PICTURE OTHER "llava/checkpoint -p a --vision_tokens 600", 2, "--vision_tokens: LLaVA: vision_tokens: this model's images have one size");
    REFUSED("run " PICTURE OTHER "llava/checkpoint -p a --image_knob max_patches=2", 2, "one size, 84 pixels per side: there is no setting");
    REFUSED("run " PICTURE OTHER "internvl/checkpoint -p a --image_knob longest_edge=64", 2, "settings: max_patches, min_patches");
    REFUSED("run " PICTURE OTHER "internvl/checkpoint -p a --image_knob max_patches=1,2", 2, "run takes only one value");
    REFUSED("run " PICTURE OTHER "internvl/checkpoint -p a --image_knob max_patches=two", 2, "expected positive integers");
    REFUSED("run " PICTURE OTHER "internvl/checkpoint -p a --image_knob max_patches", 2, "expected NAME=NUMBER");
    REFUSED("run " PICTURE OTHER "internvl/checkpoint -p a --image_knob max_patches=2 --vision_tokens 9", 2, "cannot be used together");
    REFUSED("run " PICTURE OTHER "internvl/checkpoint -p a --vision_tokens 3", 2, "even one view of InternVL has 4 tokens");
    REFUSED("run " PICTURE OTHER "molmo_7b_d/checkpoint -p a --image_knob max_crops=2", 2, "--max_crops");
    REFUSED("run " PICTURE "--synthetic tiny-gemma3 -p a --image_knob max_patches=2", 2, "settings: max_num_crops, min_crop_size");
    REFUSED("run " PICTURE "--synthetic tiny-gemma3 -p a --top_k 1", 2, "--top_k: Gemma 3 has no experts");
    REFUSED("run " PICTURE OTHER "internvl/checkpoint -p a --tier low", 2, "--tier");
    REFUSED("run " PICTURE OTHER "llava/checkpoint -p a --raw_prompt", 2, "must contain <image> once");
    REFUSED("run " PICTURE OTHER "llava/checkpoint -p 'a <image> b'", 2, "must contain <image> once");
    REFUSED("run " OTHER "llava/checkpoint -p 'a <image> b'", 2, "no image is given");
    check_case("run: several images, videos");
    REFUSED("run " PICTURE PICTURE "--synthetic tiny -p a", 2, "accepts only one image per prompt");
    REFUSED("run " PICTURE "--synthetic tiny-qwen3-vl-moe -p 'a <|image_pad|> b'", 2, "must contain <|image_pad|> once");
    REFUSED("run " PICTURE "--synthetic tiny-qwen3-vl-moe -p '<|vision_start|><|video_pad|><|vision_end|>'", 2, "<|video_pad|> in a prompt represents a video");
    write_text(in_folder("video.jsonl"), "{\"question\": \"what <|video_pad|>\"}\n");
    REFUSED("sweep --synthetic tiny-qwen3-vl-moe --data %F/video.jsonl --plan", 3, "<|video_pad|> in a prompt represents a video");
    write_file(in_folder("clip.mp4"), "\0\0\0\030ftypmp42\0\0\0\0mp42isom", 24);
    REFUSED("run %F/clip.mp4 --synthetic tiny-qwen3-vl-moe -p a", 3, "this is a video");
    write_file(in_folder("clip.avi"), "RIFF\0\1\0\0AVI LIST", 16);
    REFUSED("run %F/clip.avi --synthetic tiny-qwen3-vl-moe -p a", 3, "this is a video (AVI)");
    write_file(in_folder("clip.webm"), "\032\105\337\243\237\102\206\201", 8);
    REFUSED("run %F/clip.webm --synthetic tiny-qwen3-vl-moe -p a", 3, "this is a video (WebM or Matroska)");
#undef OTHER
#undef PICTURE
}
/* folders with missing or unusual files */
static void test_other_folders(void) {
    static const char *const files[] = { "config.json", "model.safetensors", "tokenizer.json", "preprocessor_config.json", "processor_config.json",
                                         "chat_template.jinja" };
    char path[256], name[64];
    make_empty(in_folder("llava"));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t bytes = 0;
        snprintf(path, sizeof path, "othermodels/llava/checkpoint/%s", files[i]);
        char *text = check_read(check_golden(path), &bytes);
        snprintf(name, sizeof name, "llava/%s", files[i]);
        if (text) write_file(in_folder(name), text, bytes);
        free(text);
    }
    check_case("run: a byte order mark, and Infinity, in config.json");
    char *config = check_read(in_folder("llava/config.json"), NULL), *marked = (char *)malloc(config ? strlen(config) + 100 : 1);
    if (CHECK(config && marked)) {
        sprintf(marked, "\xEF\xBB\xBF{\"time_step_limit\": [0.0, -Infinity, NaN],%s", config + 1);
        write_text(in_folder("llava/config.json"), marked);
    }
    FREE_ALL(config, marked);
    check_case("run: image_processor in processor_config.json, next to a stale preprocessor_config.json and alone");
    write_text(in_folder("llava/preprocessor_config.json"), "{\"size\": {\"shortest_edge\": 1}}");
    CHECK_INT(cli("run tests/golden/othermodels/images/mix-200x150.png --model %F/llava -p a --max_new_tokens 1 --cold"), 0);
    remove(in_folder("llava/preprocessor_config.json"));
    CHECK_INT(cli("run tests/golden/othermodels/images/mix-200x150.png --model %F/llava -p a --max_new_tokens 1 --cold"), 0);
    CHECK_INT(last.err_lines, 0);
    remove(in_folder("llava/processor_config.json"));
    REFUSED("run --model %F/llava -p a", 3, "preprocessor_config.json");
    check_case("run: another chat template, no template, tokens that end an answer");
    write_text(in_folder("llava/preprocessor_config.json"), "{\"size\": {\"shortest_edge\": 84}, \"crop_size\": {\"height\": 84, \"width\": 84}}");
    write_text(in_folder("llava/chat_template.jinja"), "{{ messages }}");
    EXITS(cli("run --model %F/llava -p a --max_new_tokens 1 --cold"), 0, err, "its chat template is unknown");
    remove(in_folder("llava/chat_template.jinja"));
    write_text(in_folder("llava/generation_config.json"), "{\"eos_token_id\": [2, 3]}");
    EXITS(cli("run --model %F/llava -p a --max_new_tokens 1 --cold"), 0, err, "it has no chat template");
    CHECK_INT(cli("run --model %F/llava -p a --max_new_tokens 1 --cold --raw_prompt"), 0);
    CHECK(last.err && !strstr(last.err, "chat template"));
    check_case("run: the second end token also ends an answer");
    CHECK_INT(cli("run --model %F/llava -p a --max_new_tokens 4 --ignore_eos --cold --raw_prompt --json"), 0);
    if (CHECK(last.out)) {
        const char *list = strstr(last.out, "\"output_token_ids\"");
        char file[100];
        if (CHECK(list) && CHECK((list = strchr(list, '[')) != NULL)) {
            snprintf(file, sizeof file, "{\"eos_token_id\": [2, %d]}", atoi(list + 1 + strspn(list + 1, " \n")));
            write_text(in_folder("llava/generation_config.json"), file);
            EXITS(cli("run --model %F/llava -p a --max_new_tokens 4 --cold --raw_prompt"), 0, out, "the last is EOS");
        }
    }
    write_text(in_folder("llava/generation_config.json"), "{\"eos_token_id\": [2, \"x\"]}");
    REFUSED("run --model %F/llava -p a --max_new_tokens 1 --cold", 3, "neither a token id nor a list");
    write_text(in_folder("llava/generation_config.json"), "{\"eos_token_id\": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}");
    REFUSED("run --model %F/llava -p a --max_new_tokens 1 --cold", 3, "lists 17 end tokens");
}

/* integer weights: there are answers, the JSON gives the precision, and models that do not support it are rejected with an error */
/* root mean square distance of vision features with integer weights from those with bf16, relative to bf16's */
static double feature_difference(void) {
    check_array plain, rounded;
    double sum = 0, of = 0;
    if (!CHECK(check_npy(in_folder("plain/image_features.npy"), &plain))) return -1;
    if (!CHECK(check_npy(in_folder("rounded/image_features.npy"), &rounded))) return -1;
    for (int64_t i = 0; i < plain.count && i < rounded.count; i++) {
        const double one = check_at(&plain, i), other = check_at(&rounded, i);
        sum += (one - other) * (one - other);
        of += one * one;
    }
    CHECK_INT(plain.count, rounded.count);
    check_free(&plain);
    check_free(&rounded);
    return of > 0 ? sqrt(sum / of) : -1;
}
static void test_vision_integers(void) {
    static const struct { const char *kind, *more; double least, most; } kinds[3] = {{"int8", "", 0.002, 0.06}, {"int4", "", 0.05, 0.5},
                                                                                     {"int8", " --activations bf16", 0.002, 0.028}};
    char command[1024];
    check_case("run --vision_weights");
    CHECK_INT(cli("run samples/cat.jpg -p What --synthetic tiny --tier low --device cpu --max_new_tokens 1 --cold --dump %F/plain"), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof command, "run samples/cat.jpg -p What --synthetic tiny --tier low --device cpu --max_new_tokens 1 --cold --dump %%F/rounded "
                 "--vision_weights %s --json%s", kinds[i].kind, kinds[i].more);
        if (!CHECK_INT(cli(command), 0)) continue;
        snprintf(command, sizeof command, "\"vision_weights\": \"%s\"", kinds[i].kind);
        CHECK(last.out && strstr(last.out, command));
        double difference = feature_difference(); /* random weights and 8-bit inputs: 2.6 and 25 %; bf16 inputs: 2.2 % */
        CHECK(difference > kinds[i].least && difference < kinds[i].most);
        remove_folder(in_folder("rounded"));
    }
    remove_folder(in_folder("plain"));
    REFUSED("run samples/cat.jpg -p What --synthetic tiny --device cpu --weights fp32 --vision_weights int8", 2, "cannot be used with integer weights");
}
static void test_integers(void) {
    static const char *const kinds[2] = {"int8", "int4"};
    char command[1024];
    for (int i = 0; i < 2; i++) {
        check_case("run --weights %s", kinds[i]);
        snprintf(command, sizeof command, "run --synthetic tiny -p What --device cpu --weights %s --head_weights int8 --max_new_tokens 3 --ignore_eos --json", kinds[i]);
        if (!CHECK_INT(cli(command), 0)) continue;
        snprintf(command, sizeof command, "\"weights\": \"%s\"", kinds[i]);
        CHECK(last.out && strstr(last.out, command));
        CHECK(last.out && strstr(last.out, "\"head_weights\": \"int8\""));
    }
    check_case("run --activations");
    EXITS(cli("run --synthetic tiny -p What --device cpu --weights int8 --activations bf16 --max_new_tokens 2"), 0, out, " for 1024; activations bf16\n");
    CHECK_INT(cli("run --synthetic tiny -p What --device cpu --weights int8 --activations bf16 --max_new_tokens 2 --json"), 0);
    CHECK(last.out && strstr(last.out, "\"activations_used\": \"bf16\""));
    CHECK_INT(cli("run --synthetic tiny -p What --device cpu --max_new_tokens 2 --json"), 0);
    CHECK(last.out && strstr(last.out, "\"activations\": \"auto\"") && !strstr(last.out, "activations_used"));
    REFUSED("run --synthetic tiny -p What --activations int7", 2, "--activations: unknown value \"int7\"; did you mean int16, int8?");
    REFUSED("run --synthetic tiny -p What --device cpu --activations int8", 2, "neither weights nor vision_weights are int8 or int4; expected auto, bf16");
    REFUSED("run --synthetic tiny -p What --device cpu --weights int4 --gemm plain --activations int8", 2, "the kernel of --gemm, cannot do that");
    check_case("run: how long opening took");
    CHECK_INT(cli("run --synthetic tiny -p What --device cpu --max_new_tokens 2"), 0);
    CHECK(last.out && strstr(last.out, "\nopening  kernels chosen in ") && strstr(last.out, " s, weights drawn in "));
}

/* what a limit of the process leaves is what is free */
static void test_limit(void) {
#ifndef __SANITIZE_ADDRESS__ /* it reserves terabytes of addresses */
    struct rlimit was, less;
    check_case("run: memory that a limit leaves");
    if (!CHECK_INT(getrlimit(RLIMIT_AS, &was), 0)) return;
    less = was;
    less.rlim_cur = 3000000000u;
    CHECK_INT(setrlimit(RLIMIT_AS, &less), 0);
    const int code = cli("run -p What --synthetic molmoe-1b --max_new_tokens 2");
    CHECK_INT(setrlimit(RLIMIT_AS, &was), 0);
    CHECK_INT(code, 4);
    const char *but = last.err ? strstr(last.err, ", but ") : NULL;
    check_note(but && atof(but + 6) > 1.0 && atof(but + 6) < 3.0 && strstr(but, " GB is free for this process"), __FILE__, __LINE__, "it says %s", last.err);
#endif
}
int main(void) {
    if (!command_begin("command_run")) return 1;
    RUN_TESTS(test_integers, test_vision_integers, test_show_prompt, test_run, test_end_of_answer, test_bad_folders,
              test_bad_input, test_other_models, test_other_folders, test_limit);
    return command_end("test_command_run");
}
