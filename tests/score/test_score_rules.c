/* test_score_rules.c: the score command: each rule against the goldens; metrics of a sweep; scores of other scorers in result files.
 * Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "support/command.h"
#include "vlmprof.h"

/* ---------------------------------------------------------------------------------------------------------------- score */
/* the same value: numbers within the tolerance (relative, absolute below 1) */
static int same_value(const document *a, uint32_t i, const document *b, uint32_t k, double tolerance) {
    double p, q;
    if (i == VP_JSON_NONE || k == VP_JSON_NONE) return 0;
    const vp_json_node *x = &a->nodes[i];
    const vp_json_node *y = &b->nodes[k];
    if (x->type != y->type) return 0;
    if (x->type == VP_JSON_NUMBER)
        return vp_json_to_double(&a->json, i, &p) == VP_OK && vp_json_to_double(&b->json, k, &q) == VP_OK && fabs(p - q) <= tolerance * (fabs(q) > 1 ? fabs(q) : 1);
    if (x->type == VP_JSON_STRING) { /* unescaped, including \u0000 */
        static char one[1 << 16], other[1 << 16];
        size_t bytes = 0, more = 0;
        return vp_json_text(&a->json, i, one, sizeof one, &bytes) == VP_OK && vp_json_text(&b->json, k, other, sizeof other, &more) == VP_OK
            && bytes == more && !memcmp(one, other, bytes);
    }
    if (x->type == VP_JSON_ARRAY) {
        if (x->count != y->count) return 0;
        for (uint32_t n = 0; n < x->count; n++)
            if (!same_value(a, vp_json_at(&a->json, i, n), b, vp_json_at(&b->json, k, n), tolerance)) return 0;
        return 1;
    }
    return x->type != VP_JSON_OBJECT; /* the rows do not contain objects */
}
/* The first column of a golden row, other than an input of its reader, that the program's row lacks or has with another value; "" if there is none. */
static const char *bad_column(const document *got, uint32_t row, const document *want, uint32_t golden, double tolerance) {
    static const char inputs[] = " ascii prediction references reference options option_names answer_index answer text question_type answer_type choices"
        " precision bleu rouge_l dataset has_transparent_box abc_label error candidate ";
    static const char free_columns[] = " score parsed each predicted_index "; /* columns for which the reference fails or guesses */
    static char key[64];
    int is_free = member(want, golden, "error") != VP_JSON_NONE;
    char word[72];
    if (want->nodes[golden].count && member(want, golden, "unparsed") != VP_JSON_NONE)
        is_free |= want->nodes[member(want, golden, "unparsed")].type == VP_JSON_TRUE;
    for (uint32_t i = golden + 1; i < want->nodes[golden].end; i = want->nodes[i + 1].end) {
        if (vp_json_text(&want->json, i, key, sizeof key, NULL) != VP_OK) return "a key";
        snprintf(word, sizeof word, " %s ", key);
        if (strstr(inputs, word) || (is_free && strstr(free_columns, word))) continue;
        if (!same_value(got, member(got, row, key), want, i + 1, tolerance)) return key;
    }
    return "";
}
/* every row and column of a golden file through the program: a score, or null and a reason */
static void check_scored(const char *metric, const char *file) {
    char command[600];
    const char *path, *got, *want;
    char *text = NULL;
    document g, w;
    int rows = 0;
    snprintf(command, sizeof command, "scores/%s.jsonl", file);
    path = check_golden(command);
    if (!path || (text = check_read(path, NULL)) == NULL) { check_skip(command, "golden file not found"); return; }
    check_case("score --metric %s gives the columns of %s", metric, file);
    snprintf(command, sizeof command, "score --metric %s %s", metric, path);
    CHECK_INT(cli(command), 0);
    CHECK(last.err_lines == 1 || strstr(file, "vqa") || !strcmp(file, "caption_jaccard")); /* rows with one text, with none or few */
    CHECK(last.err && strstr(last.err, metric) && strstr(last.err, " rows"));
    for (got = last.out, want = text; got && *got && *want; rows++) {
        size_t got_bytes = strcspn(got, "\n"), want_bytes = strcspn(want, "\n");
        const char *bad = "a line";
        if (parse(&g, got, got_bytes) && parse(&w, want, want_bytes))
            bad = member(&g, 0, "score") == VP_JSON_NONE || is_null(&g, 0, "score") == (member(&g, 0, "reason") == VP_JSON_NONE) ? "score"
                                                                                                                             : bad_column(&g, 0, &w, 0, 1e-12);
        FREE_ALL(g.nodes, w.nodes);
        if (bad[0]) break;
        got += got_bytes + (got[got_bytes] == '\n');
        want += want_bytes + (want[want_bytes] == '\n');
    }
    check_note(rows > 100 && got && !*got && !*want, __FILE__, __LINE__, "row %d differs", rows);
    free(text);
}

