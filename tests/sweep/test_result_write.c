/* test_result_write.c: the statistics in a sweep's result files over many samples, recomputed here from their rows: means, deviations, percentiles, distributions and the
 * most frequent tiling, if it is the first of the sorted values, the last, or tied. Runs $PROGRAM from the repository's root; its files are in a
 * temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof_json.h"
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"

#define SINGLE "samples/rocket.jpg"       /* 1 x 1 in the low tier */
#define WIDE "samples/chart.png"          /* 1 x 2 */
#define TALL "samples/turned-house.jpg"   /* 2 x 1: sorts after both */

/* a sweep over these images; its only result file is read into `json` */
static char *result_text;
static char result_path[600];
static int sweep_over(const char *const *images, int count) {
    char lines[2000], here[512] = "";
    size_t used = 0;
    CHECK(getcwd(here, sizeof here) != NULL);
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(lines + used, sizeof lines - used, "{\"image\": \"%s/%s\", \"question\": \"What?\", \"answers\": [\"cat\"]}\n", here, images[i]);
    write_text(in_folder("set.jsonl"), lines);
    remove_folder(in_folder("out"));
    CHECK_INT(run("sweep --synthetic tiny --data %%F/set.jsonl --output_dir %%F/out --tier_list low --top_k_list 1 --num_runs_per_sample 2 "
                  "--max_new_tokens 3 --ignore_eos --bare_every 0 --quiet"), 0);
    DIR *opened = opendir(in_folder("out"));
    struct dirent *entry;
    char name[600] = "";
    while (opened && (entry = readdir(opened)) != NULL)
        if (strstr(entry->d_name, "imgsizetier")) snprintf(name, sizeof name, "%s/%s", in_folder("out"), entry->d_name);
    if (opened) closedir(opened);
    snprintf(result_path, sizeof result_path, "%s", name);
    free(result_text);
    result_text = check_read(name, NULL);
    return CHECK(result_text && read_json(result_text));
}
static uint32_t row_at(int index) { return vp_json_at(&json, get(0, "per_sample_results"), (uint32_t)index); }
static int by_number(const void *a, const void *b) { return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b; }

/* PREFIX_mean, _std and percentiles of a key match the rows */
static void check_statistics(const char *key) {
    double values[16], mean = 0, square = 0;
    char name[80];
    uint32_t stats = get(0, "latency_stats");
    int count = (int)count_of(get(0, "per_sample_results"));
    static const int percents[] = {50, 95, 99};
    if (stats == VP_JSON_NONE) stats = get(0, "aggregate_stats");
    if (!CHECK(stats != VP_JSON_NONE && count > 1 && count <= 16)) return;
    for (int i = 0; i < count; i++) mean += (values[i] = number(get(row_at(i), key))) / count;
    for (int i = 0; i < count; i++) square += (values[i] - mean) * (values[i] - mean) / count;
    qsort(values, (size_t)count, sizeof *values, by_number);
    snprintf(name, sizeof name, "%s_mean", key);
    CHECK_NEAR(number(get(stats, name)), mean, 1e-9 * mean);
    snprintf(name, sizeof name, "%s_std", key);
    CHECK_NEAR(number(get(stats, name)), sqrt(square), 1e-6 * mean);
    for (int i = 0; i < 3; i++) { /* linear interpolation, NumPy's default */
        double at = (count - 1) * percents[i] / 100.0;
        int below = (int)at;
        double want = below + 1 < count ? values[below] + (at - below) * (values[below + 1] - values[below]) : values[below];
        snprintf(name, sizeof name, "%s_p%d", key, percents[i]);
        CHECK_NEAR(number(get(stats, name)), want, 1e-9 * want);
    }
}
static void check_tiling(int rows, int cols, int width, int height) {
    uint32_t tiling = get(0, "theoretical_tiling"), size = get(0, "theoretical_image_size");
    CHECK_INT(whole(vp_json_at(&json, tiling, 0)), rows);
    CHECK_INT(whole(vp_json_at(&json, tiling, 1)), cols);
    CHECK_INT(whole(vp_json_at(&json, size, 0)), height);
    CHECK_INT(whole(vp_json_at(&json, size, 1)), width);
    CHECK_INT(whole(get(0, "theoretical_num_crops")), rows * cols);
    CHECK_INT(whole(get(0, "theoretical_vision_tokens")), 144 * (rows * cols + 1));
}
static int64_t crops_counted(const char *crops) { return whole(get(get(0, "selected_crops_distribution"), crops)); }

/* A result file belongs to its user: a corrected number is read; an impossible one is rejected with its row and key. */
static void check_edited(void) {
    char *rows = strstr(result_text, "\"per_sample_results\""), *total;
    check_case("an edited row is read; an error names the row and the key");
    CHECK(strstr(rows, "\"sum\"") == NULL);
    total = strstr(rows, "\"T_total\": ") + strlen("\"T_total\": ");
    *total = *total == '1' ? '2' : '1';
    write_text(result_path, result_text);
    CHECK_INT(run("report %s --quiet", result_path), 0);
    memcpy(total - strlen("T_total\": "), "T_other", strlen("T_other"));
    write_text(result_path, result_text);
    CHECK_INT(run("report %s --quiet", result_path), 3);
    CHECK(strstr(last.err, "per_sample_results[0]") != NULL && strstr(last.err, "T_total") != NULL);
}

int main(void) {
    static const char *const at_end[] = {SINGLE, TALL, WIDE, TALL}, *const first[] = {SINGLE, TALL, SINGLE}, *const equal[] = {TALL, WIDE, TALL, WIDE};
    if (!program_begin("result_write")) return 1;
    check_case("the most frequent tiling, if it sorts last");
    if (sweep_over(at_end, 4)) {
        check_tiling(2, 1, 336, 560);
        CHECK_INT(crops_counted("1"), 1);
        CHECK_INT(crops_counted("2"), 3);
        CHECK_NEAR(number(get(0, "selected_crops_mean")), 1.75, 1e-12);
        CHECK_NEAR(number(get(0, "selected_crops_std")), sqrt(0.1875), 1e-12);
        check_case("statistics of the samples match the rows");
        check_statistics("T_total");
        check_statistics("T_vision_total");
        check_statistics("T_LLM_prefill");
        check_statistics("T_LLM_decode");
        CHECK_NEAR(number(get(0, "actual_vision_tokens_mean")), (288 + 3 * 384) / 4.0, 1e-12);
        CHECK_NEAR(number(get(0, "target_vision_tokens_mean")), (288 + 3 * 432) / 4.0, 1e-12);
    }
    check_case("the most frequent tiling, if it sorts first");
    if (sweep_over(first, 3)) {
        check_tiling(1, 1, 336, 336);
        CHECK_INT(crops_counted("1"), 2);
        CHECK_INT(crops_counted("2"), 1);
    }
    check_case("of two equally frequent tilings, the smaller one is reported");
    if (sweep_over(equal, 4)) {
        check_tiling(1, 2, 560, 336);
        CHECK_INT(crops_counted("2"), 4);
    }
    check_edited();
    FREE_ALL(json_nodes, result_text);
    return program_done("test_result_write");
}
