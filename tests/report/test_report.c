/* test_report.c: result files -> answers. Reports on sweeps that this program writes itself with known answers: the configurations on the front, and the effect of each
 * knob. Also the experiments' own files (in the formats of their repository), damaged files of every kind, exit codes and the shape of CSV, Markdown and JSON. Runs
 * $PROGRAM (default ./vlmprof) from the repository's root; its files are in a temporary folder. REPORT_LARGE=1 adds 336 x 1,000 samples. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof_json.h"
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"
#include <ctype.h>
#include <sys/resource.h>

static void test_foreign(void) {
    static const char *const names[] = {"latency_stats", "aggregate_stats"};
    for (int i = 0; i < 2; i++) {
        check_case("a file of the experiments, with %s", names[i]);
        make_empty(in_folder("foreign"));
        write_foreign(in_folder("foreign/text-vqa_imgsizetier-low_crops2_topk4_blocks12.json"), names[i], FOREIGN_ROWS);
        CHECK_INT(run("report %%F/foreign"), 0);
        CHECK(strstr(last.out, "text-vqa") && strstr(last.out, "low k4 b12") && strstr(last.out, "150 "));
    }
}
static void damage(const char *what, const char *stats, const char *rows, const char *word) {
    check_case("damaged: %s", what);
    make_empty(in_folder("bad"));
    write_foreign(in_folder("bad/t_imgsizetier-low_crops2_topk4_blocks12.json"), stats, rows);
    check_refused(run("report %%F/bad"), 3, word);
    CHECK(strstr(last.err, "t_imgsizetier-low") != NULL);
}
static void test_damaged(void) {
    static const char *const whole = "{\"top_k\": 4, \"num_active_blocks\": 12, \"per_sample_results\": [{\"sample_id\": 1, \"T_total\": 5}]}";
    char cut[200], path[512];
    snprintf(path, sizeof path, "%s", in_folder("bad/t_imgsize.json"));
    damage("an id that appears twice", "latency_stats", FOREIGN_ROW("7", "1", "1", "2", "1") "," FOREIGN_ROW("7", "1", "1", "2", "1"), "sample_id 7");
    damage("a negative time", "latency_stats", FOREIGN_ROW("7", "-160.0", "39.0", "2", "1.0"), "per_sample_results[0], byte");
    damage("a text where a time should be", "latency_stats", FOREIGN_ROW("7", "\"fast\"", "39.0", "2", "1.0"), "T_total is not a number");
    damage("a time past all measure", "latency_stats", FOREIGN_ROW("7", "1e300", "39.0", "2", "1.0"), "T_total is out of range");
    damage("a number past double", "latency_stats", FOREIGN_ROW("7", "1e999", "39.0", "2", "1.0"), "T_total is not a number");
    damage("no total", "latency_stats", "{\"sample_id\": 1}", "T_total is missing");
    damage("no id", "latency_stats", "{\"T_total\": 1}", "sample_id is missing");
    damage("half an id", "latency_stats", FOREIGN_ROW("7.5", "1", "1", "2", "1"), "sample_id is neither a non-negative integer nor a string");
    damage("an empty text as an id", "latency_stats", FOREIGN_ROW("\"\"", "1", "1", "2", "1"), "sample_id is neither a non-negative integer");
    damage("a text that is the id of two rows", "latency_stats",
           FOREIGN_ROW("\"a/b\"", "1", "1", "2", "1") "," FOREIGN_ROW("\"a\\/b\"", "1", "1", "2", "1"), "sample_id \"a/b\"");
    damage("a row that is no object", "latency_stats", "[1]", "is not an object");
    damage("no row", "latency_stats", "", "is empty");
    damage("no JSON", "latency_stats", "{", "byte");
    check_case("a file truncated in the middle is rejected; corpus_result truncates elsewhere");
    make_empty(in_folder("bad"));
    snprintf(cut, sizeof cut, "%.*s", (int)strlen(whole) / 2, whole);
    write_text(path, cut);
    check_refused(run("report %%F/bad"), 3, "t_imgsize.json");
    write_text(path, whole);
    CHECK_INT(run("report %%F/bad"), 0);
    check_case("invalid settings");
    write_text(path, "{\"schema\": \"vlmprof-sweep-1\", \"top_k\": 0, \"num_active_blocks\": 1, \"per_sample_results\": []}");
    check_refused(run("report %%F/bad"), 3, "top_k");
    write_text(path, "{\"top_k\": 1, \"num_active_blocks\": -1, \"per_sample_results\": []}");
    check_refused(run("report %%F/bad"), 3, "num_active_blocks");
    write_text(path, "{\"per_sample_results\": 7}");
    check_refused(run("report %%F/bad"), 3, "is not a result file");
    check_case("no results to read");
    make_empty(in_folder("bad"));
    check_refused(run("report %%F/bad"), 3, "no result files (.json with per_sample_results)");
    write_text(in_folder("bad/journal_rank1of2.jsonl"), "{}");
    check_refused(run("report %%F/bad"), 3, "/bad --partial");
    remove(in_folder("bad/journal_rank1of2.jsonl"));
    check_refused(run("report %%F/none"), 3, "none");
    write_text(in_folder("bad/notes.json"), "{\"a\": 1}");
    check_refused(run("report %%F/bad"), 3, "contains no result file");
    check_refused(run("report %%F/bad/notes.json"), 3, "no per_sample_results");
    check_refused(run("report"), 2, "report needs a folder");
    check_case("a file that is not a result is reported once");
    write_text(in_folder("bad/other.json"), "nonsense");
    write_foreign(in_folder("bad/t_imgsizetier-low_crops2_topk4_blocks12.json"), "latency_stats", FOREIGN_ROWS);
    EXITS(run("report %%F/bad"), 0, out, "notes.json is not a result file: skipped");
    CHECK(strstr(last.out, "other.json: byte 0: ") != NULL);
    check_refused(run("report %%F/bad %%F/bad/other.json"), 3, "other.json: byte 0"); /* named, so it is not skipped */
    check_case("a folder with only a broken file says what is wrong with it");
    make_empty(in_folder("bad"));
    write_text(in_folder("bad/a.json"), "{\"per_sample_results\": [{\"sample_id\": 0, \"T_total\": NaN}]}");
    check_refused(run("report %%F/bad"), 3, "a.json: byte 52: expected a value");
}
/* The split of a stage into parts: shares of its device time over all shapes, in every form of the report; absent if no kernel was timed. */
static void test_parts(void) {
    truth t = truth_of(20, 3);
    uint32_t stages, parts;
    t.size_count = t.top_k_count = t.block_count = 1;
    t.parts = 1;
    check_case("prefill and decode by part, if kernels were timed");
    write_sweep("parts", &t);
    CHECK_INT(run("report %%F/parts"), 0);
    CHECK(last.out && strstr(last.out, "E1: parts of prefill and decode") && strstr(last.out, " attention  router  experts  idle"));
    EXITS(run("report %%F/parts --csv"), 0, out, ",prefill_experts_share,prefill_head_share,prefill_sample_share,decode_embed_share,");
    CHECK(last.out && strstr(last.out, ",,,0.2,0.2,0.5,,,,,,,,,,0.11363636363636365,")); /* prefill's parts embed .. sample, decode's parts, idle time of all */
    if (!RUNS_JSON(0, "report %%F/parts --json")) return;
    stages = get(vp_json_at(&json, get(get(0, "e1_stage_decomposition"), "configurations"), 0), "stages");
    parts = get(get(stages, "prefill"), "parts");
    CHECK_INT(count_of(parts), 3);
    CHECK_NEAR(number(get(parts, "experts")), 0.5, 1e-12);
    CHECK_NEAR(number(get(parts, "attention")), 0.2, 1e-12);
    CHECK_NEAR(number(get(parts, "router")), 0.2, 1e-12);
    CHECK_NEAR(number(get(get(stages, "prefill"), "idle_share")), 0.1, 1e-12);
    CHECK(json.nodes[get(get(stages, "decode"), "parts")].type == VP_JSON_NULL && fabs(number(get(get(stages, "decode"), "idle_share")) - 0.25) < 1e-12);
    CHECK(json.nodes[get(get(stages, "vit"), "parts")].type == VP_JSON_NULL);
    CHECK_INT(run("report %%F/parts --html=%%F/parts.html"), 0);
    char *page = check_read(in_folder("parts.html"), NULL);
    CHECK(page && strstr(page, "Parts of prefill and decode") && strstr(page, "<td>50.0<") && strstr(page, "<td>10.0<"));
    free(page);
    check_case("no parts if kernels were not timed");
    t.parts = 0;
    write_sweep("parts", &t);
    CHECK_INT(run("report %%F/parts"), 0);
    CHECK(last.out && !strstr(last.out, "made of"));
}
static void check_effect(uint32_t effects, const char *knob, const char *level, double want, int *inside) {
    uint32_t e = find(effects, "knob", knob, "level", level);
    *inside += holds(get(e, "interval"), want);
    CHECK_NEAR(number(get(e, "estimate")), want, 0.5);
}
static void test_truth(void) {
    truth t = truth_of(400, 3);
    double cell[3][2][2], mean = 0, size_mean[3] = {0, 0, 0}, k_mean[2] = {0, 0}, b_mean[2] = {0, 0}, shares = 0;
    char level[16];
    int inside = 0;
    check_case("a sweep with a known truth is reported");
    write_sweep("made", &t);
    if (!RUNS_JSON(0, "report %%F/made --json")) return;
    uint32_t e1 = get(0, "e1_stage_decomposition");
    uint32_t e2 = get(0, "e2_pareto_coupling");
    uint32_t set = vp_json_at(&json, get(e2, "datasets"), 0);
    uint32_t configs = get(set, "configurations");
    CHECK_INT(count_of(get(e1, "configurations")), 12);
    CHECK_INT(count_of(configs), 12);
    CHECK_INT(whole(get(set, "num_samples")), 400);

    check_case("means, effects and interactions match the truth");
    for (int s = 0; s < 3; s++) for (int k = 0; k < 2; k++) for (int b = 0; b < 2; b++) {
        double m = cell[s][k][b] = true_mean(&t, s, k, b);
        uint32_t c = configuration(get(e1, "configurations"), s, t.top_k[k], t.blocks[b]);
        CHECK_NEAR(number(get(get(get(c, "latency_ms"), "T_total"), "mean")), m, 0.005 * m);
        mean += m / 12; size_mean[s] += m / 4; k_mean[k] += m / 6; b_mean[b] += m / 6;
    }
    uint32_t effects = get(set, "latency_effects");
    for (int s = 0; s < 3; s++) check_effect(effects, "image_size", TIERS[s], size_mean[s] - mean, &inside);
    for (int k = 0; k < 2; k++) {
        snprintf(level, sizeof level, "%d", t.top_k[k]);
        check_effect(effects, "top_k", level, k_mean[k] - mean, &inside);
        snprintf(level, sizeof level, "%d", t.blocks[k]);
        check_effect(effects, "num_active_blocks", level, b_mean[k] - mean, &inside);
    }
    CHECK(inside >= 6);
    {
        double want = (cell[2][1][0] + cell[2][1][1]) / 2 - size_mean[2] - k_mean[1] + mean;
        uint32_t pair = find(effects, "name", "image size high x top_k 8", NULL, NULL);
        CHECK(want > 4 && holds(get(pair, "interval"), want));
    }
    for (uint32_t i = 0; i < count_of(get(set, "variance_shares")); i++) shares += number(get(vp_json_at(&json, get(set, "variance_shares"), i), "latency"));
    CHECK_INT(count_of(get(set, "variance_shares")), 7);
    CHECK_NEAR(shares, 1, 1e-9);

    check_case("curves have the true slopes");
    uint32_t curves = get(e1, "curves");
    CHECK_NEAR(number(get(find(curves, "name", "vision", NULL, NULL), "slope")), 10, 0.02);
    CHECK(holds(get(find(curves, "name", "vision", NULL, NULL), "slope_interval"), 10));
    CHECK_NEAR(number(get(find(curves, "name", "prefill", "of", "k4 b16"), "slope")), 0.05, 1e-4);
    CHECK_NEAR(number(get(find(curves, "name", "prefill", "of", "k4 b12"), "slope")), 0.0375, 1e-4);
    CHECK_INT(whole(get(find(curves, "name", "prefill", "of", "k4 b12"), "count")), 1200);

    check_case("marks and lines of a plot use the same location: a least-squares line passes through the mean of all marks");
    for (uint32_t i = 0; i < count_of(curves); i++) {
        uint32_t curve = vp_json_at(&json, curves, i), bins = get(curve, "bins");
        double x = 0, y = 0, all = 0;
        for (uint32_t k = 0; k < count_of(bins); k++) {
            uint32_t bin = vp_json_at(&json, bins, k);
            double points = number(get(bin, "count"));
            x += points * number(get(bin, "mean_x"));
            y += points * number(get(bin, "mean_ms"));
            all += points;
            if (points >= 6) CHECK(holds(get(bin, "mean_interval"), number(get(bin, "mean_ms"))));
        }
        CHECK_NEAR(all, number(get(curve, "count")), 0);
        if (number(get(curve, "slope")) == number(get(curve, "slope")))
            CHECK_NEAR(y / all, number(get(curve, "intercept_ms")) + number(get(curve, "slope")) * x / all, 1e-7 * fabs(y / all));
    }

    check_case("roofs and bounds");
    CHECK_NEAR(number(get(e1, "peak_tflops")), 1, 1e-6);
    CHECK_NEAR(number(get(e1, "peak_gbs")), 2, 1.5); /* decode's 2, or prefill's 1e7 bytes in the shortest prefill */
    {
        uint32_t stages = get(configuration(get(e1, "configurations"), 2, 8, 16), "stages");
        CHECK(is_text(get(get(stages, "vit"), "bound"), "compute") && is_text(get(get(stages, "decode"), "bound"), "memory"));
        CHECK_NEAR(number(get(get(stages, "decode"), "gb_per_s")), 2, 1e-6);
    }
    if (RUNS_JSON(0, "report %%F/made --json --peak_tflops 100 --peak_gbs 1000")) {
        uint32_t stages = get(configuration(get(get(0, "e1_stage_decomposition"), "configurations"), 2, 8, 16), "stages");
        CHECK(is_text(get(get(stages, "vit"), "bound"), "launch") && is_text(get(get(stages, "decode"), "bound"), "launch"));
    }
}
/* the finding on a knob's level and accuracy: difference in points from its lowest level, with interval; returns 0 if no effect is claimed */
static int accuracy_finding(const char *level, double points[3]) {
    char begin[64];
    snprintf(begin, sizeof begin, "\n  %s ", level);
    const char *at = last.out ? strstr(last.out, begin) : NULL;
    const char *score = at ? strstr(at, " and scores ") : NULL;
    return score && score < strchr(at + 1, '\n') && sscanf(score, " and scores %lf [%lf, %lf] points higher", points, points + 1, points + 2) == 3;
}
static int lines_with(const char *text, const char *beginning) {
    int count = 0;
    for (text = strstr(text, beginning); text; text = strstr(text + 1, beginning)) count++;
    return count;
}
static void test_findings(void) {
    truth t = truth_of(400, 3);
    double p[3];
    check_case("the effect of each knob on accuracy");
    CHECK_INT(run("report %%F/made"), 0);
    if (CHECK(accuracy_finding("high resolution", p))) { CHECK_NEAR(p[0], 30, 3); CHECK(p[1] < 30 && 30 < p[2]); }
    if (CHECK(accuracy_finding("top_k 8", p))) { CHECK_NEAR(p[0], 10, 3); CHECK(p[1] > 5 && p[1] < 10 && 10 < p[2] && p[2] < 15); }
    if (CHECK(accuracy_finding("running 16 blocks", p))) { CHECK_NEAR(p[0], 2, 1.5); CHECK(p[1] > 0 && p[1] < 2 && 2 < p[2]); }
    check_case("no effect is claimed if the interval contains 0");
    t.block_skill = 0;
    write_sweep("flat", &t);
    CHECK_INT(run("report %%F/flat"), 0);
    CHECK(accuracy_finding("top_k 8", p) && !accuracy_finding("running 16 blocks", p));
    CHECK(last.out && strstr(last.out, " and scores the same within 1 point: 0.0"));
}
static void test_front(void) {
    truth t = truth_of(400, 3);
    uint32_t set, configs, c;
    int members = 0;
    check_case("the front equals the true front, with memberships");
    if (!RUNS_JSON(0, "report %%F/made --json --latency total --percentile mean --resamples 500")) return;
    set = vp_json_at(&json, get(get(0, "e2_pareto_coupling"), "datasets"), 0);
    configs = get(set, "configurations");
    for (int s = 0; s < 3; s++) for (int k = 0; k < 2; k++) for (int b = 0; b < 2; b++) { /* here every knob trades time for accuracy; by the formulas, no other
                                                                                           * configuration beats these */
        int on_front = 1;
        c = configuration(configs, s, t.top_k[k], t.blocks[b]);
        for (int i = 0; i < 12; i++)
            on_front &= !(true_mean(&t, i / 4, i / 2 % 2, i % 2) < true_mean(&t, s, k, b) && truth_skill(&t, i / 4, i / 2 % 2, i % 2) >= truth_skill(&t, s, k, b));
        CHECK(vp_json_equals(&json, get(c, "tier"), TIERS[s]));
        if (on_front) { members++; CHECK(number(get(c, "membership")) > 0.9); }
        else CHECK(number(get(c, "membership")) < 0.1);
        CHECK(holds(get(c, "latency_interval"), true_mean(&t, s, k, b)));
    }
    CHECK_INT(count_of(get(set, "front")), members);
    CHECK(members > 5 && count_of(get(set, "epsilon_front")) <= (uint32_t)members);
    check_case("two configurations with equal values are one point of the front");
    t.top_k[1] = 4; /* its file has another name below */
    t.size_count = 1;
    t.block_count = 1;
    t.top_k_count = 1;
    t.samples = 30;
    write_sweep("twice", &t);
    t.blocks[0] = 12;
    char *text = check_read(in_folder("twice/made_imgsizetier-low_crops1_topk4_blocks12.json"), NULL), *at = text ? strstr(text, "\"num_active_blocks\": 12") : NULL;
    if (CHECK(at != NULL)) {
        memcpy(at, "\"num_active_blocks\": 13", 23);
        write_text(in_folder("twice/made_imgsizetier-low_crops1_topk4_blocks13.json"), text);
    }
    free(text);
    if (!RUNS_JSON(0, "report %%F/twice --json")) return;
    set = vp_json_at(&json, get(get(0, "e2_pareto_coupling"), "datasets"), 0);
    CHECK_INT(count_of(get(set, "front")), 1);
    CHECK_INT(whole(get(vp_json_at(&json, get(set, "configurations"), 0), "equal_points")), 2);
}
/* ---- each number has the same interval in every form */
/* Returns 1 if a printed number equals this one rounded to its digits; trailing zeros of an integer may also be from rounding. */
static int is_rounded(const char *text, double value) {
    const size_t bytes = strspn(text, "+-.0123456789");
    const char *point = memchr(text, '.', bytes);
    double unit = 1;
    if (point) for (const char *digit = point + 1; digit < text + bytes; digit++) unit /= 10;
    for (size_t i = bytes; !point && i > 1 && text[i - 1] == '0'; i--) unit *= 10;
    return fabs(strtod(text, NULL) - value) <= 0.5 * unit * (1 + 1e-9);
}
static int is_triple(const double *numbers, size_t count, const char *const texts[3]) {
    for (size_t i = 0; i + 2 < count; i++)
        for (int scale = 1; scale <= 100; scale += 99)
            if (is_rounded(texts[0], scale * numbers[i]) && is_rounded(texts[1], scale * numbers[i + 1]) && is_rounded(texts[2], scale * numbers[i + 2])) return 1;
    return 0;
}
/* Checks each "2.3 [1.2, 3.4]" of a text, with `between` before the bracket. Returns their number. */
static int check_triples(const char *text, const char *between, const double *numbers, size_t count) {
    int found = 0;
    for (const char *at = strstr(text, between); at; at = strstr(at + 1, between)) {
        const char *middle = at, *low = at + strlen(between), *high = strstr(low, ", ");
        const char *texts[3];
        while (middle > text && strchr("+-.0123456789", middle[-1])) middle--;
        if (middle == at || !high || !strchr("+-.0123456789", *low)) continue;
        texts[0] = middle;
        texts[1] = low;
        texts[2] = high + 2;
        found++;
        check_note(is_triple(numbers, count, texts), __FILE__, __LINE__, "the JSON has no %.50s", middle);
    }
    return found;
}
static void test_one_number(void) {
    truth t = truth_of(60, 3);
    double *numbers;
    size_t count = 0;
    char *findings[16], *tables;
    int finding_count = 0;
    const char *const wrong[3] = {"161", "118", "202"};
    check_case("text, page and JSON have the same numbers with the same intervals");
    write_sweep("agree", &t);
    if (!RUNS_JSON(0, "report %%F/agree --resamples 50 --json")) return;
    numbers = malloc((json.node_count + 1) * sizeof *numbers);
    for (uint32_t i = 0; i < json.node_count; i++)
        if (json.nodes[i].type == VP_JSON_NUMBER && vp_json_to_double(&json, i, &numbers[count]) == VP_OK) count++;
    CHECK(!is_triple(numbers, count, wrong));
    const uint32_t list = get(get(0, "e1_stage_decomposition"), "findings");
    for (uint32_t i = 0; i < count_of(list) && finding_count < 16; i++) {
        char text[1024];
        if (vp_json_text(&json, vp_json_at(&json, list, i), text, sizeof text, NULL) == VP_OK) findings[finding_count++] = strdup(text);
    }
    CHECK(finding_count > 5);
    CHECK_INT(run("report %%F/agree --resamples 50"), 0);
    for (int i = 0; i < finding_count; i++) CHECK(strstr(last.out, findings[i]) != NULL);
    tables = strstr(last.out, "\nE2: front");
    if (CHECK(tables != NULL)) CHECK(check_triples(tables, " [", numbers, count) > 100);
    CHECK_INT(run("report %%F/agree --resamples 50 --html"), 0);
    for (char *tag = last.out; (tag = strstr(tag, "code>--")) || (tag = strstr(last.out, "</code>"));) { /* names of options */
        char *start = tag - (tag > last.out && tag[-1] == '<'), *end = strchr(tag, '>') + 1;
        memmove(start, end, strlen(end) + 1);
        tag = last.out;
    }
    for (int i = 0; i < finding_count; i++) CHECK(strstr(last.out, findings[i]) != NULL);
    *strstr(last.out, "id=\"scaling\"") = 0;
    CHECK(check_triples(strstr(last.out, "id=\"table\""), " [", numbers, count) > 2 * 12);
    for (int i = 0; i < finding_count; i++) free(findings[i]);
    free(numbers);
}
static void test_warnings(void) {
    truth t = truth_of(20, 2);
    check_case("important notes for a reader come first");
    t.lost_share = 0.05;
    write_sweep("warned", &t);
    CHECK_INT(run("report %%F/warned"), 0);
    CHECK(strstr(last.out, "only 20 samples") && strstr(last.out, "less than 99 % of T_total in 8 of 8")
          && strstr(last.out, "P99 is close to the largest value in 8 of 8"));
    CHECK(strstr(last.out, "Warnings") < strstr(last.out, "E1: latency"));
    check_case("noise is also said by fit, by predictions of its model, and by a report of several sweeps next to the right one");
    t.lost_share = 0;
    t.size_count = 3;
    t.weights = "int8";
    write_sweep("quiet", &t);
    t.weights = "bf16";
    t.busy_blocks = 20;
    write_sweep("busy", &t);
    CHECK_INT(run("fit %%F/busy --num_experts 64 -o %%F/busy.model"), 0);
    CHECK(strstr(last.out, "the machine was not quiet: other processes used 50 % of the CPU during 20 of 20 blocks of runs (worst: low k4 b12; 12 of 12 "));
    EXITS(run("predict %%F/busy.model 640x480 1024x768 --tier high --top_k 4"), 0, out, "\n  the model's fit: the machine was not quiet: ");
    CHECK(strstr(last.out, "\n  1024x768 high: the same request as 640x480 high, so the same prediction\n"));
    CHECK(strstr(last.out, "\n  not given; the fitted data's medians are used: text_tokens "));
    CHECK_INT(run("report %%F/quiet %%F/busy"), 0);
    CHECK(strstr(last.out, "the machine was not quiet: ") && strstr(last.out, "/busy: other processes used 50 %") && !strstr(last.out, "/quiet: other"));
    check_case("a decode step's bytes are compared with a roof that is given, not with the best stage of the same files");
    CHECK_INT(run("report %%F/quiet"), 0);
    CHECK(strstr(last.out, "\n  a decode step takes ") && !strstr(last.out, "; reading its bytes at "));
    EXITS(run("report %%F/quiet --peak_gbs 4"), 0, out, "; reading its bytes at 4.000 GB/s takes ");
    check_case("the highest resolution is compared with the lowest and with the next one");
    CHECK(strstr(last.out, "\n  high resolution costs ") && strstr(last.out, " mean T_total of low") && strstr(last.out, "\n  high resolution raises mean T_total by "));
    t.busy_blocks = 0;
    t.size_count = 2;
    check_case("samples that some configurations lack are not paired, which is reported");
    t.samples = 15;
    write_made("warned", &t, 1, 1, 1);
    t.samples = 5;
    write_made("warned", &t, 0, 0, 0);
    CHECK_INT(run("report %%F/warned --json"), 0);
    CHECK(strstr(last.out, "5 of 20 samples were not measured in all configurations") && strstr(last.out, "low k4 b12 has 5 of 20 samples"));
    if (read_json(last.out)) CHECK_INT(whole(get(vp_json_at(&json, get(get(0, "e2_pareto_coupling"), "datasets"), 0), "num_samples")), 15);
    check_case("a corpus metric has no scores per sample");
    t = truth_of(20, 3);
    t.is_corpus = 1;
    t.metric = "cider";
    write_sweep("corpus", &t);
    EXITS(run("report %%F/corpus"), 0, out, "the metric cider scores the whole corpus");
    CHECK_INT(run("best %%F/corpus --budget_ms 1000"), 0);
    check_case("two data sets are two fronts");
    t = truth_of(20, 1);
    write_sweep("sets", &t);
    t.task = "other";
    for (int k = 0; k < 2; k++) for (int b = 0; b < 2; b++) write_made("sets", &t, 0, k, b);
    CHECK_INT(run("report %%F/sets"), 0);
    CHECK(strstr(last.out, "P50 of T_total, made, 20 common samples") && strstr(last.out, "P50 of T_total, other, 20 common samples"));
    { /* the findings of a data set are together, first the front, then knobs; no line states that a part is never the largest */
        const char *own = strstr(last.out, "\n  made: running 16 blocks raises"), *next = strstr(last.out, "\n  other: ");
        CHECK(own && next && own < next && !strstr(next, "\n  made: "));
        CHECK(!strstr(last.out, "in 0 of "));
        CHECK_INT(lines_with(last.out, "\n  made: ") + lines_with(last.out, "\n  other: "), 2 * 2 + 2 + 2);
    }
    CHECK(strstr(last.out, "\n  made: top_k 8 raises") && strstr(last.out, "\n  other: running 16 blocks raises"));
    check_refused(run("best %%F/sets --budget_ms 1000"), 2, "--dataset_name");
    CHECK_INT(run("best %%F/sets --budget_ms 1000 --dataset_name other"), 0);
    check_refused(run("best %%F/sets --budget_ms 1000 --dataset_name none"), 2, "none");
}
static void test_forms(void) {
    static const char *const files[] = {"report.txt", "report.csv", "e1_stage_decomposition.json", "e2_pareto_coupling.json"};
    int columns = 0;
    check_case("CSV: a header and one row per configuration, all with the same number of columns");
    CHECK_INT(run("report %%F/made --csv"), 0);
    CHECK_INT(lines_of(last.out), 13);
    for (char *line = strtok(last.out, "\n"); line; line = strtok(NULL, "\n")) {
        int commas = 0;
        for (char *p = line; *p; p++) commas += *p == ',';
        if (!columns) columns = commas;
        CHECK_INT(commas, columns);
    }
    CHECK(columns > 60);
    check_case("a folder with all forms");
    CHECK_INT(run("report %%F/made --output_dir %%F/out/deep"), 0);
    CHECK_TEXT(last.out, "");
    for (int i = 0; i < 4; i++) {
        char path[100], *text;
        snprintf(path, sizeof path, "out/deep/%s", files[i]);
        text = check_read(in_folder(path), NULL);
        CHECK(text && strlen(text) > 1000);
        if (text && i > 1) read_json(text);
        free(text);
    }
    check_case("reports among the result files are skipped");
    CHECK_INT(run("report %%F/made --output_dir %%F/made"), 0);
    CHECK_INT(run("report %%F/made"), 0);
    CHECK(!strstr(last.out, "no result file"));
    check_refused(run("report %%F/made/e2_pareto_coupling.json"), 3, "is a report");
    check_case("exit codes of report");
    check_refused(run("report %%F/made --output_dir %%F/stderr/x"), 5, "stderr");
    EXITS(run("report %%F/made --latency vision --percentile 99"), 0, out, "front of accuracy against P99 of T_vision_total");
    check_case("the same input gives the same bytes");
    {
        run("report %%F/made --json");
        char *before = last.out;
        last.out = NULL;
        run("report %%F/made --json");
        CHECK_TEXT(last.out, before);
        free(before);
    }
}
/* A knob with more levels than effects support, next to one that varies: there is a front, but no effects. */
static void test_many_levels(void) {
    check_case("257 values of top_k and two image sizes");
    make_empty(in_folder("many"));
    for (int i = 0; i < 258; i++) {
        char path[64], text[300];
        snprintf(path, sizeof path, "many/t_imgsizetier-%s_topk%d.json", i ? "low" : "high", i ? i : 1);
        snprintf(text, sizeof text,
                 "{\"tier\": \"%s\", \"top_k\": %d, \"num_active_blocks\": 12, \"per_sample_results\": [{\"sample_id\": 1, \"T_total\": %d, "
                 "\"accuracy\": 0}, {\"sample_id\": 2, \"T_total\": %d, \"accuracy\": 1}]}",
                 i ? "low" : "high", i ? i : 1, i + 10, i + 11);
        write_text(in_folder(path), text);
    }
    CHECK_INT(run("report %%F/many --resamples 10"), 0);
    CHECK(strstr(last.out, "E2: front") && !strstr(last.out, " from low to high") && !strstr(last.out, "main effects"));
}
/* 336 configurations x 1,000 samples, about 1.1 GB of JSON. Writing it takes minutes, so it runs only on request. Prints the figures. */
static void test_large(void) {
    truth t = truth_of(400, 3);
    struct rusage usage;
    if (!getenv("REPORT_LARGE")) return;
    check_case("336 configurations x 1,000 samples");
    t.samples = 1000;
    t.runs = 3;
    t.details = 20;
    t.top_k_count = t.block_count = 9;
    for (int i = 0; i < 9; i++) { t.top_k[i] = 2 + i; t.blocks[i] = 8 + i; }
    t.size_count = 3; /* 243 configurations; the rest from more blocks */
    write_sweep("large", &t);
    for (int i = 0; i < 9; i++) t.blocks[i] = 17 + i;
    for (int i = 0, done = 0; i < 3 * 9 * 9 && done < 93; i++, done++) write_made("large", &t, i / 81, i / 9 % 9, i % 9);
    fflush(stdout);
    CHECK_INT(system("du -sm \"$TEST_FOLDER\"/large") != -1, 1);
    CHECK_INT(run("report %%F/large --output_dir %%F/large-report"), 0);
    for (int i = 0; i < 3; i++) {
        int64_t start = vp_clock_ns();
        CHECK_INT(run("report %%F/large --json"), 0);
        getrusage(RUSAGE_CHILDREN, &usage);
        printf("report of 336 x 1,000: %.2f s, at most %.0f MB\n", (double)(vp_clock_ns() - start) / 1e9, (double)usage.ru_maxrss / 1e3);
    }
}
/* The result file in guide library is from a foreign engine: every command reads it, and also the smallest one that the guide describes. */
static void test_small_form(void) {
    char *guide = check_read("cli/guides/library.txt", NULL), text[2000] = "", other[2000], *at, *end;
    check_case("the result file in guide library is read by report, best and compare");
    at = guide ? strstr(guide, "    {\"dataset_name\": \"photos\"") : NULL;
    end = at ? strstr(at, "}]}\n") : NULL;
    if (CHECK(at && end && end - at < 1500)) {
        snprintf(text, sizeof text, "%.*s}]}\n", (int)(end - at), at);
        snprintf(other, sizeof other, "%s", text);
        at = strstr(other, "\"top_k\": 8");
        if (CHECK(at)) at[9] = '4';
        make_empty(in_folder("own"));
        write_text(in_folder("own/k8.json"), text);
        write_text(in_folder("own/k4.json"), other);
        CHECK_INT(run("report %%F/own"), 0);
        CHECK(strstr(last.out, "data set photos: 2 configurations, accuracy by em") && strstr(last.out, "model mine"));
        CHECK_INT(run("best %%F/own --budget_ms 130"), 0);
        CHECK(strstr(last.out, "k8 b16") && strstr(last.out, "k4 b16"));
        CHECK(!strstr(last.out, "run it")); /* vlmprof cannot run this engine */
        EXITS(run("compare %%F/own %%F/own"), 0, out, "verdict: IDENTICAL");
    }
    check_case("help result shows the guide with the file");
    EXITS(run("help result"), 0, out, "RESULT FILES OF YOUR OWN ENGINE");
    check_case("the smallest result file has a row of two keys, and both are needed");
    static const struct { const char *head, *row; int code; const char *words; } least[] = {
        {"\"top_k\": 1, \"num_active_blocks\": 1, ", "\"sample_id\": 0, \"T_total\": 1.5", 0, "data set a: 1 configuration"},
        {"", "\"sample_id\": 0, \"T_total\": 1.5", 0, "\n  default  "}, {"\"top_k\": 0, ", "\"sample_id\": 0, \"T_total\": 1.5", 0, "\n  default  "},
        {"\"schema\": \"vlmprof-sweep-1\", ", "\"sample_id\": 0, \"T_total\": 1.5", 3, "top_k is missing\n"},
        {"", "\"sample_id\": 0", 3, "T_total is missing or 0"}, {"", "\"T_total\": 1.5", 3, "sample_id is missing"}};
    make_empty(in_folder("least"));
    for (size_t i = 0; i < sizeof least / sizeof *least; i++) {
        snprintf(text, sizeof text, "{%s\"per_sample_results\": [{%s}]}", least[i].head, least[i].row);
        write_text(in_folder("least/a.json"), text);
        CHECK_INT(run("report %%F/least"), least[i].code);
        CHECK(strstr(least[i].code ? last.err : last.out, least[i].words) != NULL);
    }
    free(guide);
}
/* engine/a.json, b.json ..: 12 samples with all that fit needs. */
static void write_engine_file(int which, const char *head, const char *more) {
    char text[6000], name[] = "engine/a.json";
    snprintf(text, sizeof text, "{%s%s, \"per_sample_results\": [", head, more);
    for (int k = 0; k < 12; k++)
        snprintf(text + strlen(text), 400, "%s{\"sample_id\": \"s%d\", \"T_total\": %d.0%d, \"T_LLM_prefill\": 10.0%d, \"T_LLM_decode\": 4, \"accuracy\": %d, "
                 "\"output_tokens\": 3, \"actual_vision_tokens\": 144, \"actual_num_crops\": 1, \"input_text_tokens\": 20, \"total_sequence_length\": 165}",
                 k ? ", " : "", (k + which) % 12, 44, (k + which) % 12 % 5, (k + which) % 12 % 5, (k + which) % 2);
    strcat(text, "]}");
    name[7] = (char)('a' + which);
    write_text(in_folder(name), text);
}
/* An engine's files: what differs between two of one configuration, parts in another unit than the whole, what fit needs. */
static void test_own_engine(void) {
    char text[900];
    check_case("an engine's two files of one configuration: the members that differ are named");
    make_empty(in_folder("engine"));
    for (int i = 0; i < 2; i++) write_engine_file(i, i ? "\"batch_size\": 1" : "\"batch_size\": 4", ", \"dataset_name\": \"d\"");
    EXITS(run("report %%F/engine"), 0, out, "they differ in batch_size; that is not a knob: see vlmprof help library");
    CHECK(!strstr(last.out, "add up to") && strstr(last.out, "prefill takes 22.8 % of a request") && !strstr(last.out, "--kernel_pass"));
    check_case("compare of a folder with itself shows its notes once; equal ratios are settled by their signs");
    CHECK_INT(run("compare %%F/engine %%F/engine"), 0);
    CHECK(strstr(last.out, "they differ in batch_size") && !strstr(strstr(last.out, "they differ in batch_size") + 1, "they differ in batch_size"));
    for (int i = 0; i < 2; i++) {
        make_empty(in_folder(i ? "slow" : "fast"));
        snprintf(text, sizeof text, "{\"dataset_name\": \"d\", \"per_sample_results\": [{\"sample_id\": 0, \"T_total\": %d}, {\"sample_id\": 1, \"T_total\": %d}]}",
                 i ? 20 : 10, i ? 40 : 20);
        write_text(in_folder(i ? "slow/a.json" : "fast/a.json"), text);
    }
    run("compare %%F/fast %%F/slow");
    CHECK(strstr(last.out, "1 configuration, 1 comparison: ") && strstr(last.out, "about 4 more samples should decide")); /* by their signs */
    make_empty(in_folder("twins"));
    for (int i = 0, tokens = 64, ms = 10; i < 2; i++, tokens = 256, ms = 30) {
        check_case("twins: the cost of an image is a finding; %s", i ? "a line over image tokens, over the knob's values" : "one size gives no line");
        int used = snprintf(text, sizeof text, "{\"dataset_name\": \"d\", \"endpoint\": \"http://a\", \"endpoint_model\": \"m\", \"request_knobs\": {\"size\": %d}, "
                            "\"T_image_outside\": {\"ms\": %d, \"low\": 9, \"high\": 31, \"level\": 0.95, \"pairs\": 12, \"TTFT_image\": %d, \"TTFT_text\": %d, "
                            "\"floor_ms\": 1}, \"per_sample_results\": [", tokens, ms, 2 * ms, ms);
        for (int k = 0; k < 2; k++)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s{\"sample_id\": %d, \"T_total\": 90, \"TTFT\": 60, \"T_image_outside\": "
                             "{\"ms\": %d, \"image_tokens\": %d}}", k ? ", " : "", k, ms + k, tokens);
        strcat(text, "]}");
        write_text(in_folder(i ? "twins/b.json" : "twins/a.json"), text);
        EXITS(run("report %%F/twins"), 0, out, i ? "\n  an image takes 10 to 30 ms, 50.0 % of the time to the first token" : "\n  an image takes 10 [9, 31] ms, 50.0 %");
        CHECK(strstr(last.out, i ? " ms per image token (fit to 4 samples" : "all: no fit against image tokens: all images have the same number: 64\n"));
        CHECK(!strstr(last.out, "a client cannot measure a server's stages\n"));
    }
    check_case("a finding that ranks only some configurations says so; a CPU report does not speak of a device");
    truth t = truth_of(20, 2);
    make_empty(in_folder("some"));
    write_sweep("some", &t);
    t.samples = 5;
    write_made("some", &t, 0, 0, 0);
    EXITS(run("report %%F/some"), 0, out, "fastest on the front (of 7 of 8 configurations): low ");
    CHECK(strstr(last.out, "excluded from fronts and effects") && !strstr(last.out, "the device"));
    make_empty(in_folder("sized"));
    write_text(in_folder("sized/d_imgsizetier-low_crops2.json"), "{\"dataset_name\": \"d\", \"tier\": \"low\", \"per_sample_results\": [" FOREIGN_ROWS "]}");
    EXITS(run("report %%F/sized"), 0, out, "\n  fastest and most accurate: low, accuracy ");
    check_case("an engine's parts that are longer than the whole");
    make_empty(in_folder("engine"));
    write_text(in_folder("engine/a.json"), "{\"per_sample_results\": [{\"sample_id\": 0, \"T_total\": 0.1, "
               "\"T_vision_total\": 40, \"T_LLM_prefill\": 50, \"T_LLM_decode\": 9}]}");
    EXITS(run("report %%F/engine"), 0, out, "vision, prefill and decode add up to 990 times T_total in 1 of 1 configurations: check that all times are in ms");
    check_case("fit names what an engine's files lack");
    CHECK_INT(run("fit %%F/engine --output %%F/law.json"), 3);
    CHECK(strstr(last.err, "missing: output_tokens, actual_vision_tokens, actual_num_crops, input_text_tokens, total_sequence_length\n") != NULL);
    check_case("without T_vision_total, \"other\" has the vision time: prefill 10 + decode 4 + 30 ms");
    make_empty(in_folder("engine"));
    for (int i = 0; i < 3; i++) write_engine_file(i, "\"model\": \"m\"", "");
    EXITS(run("fit %%F/engine --output %%F/law.json"), 0, out, "no file has T_vision_total: \"other\" includes the vision time");
    CHECK(strstr(last.out, "decode = 2 steps; MAPE below 0.000001 %") && strstr(last.out, "unknown device"));
    EXITS(run("predict %%F/law.json --views 2 --vision_tokens 144 --sequence 165"), 0, out, "total: 44.0");
    check_refused(run("predict %%F/law.json 640x480"), 2, "but this model is m: give --views");
}
/* Result files with knobs of their own: a grid of heads x attention x blur, whose times and scores are a sum of known parts. */
static void write_grid_of_own(const char *units) {
    static const char *const attention[] = {"sdpa", "eager"};
    make_empty(in_folder("own"));
    for (int i = 0; i < 12; i++) {
        char path[60], text[6000];
        snprintf(text, sizeof text, "{\"knobs\": {\"heads\": %d, \"attn\": \"%s\", \"blur\": %s, \"num_active_blocks\": 4, \"constant\": 1}%s, \"per_sample_results\": [",
                 i % 3 == 0 ? 9 : i % 3 == 1 ? 10 : 2, attention[i / 3 % 2], i / 6 ? "true" : "false", units);
        for (int k = 0; k < 24; k++)
            snprintf(text + strlen(text), 120, "%s{\"sample_id\": %d, \"T_total\": %d.%02d, \"accuracy\": %d}", k ? ", " : "", k,
                     100 + 10 * (i % 3) + 4 * (i / 3 % 2) + k % 7, (7 * k + 3 * i) % 100, (k + i / 6) % 3 > 0);
        strcat(text, "]}");
        snprintf(path, sizeof path, "own/x_imgsize_%02d.json", i);
        write_text(in_folder(path), text);
    }
}
static void test_own_knobs(void) {
    check_case("a file's own knobs are axes: numbers in their order, texts in that of first sight, units beside levels");
    write_grid_of_own(", \"knob_units\": {\"heads\": \"kept\"}");
    EXITS(run("report %%F/own"), 0, out, "heads 10 kept cuts");
    const char *levels = strstr(last.out, "heads 2 kept"), *ten = strstr(last.out, "heads 10 kept  "), *eager = strstr(last.out, "attn eager  ");
    CHECK(levels && ten && strstr(levels, "heads 9 kept") < strstr(levels, "heads 10 kept") && eager && strstr(last.out, "attn sdpa  ") < eager);
    CHECK(strstr(last.out, "heads x attn") && strstr(last.out, "heads x blur") && strstr(last.out, "blur true") && !strstr(last.out, "constant"));
    check_case("they separate: heads 0, 10 and 20 ms, attention 4 ms, as planted");
    EXITS(run("report %%F/own --json"), 0, out, "\"knobs\": {\n");
    CHECK(strstr(last.out, "\"heads\": 10") && strstr(last.out, "\"attn\": \"sdpa\"") && strstr(last.out, "\"num_active_blocks\": 4"));
    for (const char *at = last.out; (at = strstr(at, "\"knob\": \"attn\"")) != NULL; at++) CHECK(strncmp(at, "\"knob\": \"attn\",\n", 16) == 0);
    EXITS(run("report %%F/own --csv"), 0, out, ",heads,attn,blur,");
    CHECK(strstr(last.out, ",10,sdpa,false,") && strstr(last.out, ",2,eager,true,"));
    EXITS(run("best %%F/own --budget_ms 120"), 0, out, "heads=");
    CHECK_INT(run("report %%F/own --html"), 0);
    CHECK(strstr(last.out, "Latency by attn") && strstr(last.out, "Latency by heads and attn"));
    check_case("compare pairs by them");
    CHECK_INT(run("--version; mkdir %%F/late; cd %%F/own; for f in *; do sed 's/\"T_total\": 1/\"T_total\": 2/g' $f >../late/$f; done"), 0);
    EXITS(run("compare %%F/own %%F/late --all"), 1, out, "heads=10 attn=eager blur=true");
    CHECK(!strstr(last.out, "only in"));
    EXITS(run("compare %%F/own/x_imgsize_00.json %%F/own/x_imgsize_01.json"), 2, err, "configuration (heads=9 / heads=10)");
    check_case("units must be an object; more knobs than are read together");
    write_grid_of_own(", \"knob_units\": 3");
    check_refused(run("report %%F/own"), 3, "knob_units is not an object");
    make_empty(in_folder("own"));
    CHECK_INT(run("--version; for i in $(seq 17); do printf '{\"knobs\": {\"k%%s\": 1}, \"per_sample_results\": [{\"sample_id\": 1, \"T_total\": 1}]}' "
                  "$i >%%F/own/$i.json; done"), 0);
    check_refused(run("report %%F/own"), 3, "is one too many: at most 16 can be read together");
}
/* Times that a knob of numbers and one of texts change by known parts: fit finds them, predict takes them. */
static void test_fit_own_knobs(void) {
    char text[9000];
    check_case("fit: numbers are columns, other values are groups: 0.25 ms a head in prefill, 1.5 ms a step of eager attention");
    make_empty(in_folder("own"));
    for (int i = 0; i < 12; i++) {
        const int heads = i % 3 == 0 ? 16 : i % 3 == 1 ? 12 : 2, is_eager = i / 3 % 2, crops = i / 6 ? 4 : 1;
        char path[60];
        snprintf(text, sizeof text, "{\"model\": \"m\", \"num_active_blocks\": 4, \"target_vision_tokens\": %d, "
                 "\"knobs\": {\"heads\": %d, \"attn\": \"%s\"}, \"per_sample_results\": [", 144 * (crops + 1), heads, is_eager ? "eager" : "sdpa");
        for (int k = 0; k < 20; k++) {
            const int words = 20 + k % 7, steps = 1 + k % 5, sequence = 1 + 144 * (crops + 1) + words;
            const double noise = 1 + 0.002 * ((k * 7 + i * 3) % 5 - 2), prefill = (5 + 0.01 * sequence + 0.25 * heads) * noise,
                         decode = steps * (4 + 1.5 * is_eager) * noise, vision = 10.0 * (crops + 1);
            snprintf(text + strlen(text), 400, "%s{\"sample_id\": %d, \"T_total\": %.6f, \"T_LLM_prefill\": %.6f, \"T_LLM_decode\": %.6f, \"T_vision_total\": %.1f, "
                     "\"output_tokens\": %d, \"actual_vision_tokens\": %d, \"actual_num_crops\": %d, \"input_text_tokens\": %d, "
                     "\"total_sequence_length\": %d}", k ? ", " : "", k, vision + prefill + decode + 1, prefill, decode, vision, steps + 1, 144 * (crops + 1),
                     crops, words, sequence);
        }
        strcat(text, "]}");
        snprintf(path, sizeof path, "own/x_imgsize_%02d.json", i);
        write_text(in_folder(path), text);
    }
    EXITS(run("fit %%F/own -o %%F/own.json"), 0, out, " sequence + 0.25");
    const char *eager = strstr(strstr(last.out, "  decode = "), " steps*attn=eager");
    while (eager && eager[-1] != ' ') eager--;
    if (CHECK(eager != NULL)) CHECK_NEAR(strtod(eager, NULL), 1.5, 0.01);
#define PREDICT "predict %%F/own.json --views 2 --vision_tokens 288 --sequence 310 --output_tokens 3 "
    EXITS(run(PREDICT "--knob heads=2 attn=eager"), 0, out, "  decode ");
    CHECK_NEAR(strtod(strstr(last.out, "  decode ") + 9, NULL), 11, 0.05);
    CHECK_NEAR(strtod(strstr(last.out, "  prefill ") + 10, NULL), 8.6, 0.05);
    EXITS(run(PREDICT), 0, out, "num_active_blocks 4, heads 12, attn sdpa");
    CHECK_NEAR(strtod(strstr(last.out, "  decode ") + 9, NULL), 8, 0.05);
    EXITS(run(PREDICT "--knob heads=99"), 0, out, "extrapolation: heads 99 is outside 2..16");
    check_refused(run(PREDICT "--knob heads=x"), 2, "not a number");
    check_refused(run(PREDICT "--knob attn=flash"), 2, "has this value");
    check_refused(run(PREDICT "--knob head=2"), 2, "the model has no such knob");
    EXITS(run("predict %%F/own.json --data %%F/own"), 0, out, "Predictions against measurements");
    CHECK_INT(run("--version; sed 's/\"heads\",/\"heads\": 1,/' %%F/own.json >%%F/bad.json"), 0);
    CHECK_INT(run("predict %%F/bad.json --views 0"), 3);
}
/* Two files of an engine that differ in their heads, a command, its exit code and a part of what it prints. */
static void test_engine_heads(void) {
#define KNOBS_OF(text) "\"knobs\": {" text "}"
#define M "\"model\": \"m\""
#define TWO {KNOBS_OF("\"batch\": 1"), KNOBS_OF("\"batch\": 4")}
#define COMPARE "compare %%F/engine/a.json %%F/engine/b.json"
    static const struct { const char *heads[2], *command; int code; const char *words; } cases[] = {
        {TWO, "fit %%F/engine", 0, "total = "},
        {{KNOBS_OF("\"graphs\": true"), KNOBS_OF("\"mode\": \"x\"")}, "fit %%F/engine", 3, "b.json lacks the knob graphs, which "},
        {{"\"batch_size\": 1", "\"batch_size\": 4"}, "fit %%F/engine", 2, "differ in batch_size (1, 4)"},
        {{"\"engine\": {\"name\": \"a name of many words, which is longer than a value\"}", "\"engine\": 1"}, "fit %%F/engine", 2, "differ in engine (#"},
        {{"\"provenance\": {\"device\": \"A\"}", "\"num_active_blocks\": 2"}, "fit %%F/engine", 2, "b.json differ in device (A, not said): fit"},
        {{"\"date\": \"1\"", "\"model\": \"m\", \"num_active_blocks\": 2"}, "fit %%F/engine", 2, "differ in model (not said, m): fit"},
        {{"\"activations\": \"auto\"", "\"activations\": \"int8\""}, "fit %%F/engine", 2, "differ in activations (auto, int8): fit"},
        {{KNOBS_OF("\"batch\": 4"), KNOBS_OF("\"batch\": 4.0") ", \"num_active_blocks\": 2, \"date\": \"other\""}, "fit %%F/engine", 0, "24 measurements"},
        {TWO, "report %%F/engine", 0, "fastest: batch=1"},
        {{KNOBS_OF("\"batch\": 1, \"mode\": \"x\""), KNOBS_OF("\"batch\": 4, \"mode\": \"y\"")},
         "report %%F/engine", 0, "batch and mode change together: the effect shown for"},
        {{KNOBS_OF("\"batch\": 1"), M}, "report %%F/engine", 3, "b.json lacks the knob batch"},
        {TWO, "report %%F/engine --json", 0, "\"batch\": 4"}, {TWO, "report %%F/engine --csv", 0, "\nd,,,0,,12,1,"},
        {TWO, "best %%F/engine --limit e2e:9", 2, "--limit (ttft:MS, e2e:MS or "},
        {{KNOBS_OF("\"image_knob\": \"max_pixels\", \"image_knob_value\": 9"), KNOBS_OF("\"image_knob\": \"max_pixels\", \"image_knob_value\": 4")},
         "best %%F/engine --budget_ms 50", 0, "max_pixels 4: the best within"},
        {TWO, "best %%F/engine --budget_ms 50", 0, "batch=1: the best within 50 ms"}, {TWO, COMPARE, 2, "configuration (batch=1 / batch=4)"},
        {TWO, "compare %%F/engine %%F/engine/b.json", 0, "1 configuration is only in"}, {{"\"date\": \"x\"", "\"date\": \"y\""}, COMPARE, 0, "verdict: IDENTICAL"},
        {{"\"commit\": \"x\"", "\"commit\": \"y\""}, COMPARE, 0, "A and B differ in commit (x / y)"},
        {{M, "\"weights\": 16"}, "report %%F/engine", 3, "b.json: byte 12: weights is not a string"},
        {{"\"model\": 7", M}, "report %%F/engine", 3, "a.json: byte 10: model is not a string"},
        {{"\"synthetic\": \"no\"", M}, "report %%F/engine", 3, "synthetic is not true or false"},
        {{"\"knobs\": [1]", M}, "report %%F/engine", 3, "knobs is not an object"},
        {{KNOBS_OF("\"batch\": null"), M}, "report %%F/engine", 3, "batch in \"knobs\" is not a number, a string, true or false"},
        {{M, "\"tier\": \"low\""}, "best %%F/engine --budget_ms 50 --latency ttft", 3, "0 samples have TTFT"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_case("an engine's heads, %zu: %s", i, cases[i].command);
        make_empty(in_folder("engine"));
        for (int k = 0; k < 2; k++) write_engine_file(k, cases[i].heads[k], ", \"dataset_name\": \"d\"");
        CHECK_INT(run(cases[i].command), cases[i].code);
        CHECK_TEXT(strstr(last.out, cases[i].words) || strstr(last.err, cases[i].words) ? "" : *last.err ? last.err : last.out, "");
    }
    check_case("samples without a score, and a request whose largest part is none of the three");
    make_empty(in_folder("engine"));
    write_text(in_folder("engine/a.json"), "{\"per_sample_results\": [{\"sample_id\": \"a\", \"T_total\": 20, \"T_vision_total\": 4, \"T_LLM_prefill\": 6, "
               "\"T_LLM_decode\": 1, \"accuracy\": 1}, {\"sample_id\": \"b\", \"T_total\": 20}]}");
    EXITS(run("report %%F/engine"), 0, out, "1 of 2 samples have no score");
    CHECK(strstr(last.out, "the rest, such as preprocessing, takes 72.5 % of a request, the largest part") != NULL);
    check_case("times that a row lacks come from its stages");
    make_empty(in_folder("engine"));
    write_text(in_folder("engine/a.json"), "{\"per_sample_results\": [{\"sample_id\": \"b\", \"T_total\": 20, \"output_tokens\": 3, "
               "\"stages\": {\"preprocess\": 1, \"vit\": 3, "
               "\"connector\": 1, \"embed\": 1, \"prefill\": 6, \"decode\": 7, \"my own\": 9}}, {\"sample_id\": \"a\", \"T_total\": 9, \"T_decode_per_token\": 4}]}");
    EXITS(run("report %%F/engine --csv"), 0, out, "task");
    CHECK(strstr(last.out, ",4,4,,,4,4,7,7,,,7,7,7,7,,,7,7,20,20,,,20,20,3.75,3.75,,,3.975,3.995,12,12,,,12,12,1,") != NULL);
    CHECK(strstr(last.err, "your own stages count as unaccounted: my own; vlmprof help library lists those with a column") != NULL);
    for (int named = 0; named < 2; named++) {
        check_case("an engine's files %s dataset_name, and without accuracy: effects on latency, no front", named ? "with one" : "without");
        for (int i = 0; i < 2; i++) {
            char text[300];
            snprintf(text, sizeof text, "{%s\"knobs\": {\"q\": %d}, \"per_sample_results\": [{\"sample_id\": 0, \"T_total\": %d}, {\"sample_id\": 1, \"T_total\": %d}]}",
                     named ? "\"dataset_name\": \"d\", " : "", i, 10 + 2 * i, 20 + 4 * i);
            write_text(in_folder(i ? "engine/b.json" : "engine/a.json"), text);
        }
        EXITS(run("report %%F/engine"), 0, out, named ? "\n  q 1 raises mean T_total by 20.0 % compared with 0\n" : "2 files have no dataset_name: each counts as ");
        CHECK(strstr(last.out, "no front: no accuracies: rows need \"accuracy\"") && !strstr(last.out, "configuration: image size"));
        CHECK(!strstr(last.out, "effects of the knobs on mean T_total, d") == !named);
        EXITS(run("report %%F/engine --%s", named ? "html" : "json"), 0, out, named ? ">Latency by q<" : "\"num_samples\": 2\n");
        check_refused(run("best %%F/engine --budget_ms 50"), named ? 3 : 2, named ? "no accuracies" : "give them the same dataset_name");
        check_refused(run("policy %%F/engine --budget_ms 50"), 2, named ? "no sample has an accuracy" : "give them the same dataset_name");
    }
    remove(in_folder("engine/b.json"));
    check_case("a request that waits outside its stages has no TTFT from them");
    write_text(in_folder("engine/a.json"), "{\"per_sample_results\": [{\"sample_id\": \"b\", \"T_total\": 200, \"accuracy\": 1, "
               "\"stages\": {\"vit\": 3, \"prefill\": 6, \"decode\": 7}}]}");
    EXITS(run("best %%F/engine --budget_ms 500 --latency ttft"), 3, err, "0 samples have TTFT");
}
/* Returns 1 if no word of the text is nan or inf. */
static int is_known(const char *text) {
    for (const char *at = text; *at; at++)
        if ((!strncmp(at, "nan", 3) || !strncmp(at, "inf", 3)) && (at == text || !isalpha((unsigned char)at[-1])) && !isalpha((unsigned char)at[3])) return 0;
    return 1;
}
static uint32_t drawn(uint32_t count) { /* 0 .. count - 1 */
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % count;
}
/* Files of an engine with optional values drawn at random: no number that is not known gets into a text. */
static void test_drawn(void) {
    static const char *const keys[] = {"accuracy", "T_LLM_prefill", "T_LLM_decode", "T_vision_total", "TTFT", "T_decode_per_token", "output_tokens", "unaccounted",
                                       "total_sequence_length", "actual_vision_tokens", "kept_vision_tokens", "energy_j"};
    static const char *const heads[] = {"\"prune\": \"random:keep=0.5\"", "\"prune\": \"none\"", "\"knobs\": {\"a\": 1}", "\"weights\": \"int8\"",
                                        "\"baseline\": \"x\", \"top1_agreement\": 0.5", "\"accuracy_metric\": \"em\"", "\"tier\": \"low\"", "\"device\": \"cuda\""};
    static const char *const commands[] = {"report %%F/engine --resamples 20", "report %%F/engine --peak_gbs 9 --json", "best %%F/engine --budget_ms 140",
                                           "fit %%F/engine", "compare %%F/engine/a.json %%F/engine/b.json --all --force all"};
    for (int draw = 0; draw < 25; draw++) {
        const uint32_t chosen = drawn(1u << 12), rows = 1 + drawn(7), details = drawn(4);
        check_case("drawn files of an engine, %d", draw);
        make_empty(in_folder("engine"));
        for (int file = 0; file < 2; file++) {
            char text[9000], *at = text;
            at += sprintf(at, "{\"dataset_name\": \"d\", %s, %s, \"per_sample_results\": [", heads[drawn(3)], heads[3 + drawn(5)]);
            for (uint32_t row = 0; row < rows; row++) {
                at += sprintf(at, "%s{\"sample_id\": \"%u\", \"T_total\": %u", row ? ", " : "", row, 100 + drawn(50));
                for (int key = 0; key < 12; key++)
                    if (chosen >> key & 1 && drawn(5)) at += sprintf(at, drawn(9) ? ", \"%s\": %u" : ", \"%s\": null", keys[key], drawn(key ? 7 : 2));
                if (details) at += sprintf(at, ", \"stages\": {\"prefill\": %u, \"decode\": %u}", drawn(50), drawn(9));
                at += sprintf(at, details > 1 ? ", \"stage_detail\": {\"decode\": {\"flops\": %u, \"bytes\": %u}}}" : "}", drawn(2), drawn(3));
            }
            strcpy(at, "]}");
            write_text(in_folder(file ? "engine/b.json" : "engine/a.json"), text);
        }
        for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) CHECK(run(commands[i]) >= 0 && is_known(last.out) && is_known(last.err));
    }
}
int main(void) {
    if (!program_begin("report")) return 1;
    RUN_TESTS(test_foreign, test_small_form, test_own_engine, test_own_knobs, test_fit_own_knobs, test_engine_heads, test_drawn, test_damaged, test_truth, test_parts,
              test_findings,
              test_front, test_warnings, test_one_number, test_forms, test_many_levels, test_large);
    free(json_nodes);
    return program_done("test_report");
}