/* captions.json: one line per set, each with the scores of its images and its corpus */
static void test_caption_scores(void) {
    const char *path = check_golden("scores/captions.json"), *got;
    char command[600];
    document w, g;
    uint32_t sets, i, k;
    if (!path || !load(&w, path)) { check_skip("scores/captions.json", "golden file not found"); return; }
    check_case("score --metric captions gives the columns of captions.json");
    snprintf(command, sizeof command, "score --metric captions %s", path);
    CHECK_INT(cli(command), 0);
    sets = member(&w, 0, "sets");
    CHECK_INT(last.err_lines, w.nodes[sets].count);
    CHECK(last.err && strstr(last.err, "built-in tokenizer"));
    for (i = 0, got = last.out; got && *got && i < w.nodes[sets].count; i++, got += strcspn(got, "\n") + 1) {
        uint32_t set = vp_json_at(&w.json, sets, i), golden = member(&w, set, "images"), images;
        if (!CHECK(parse(&g, got, strcspn(got, "\n")))) break;
        images = member(&g, 0, "images");
        CHECK(same_value(&g, member(&g, 0, "name"), &w, member(&w, set, "name"), 0));
        CHECK_INT(g.nodes[images].count, w.nodes[golden].count);
        for (k = 0; k < w.nodes[golden].count && k < g.nodes[images].count; k++)
            if (bad_column(&g, vp_json_at(&g.json, images, k), &w, vp_json_at(&w.json, golden, k), 1e-10)[0]) break;
        CHECK_INT(k, w.nodes[golden].count);
        CHECK_TEXT(bad_column(&g, member(&g, 0, "corpus"), &w, member(&w, set, "corpus"), 1e-10), "");
        CHECK_NEAR(number(&g, 0, "score"), number(&w, member(&w, set, "corpus"), "cider_d"), 1e-10);
        free(g.nodes);
    }
    CHECK(got && !*got && i == w.nodes[sets].count);
    unload(&w);
    check_case("score: captions as lines; a row without a score is not in the corpus; the last row has the corpus");
    CHECK_INT(cli_with("score --metric CIDEr-D", "{\"id\": \"a\", \"prediction\": \"A Dog.\", \"references\": [\"a dog\"]}\n{\"id\": 2, \"prediction\": \"x\"}\n"
                       "{\"image_id\": 3, \"caption\": \"two cats\", \"captions\": [\"Two cats!\", \"cats\"]}\n", in_folder("stdout"), 0), 0);
    CHECK(last.out && strstr(last.out, "{\"id\": \"a\", \"cider_d\": ") && strstr(last.out, "{\"id\": 2, \"cider_d\": null, \"score\": null, "
          "\"reason\": \"the row has no references to compare with\"}\n{\"image_id\": 3, "));
    CHECK(last.out && strstr(last.out, "\"corpus\": {") && strstr(last.out, "\"images\": 2, \"tokenizer\": \"built-in tokenizer\"}}\n"));
    CHECK_INT(cli_with("score --metric cider --clean none", "[{\"prediction\": \"A Dog.\", \"references\": [\"a dog\"]}, 3]", in_folder("stdout"), 0), 3);
    CHECK(last.out && strstr(last.out, "\"tokenizer\": null") && strstr(last.out, "line 2: expected one JSON object per image"));
    CHECK_INT(cli_with("score --metric cider", "{\"images\": []}\nx\n{\"images\": [1, {\"candidate\": \"a\", \"references\": [\"a\"]}]}", in_folder("stdout"), 0), 3);
    CHECK(last.out && strstr(last.out, "no image of the set") && strstr(last.out, "line 2: ") && strstr(last.out, "\"score\": 0.0}\n"));
    REFUSED("score --metric cider --clean run %F/none", 3, "none");
    write_text(in_folder("rows.jsonl"), "{}\n");
    REFUSED("score --metric cider --clean run %F/rows.jsonl", 2, "built-in tokenizer");
    REFUSED("sweep --synthetic tiny --data x --output_dir %F/x --metric CIDEr-D", 2, "score --predictions RESULT.json | vlmprof score --metric cider");
}

static void test_score(void) {
    check_scored("vqa_seed", "vqa_seed");
    check_scored("vqa_official", "vqa_official");
    check_scored("em", "em");
    check_scored("anls", "anls");
    check_scored("relaxed", "relaxed_correctness");
    check_scored("relaxed_correctness", "relaxed_correctness");
    check_scored("mc", "mc");
    check_scored("mc_ai2d", "mc_ai2d");
    check_scored("mmmu", "mmmu_multiple_choice");
    check_scored("mmmu", "mmmu_open");
    check_scored("mmmu_open", "mmmu_open");
    check_scored("a_okvqa", "a_okvqa_score");
    check_scored("real_world_qa", "real_world_qa");
    check_scored("seed_bench", "seed_bench");
    check_scored("caption_jaccard", "caption_jaccard");
    test_caption_scores();
    check_case("score: rows from stdin, the output of each rule, and a summary");
    CHECK_INT(cli_with("score --metric mmmu", "{\"id\": \"x\", \"prediction\": \"no idea\", \"options\": [\"a\", \"b\"], \"answer\": \"A\"}\n\n"
                       "{\"prediction\": \"It is (B).\", \"options\": [\"a\", \"b\"], \"answer\": 1}", in_folder("stdout"), 0), 0);
    CHECK_TEXT(last.out, "{\"id\": \"x\", \"unparsed\": true, \"parsed\": null, \"score\": null, \"reason\": \"unparsed: the answer names no option\"}\n"
                         "{\"unparsed\": false, \"parsed\": \"B\", \"score\": 1.0}\n");
    CHECK_TEXT(last.err, "vlmprof: mmmu: 2 rows, mean 0.500000 over 2, standard error 0.500000, 95 % interval 0.094531 to 0.905469 (Wilson); "
                         "1 answer that the rule could not read (scored 0)\n");
    CHECK_INT(cli_with("score --metric em", "{\"prediction\": \"\", \"references\": [\"yes\"]}", in_folder("stdout"), 0), 0);
    CHECK(last.err_lines == 1 && strstr(last.err, " 1 row, ") && !strstr(last.err, " 0 ") && strstr(last.err, "; 1 empty\n"));
    CHECK_INT(cli_with("score --metric em --clean none -", "{\"prediction\": \"Answer: a\", \"references\": [\"a\"]}", in_folder("stdout"), 0), 0);
    CHECK(last.out && strstr(last.out, "\"cleaned\": \"Answer: a\"") && strstr(last.out, "\"score\": 0.0"));
    CHECK_INT(cli_with("score --metric anls --clean run", "{\"prediction\": \"Answer: a\", \"references\": [\"a\"]}", in_folder("stdout"), 0), 0);
    CHECK(last.out && strstr(last.out, "\"score\": 1.0"));
    check_case("score: rows with missing members and invalid lines get a reason; the other rows are scored");
    CHECK_INT(cli_with("score --metric em", "{\"prediction\": \"a\"}\nnonsense\n{\"references\": [\"a\"]}\n{\"prediction\": \"a\", \"references\": [[]]}\n"
                       "{\"prediction\": \"a\\u0000b\", \"references\": [\"a\"]}\n[1]\n{\"prediction\": \"a\", \"references\": [\"A\"]}\n",
                       in_folder("stdout"), 0), 3);
    CHECK(last.out && strstr(last.out, "no references") && strstr(last.out, "line 2: ") && strstr(last.out, "prediction is not a string")
          && strstr(last.out, "must be a string") && strstr(last.out, "line 6: expected one JSON object") && strstr(last.out, "\"score\": 1.0}\n"));
    CHECK(last.err && strstr(last.err, "2 lines are not JSON objects") && last.err_lines == 2);
    check_case("score --json: the last line has the counts; also for a set of captions");
    CHECK_INT(cli_with("score --metric em --json",
                       "{\"prediction\": \"a\", \"references\": [\"a\"]}\n{\"prediction\": \"b\", \"references\": [\"a\"]}\n", in_folder("stdout"), 0), 0);
    CHECK(last.out && strstr(last.out, "{\"summary\": {\"metric\": \"em\", \"rows\": 2, \"scored\": 2, \"unscored\": 0, \"unparsed\": 0, \"nearest\": 0, \"empty\": 0, "
                             "\"mean\": 0.5, \"standard_error\": 0.5, \"interval\": [0.0945312"));
    check_case("score: no row has a prediction");
    put_file("/data.jsonl", "{\"id\": 1, \"question\": \"q\", \"answers\": [\"a\"]}\n{\"id\": 2, \"question\": \"q\", \"answers\": [\"a\"]}\n");
    CHECK_INT(cli("score --metric em %F/data.jsonl"), 3);
    CHECK(last.err && last.err_lines == 1 && strstr(last.err, "no row has a \"prediction\" to score; the fields are id, question, answers"));
    check_case("score: intervals of fractional scores, too few references, empty lists of them");
    CHECK_INT(cli_with("score --metric vqa_seed", "{\"prediction\": \"a\", \"references\": [\"a\"]}\n{\"prediction\": \"b\", \"references\": [\"a\", \"b\"]}\n",
                       in_folder("stdout"), 0), 0);
    CHECK(last.err && strstr(last.err, "(Gaffke)") && strstr(last.err, "2 samples have fewer than 3 reference answers: vqa_seed gives at most 1/3"));
    CHECK_INT(cli_with("score --metric vqa_official", "{\"prediction\": \"a\", \"references\": [\"a\"]}\n", in_folder("stdout"), 0), 0);
    CHECK(last.err && strstr(last.err, "1 sample has fewer than 3 reference answers: vqa_official gives"));
    CHECK_INT(cli_with("score --metric em", "{\"prediction\": \"a\", \"references\": []}\n{\"prediction\": \"a\", \"references\": [\"a\"]}\n",
                       in_folder("stdout"), 0), 0);
    CHECK(last.err && strstr(last.err, "1 row has an empty list of references") && !strstr(last.err, "fewer than 3"));
    check_case("score --metric mc: an answer that names no option gets the nearest one, as in the reference, and is counted");
    CHECK_INT(cli_with("score --metric mc", "{\"prediction\": \"green\", \"options\": [\"x\", \"y\", \"blue\", \"z\"], \"answer\": 2}\n"
                       "{\"prediction\": \"blue\", \"options\": [\"x\", \"blue\"], \"answer\": \"B\"}\n", in_folder("stdout"), 0), 0);
    CHECK(last.out && strstr(last.out, "\"predicted_index\": 2, \"score\": 1.0"));
    CHECK(last.err && strstr(last.err, "; 1 names no option: the rule guessed the nearest one"));
    CHECK_INT(cli_with("score --metric cider --json",
                       "{\"name\": \"x\", \"images\": [{\"prediction\": \"a cat\", \"references\": [\"a cat\"]}]}\n", in_folder("stdout"), 0), 0);
    CHECK(last.out && strstr(last.out, "\n{\"summary\": {\"metric\": \"cider\", \"name\": \"x\", \"rows\": 1, \"scored\": 1, \"unscored\": 0, \"score\": "));
    check_case("score: rejections");
    REFUSED("score", 2, "--metric");
    REFUSED("score --metric em a b", 2, "reads one file");
    REFUSED("score --metric bogus %F/none", 2, "vqa_official");
    REFUSED("score --metric em --clean often", 2, "--clean: unknown value");
    REFUSED("score --metric em %F/none", 3, "none");
    REFUSED("score --metric em %F", 3, "folder");
    REFUSED("score --metric em", 3, "no line");
    REFUSED("sweep --synthetic tiny --data x --output_dir %F/x --metric bogus", 2, "unknown rule \"bogus\"");
}

static void test_sweep_metrics(void) {
    static const char records[] = "{\"question\": \"One?\", \"options\": [\"a cat\", \"two dogs\"], \"answer\": 0}\n"
                                  "{\"question\": \"Two?\", \"options\": [\"a cat\", \"two dogs\"], \"answer\": \"B\"}\n"
                                  "{\"question\": \"Three?\", \"answers\": [\"x\"]}\n";
    static const char command[] = "sweep --synthetic tiny --data %F/choices.jsonl --output_dir %F/out --tier_list low --top_k_list 1 "
                                  "--num_active_blocks_list 2 --num_runs_per_sample 1 --max_new_tokens 4 ";
    const char *file = in_folder("out/science-qa-img_imgsizetier-low_crops0_topk1_blocks2.json");
    char path[512], line[800];
    document d;
    int unparsed = 0;
    snprintf(path, sizeof path, "%s", file);
    write_text(in_folder("choices.jsonl"), records);
    check_case("sweep: the metric follows the data set; spread and unusual answers are in the file");
    snprintf(line, sizeof line, "%s--dataset_name science_qa_img", command);
    CHECK_INT(cli(line), 0);
    if (!CHECK(load(&d, path))) return;
    CHECK(is_text(&d, 0, "accuracy_metric", "mc"));
    CHECK_INT(number(&d, 0, "accuracy_count"), 2);
    check_keys(&d, 0, "accuracy_standard_error accuracy_interval num_unparsed num_truncated num_empty");
    if (CHECK_INT(d.nodes[member(&d, 0, "accuracy_interval")].count, 2)) { /* Wilson's interval of two answers */
        uint32_t interval = member(&d, 0, "accuracy_interval");
        double low = 0, high = 0, accuracy = number(&d, 0, "accuracy");
        CHECK_INT(vp_json_to_double(&d.json, vp_json_at(&d.json, interval, 0), &low), VP_OK);
        CHECK_INT(vp_json_to_double(&d.json, vp_json_at(&d.json, interval, 1), &high), VP_OK);
        CHECK(low <= accuracy && accuracy <= high);
        CHECK(fabs(high - low - (accuracy > 0 && accuracy < 1 ? 0.810937 : 0.657620)) < 1e-5);
    }
    CHECK_INT(number(&d, 0, "num_unparsed"), 0);
    uint32_t row = vp_json_at(&d.json, member(&d, 0, "per_sample_results"), 0);
    check_keys(&d, row, "accuracy pred pred_cleaned unparsed truncated empty");
    CHECK(isfinite(number(&d, row, "accuracy")) && !is_null(&d, row, "pred_cleaned"));
    CHECK(d.nodes[member(&d, row, "ends_with_eos")].type != d.nodes[member(&d, row, "truncated")].type);
    row = vp_json_at(&d.json, member(&d, 0, "per_sample_results"), 2);
    CHECK(is_null(&d, row, "accuracy") && !is_null(&d, row, "accuracy_reason"));
    unload(&d);
    remove_folder(in_folder("out"));
    check_case("sweep: --metric takes precedence over the data set's name; unparsed answers count as 0, and are counted");
    snprintf(line, sizeof line, "%s--dataset_name science_qa_img --metric mmmu_score", command);
    CHECK_INT(cli(line), 0);
    if (!CHECK(load(&d, path))) return;
    CHECK(is_text(&d, 0, "accuracy_metric", "mmmu"));
    CHECK_INT(number(&d, 0, "accuracy_count"), 3);
    for (uint32_t i = 0; i < 3; i++) {
        row = vp_json_at(&d.json, member(&d, 0, "per_sample_results"), i);
        if (d.nodes[member(&d, row, "unparsed")].type != VP_JSON_TRUE) continue;
        CHECK_NEAR(number(&d, row, "accuracy"), 0, 0);
        unparsed++;
    }
    CHECK_INT(number(&d, 0, "num_unparsed"), unparsed);
    CHECK(unparsed > 0); /* noise does not name any option */
    unload(&d);
    snprintf(line, sizeof line, "%s--dataset_name science_qa_img", command);
    REFUSED(line, 2, "another plan");
    remove_folder(in_folder("out"));
}

int main(void) {
    if (!command_begin("score_rules")) return 1;
    test_score();
    test_sweep_metrics();
    return command_end("test_score_rules");
}
