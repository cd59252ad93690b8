/* test_texts.c: the output of tile, trace, fit, predict, score and tokenize, word by word (tests/golden/texts/text-*), in each of their forms. The tests of
 * these commands show that the numbers are right; these texts pin words, columns, order and forms. Runs $PROGRAM from the repository's root; its
 * files are in a temporary folder. KEEP_TEXTS=1 writes the texts again. */
#define _POSIX_C_SOURCE 200809L
#include "support/check.h"
#include "support/program.h"
#include "support/made_results.h"
#include "support/texts.h"
#include "support/page_reader.h"

typedef struct row { const char *name, *command; int code; } row;
static void check_rows(const row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        char file[80];
        check_case("%s", rows[i].command);
        run("%s", rows[i].command);
        snprintf(file, sizeof file, "text-%s.txt", rows[i].name);
        check_kept_run(file, rows[i].code);
    }
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof rows / sizeof *rows)

#define TIERS_IN "640x480 1920x1080 100x100 33x900 "
/* changes a file: replaces the first `from` after `after` */
static void edit(const char *path, const char *after, const char *from, const char *to) {
    char *text = text_of_file(path), *start = strstr(text, after), *at = start ? strstr(start, from) : NULL;
    kept_text t = {NULL, 0, 0};
    if (CHECK(at != NULL)) {
        kept_add(&t, text, (size_t)(at - text));
        kept_add(&t, to, strlen(to));
        kept_add(&t, at + strlen(from), strlen(at + strlen(from)));
        write_text(path, t.data);
    }
    FREE_ALL(t.data, text);
}
static void test_tile(void) {
    static const row rows[] = {
        {"tile", "tile " TIERS_IN, 0}, {"tile-files", "tile samples/cat.jpg samples/chart.png Makefile", 3}, {"tile-csv", "tile " TIERS_IN "9x --tier medium --csv", 3},
        {"tile-json", "tile " TIERS_IN "--vision_tokens 1008 --json", 0}, {"tile-one", "tile 451x300 --crops 5", 0}, {"tile-one-json",
        "tile samples/cat.jpg --json", 0},
        {"tile-fill", "tile 451x300 --preprocess adaptive-fill --max_crops 3 --csv", 0}, {"tile-families", "tile --list_families", 0},
        {"tile-families-json", "tile --list_families --json", 0}, {"tile-families-csv", "tile --list_families --csv", 0},
        {"tile-qwen", "tile --family qwen2.5-vl " TIERS_IN, 0}, {"tile-qwen-one", "tile --family qwen2.5-vl --max_pixels 1003520 1920x1080", 0},
        {"tile-qwen-csv", "tile --family qwen2.5-vl " TIERS_IN "9x --csv", 3}, {"tile-qwen-json", "tile --family qwen2.5-vl " TIERS_IN "--json", 0},
        {"tile-internvl-json", "tile --family internvl3 samples/chart.png 2000x300 --json", 0}, {"tile-llava", "tile --family llava-next samples/cat.jpg", 0},
        {"tile-compare", "tile --compare qwen3-vl,internvl3,smolvlm,gemma3 " TIERS_IN, 0}, {"tile-compare-csv", "tile --compare qwen3-vl,internvl3 " TIERS_IN "--csv", 0},
        {"tile-compare-json", "tile --compare qwen3-vl,internvl3,llama4 1920x1080 --json", 0},
        {"tile-limit", "tile --family qwen2.5-vl --max_tokens 300 " TIERS_IN, 0},
        {"tile-limit-half", "tile --family qwen2.5-vl --max_tokens 300 --percentile 50 " TIERS_IN "--json", 0},
        {"tile-limit-csv", "tile --family internvl3 --max_tokens 1000 1920x1080 --csv", 0}, {"tile-limit-none", "tile --family qwen2.5-vl --max_tokens 1 " TIERS_IN, 0},
        {"tile-bad-option", "tile --family qwen2.5-vl --max_pixel 5 640x480", 2}, {"tile-bad-value", "tile --family qwen2.5-vl --max_pixels x 640x480", 2},
        {"tile-folder", "tile --family gemma3 samples --csv", 0}, {"tile-no-folder", "tile --family gemma3 tests", 3},
        {"tile-not-image", "tile --family gemma3 640x480 Makefile 12x none.png", 3},
        {"tile-sizes", "tile --family gemma3 --sizes %F/sizes", 3}, {"tile-sizes-molmo", "tile --sizes %F/sizes --tier low", 3},
        {"tile-no-sizes", "tile --family gemma3 --sizes %F/none", 3},
        {"tile-molmo2", "tile --family molmo2 samples/cat.jpg 100x2000", 0}, {"tile-limit-one", "tile --family qwen2.5-vl --max_tokens 500 640x480", 0},
        {"tile-bad-family", "tile --family qwen9 640x480", 2}, {"tile-bad-compare", "tile --compare qwen3-vl,nobody 640x480", 2}};
    write_text(in_folder("sizes"), "640x480\n# a comment\n\n  100 x 50 \n320 240\n7\n");
    CHECK_ROWS(rows);
}
#define TORCH "trace tests/golden/trace/torch_cpu.pt.trace.json "
static void test_trace(void) {
    static const row rows[] = {
        {"trace", TORCH, 0}, {"trace-rows", TORCH "--row_limit 3 --sort_by count", 0}, {"trace-json", TORCH "--row_limit 3 --json", 0},
        {"trace-ops", TORCH "--csv --row_limit 10 --sort_by cpu_time_total", 0}, {"trace-kernels", TORCH "--csv --table kernels", 0},
        {"trace-annotations", TORCH "--csv --table annotations", 0}, {"trace-launches", TORCH "--csv --table launches", 0},
        {"trace-tracks", TORCH "--csv --table tracks", 0},
        {"trace-memory", TORCH "--csv --table memory", 0}, {"trace-summary", TORCH "--csv --table summary", 2},
        {"trace-shapes", TORCH "--group_by_input_shape --table ops --row_limit 8", 0},
        {"trace-cprofile", TORCH "--profile_format cprofile --table ops --row_limit 8", 0}, {"trace-bad-table", TORCH "--table all_of_it", 2},
        {"trace-bad-key", TORCH "--sort_by colour", 2}, {"trace-own", "trace %F/own.json", 0}, {"trace-own-json", "trace %F/own.json --json", 0}};
    /* a trace of a GPU: two steps of one stage each, kernels on two streams, a copy, launches, memory */
    write_text(in_folder("own.json"),
        "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA Made\"}], \"traceEvents\": [\n"
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#0\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":1000},\n"
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"stage::vit\",\"pid\":1,\"tid\":1,\"ts\":10,\"dur\":400},\n"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"mm\",\"pid\":1,\"tid\":1,\"ts\":20,\"dur\":100,\"args\":{\"External id\":5,\"Input Dims\":[[2,3],[3,4]]}},\n"
        "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":30,\"dur\":8,\"args\":{\"External id\":5,\"correlation\":1}},\n"
        "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":50,\"dur\":6,\"args\":{\"External id\":5,\"correlation\":2}},\n"
        "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaMemcpyAsync\",\"pid\":1,\"tid\":1,\"ts\":130,\"dur\":20,\"args\":{\"correlation\":3}},\n"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":60,\"dur\":90,\"args\":{\"External id\":5,\"correlation\":1,\"stream\":7}},\n"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"relu\",\"pid\":0,\"tid\":8,\"ts\":100,\"dur\":70,\"args\":{\"External id\":5,\"correlation\":2,\"stream\":8}},\n"
        "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy DtoH\",\"pid\":0,\"tid\":7,\"ts\":300,\"dur\":40,\"args\":{"
        "\"correlation\":3,\"bytes\":4096,\"stream\":7}},\n"
        "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"pid\":1,\"tid\":1,\"ts\":1100,\"dur\":500},\n"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"add\",\"pid\":1,\"tid\":1,\"ts\":1150,\"dur\":30,\"args\":{\"External id\":6}},\n"
        "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":25,"
        "\"args\":{\"Bytes\":4096,\"Total Allocated\":8192,\"Total Reserved\":16384,\"Device Type\":1,\"Device Id\":0}},\n"
        "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":1160,"
        "\"args\":{\"Bytes\":-4096,\"Total Allocated\":4096,\"Total Reserved\":16384,\"Device Type\":1,\"Device Id\":0}}]}");
    CHECK_ROWS(rows);
}
/* more events, memory records and names than any list initially has room for */
static void test_long_trace(void) {
    static const row rows[] = {{"trace-long", "trace %F/long.json --row_limit 5", 0}};
    FILE *f = fopen(in_folder("long.json"), "wb");
    if (!CHECK(f != NULL)) return;
    fprintf(f, "{\"traceEvents\": [\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"python\"}}");
    for (int i = 0; i < 5000; i++) {
        fprintf(f, ",\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op%d\",\"pid\":1,\"tid\":%d,\"ts\":%d,\"dur\":%d}", i % 700, 1 + i % 300, 10 * i, 3 + i % 5);
        fprintf(f, ",\n{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":%d,\"args\":{\"Bytes\":%d,"
                "\"Total Allocated\":%d,\"Total Reserved\":%d,\"Device Type\":0,\"Device Id\":-1}}", 10 * i + 1, i % 3 ? 64 : -64, 1000 + i, 9000);
    }
    fprintf(f, "]}");
    CHECK(fclose(f) == 0);
    CHECK_ROWS(rows);
}
static void test_estimator(void) {
    static const row rows[] = {
        {"fit", "fit %F/a --num_experts 64 -o %F/model.json", 0}, {"fit-json", "fit %F/a --num_experts 64 --json --output_dir %F/e3", 0},
        {"fit-seed", "fit %F/a --features seed --num_experts 8", 0},
        {"predict", "predict %F/model.json 640x480 1280x720 --tier medium --top_k 4 --output_tokens 16 --budget_ms 250", 0},
        {"predict-json", "predict %F/model.json 640x480 --crops 3 --num_active_blocks 12 --json --budget_ms 60", 0},
        {"predict-views", "predict %F/model.json --views 3 --sequence 500 --text_tokens 20 --vision_tokens 400", 0},
        {"predict-text", "predict %F/model.json --views 0 --top_k 8 --output_tokens 1", 0}, {"predict-data", "predict %F/model.json --data %F/b", 0},
        {"predict-data-json", "predict %F/model.json --data %F/b --json", 0},
        {"predict-far", "predict %F/model.json --views 90 --sequence 9000 --top_k 60", 2}, {"predict-none", "predict %F/model.json", 2}};
    truth t = truth_of(30, 3);
    write_sweep("a", &t);
    t.slower = 1.7;
    t.noise_seed = 3;
    t.device = "cuda:0: other";
    t.size_count = 2;
    write_sweep("b", &t);
    CHECK_ROWS(rows);
}
/* the page of report is well formed (page_reader.h); test_report_page reads its numbers */
static void check_page(const char *name) {
    char path[100], *text;
    check_case("page of report %s", name);
    CHECK_INT(run("report %%F/%s --resamples 20 --output_dir %%F/page-%s", name, name), 0);
    snprintf(path, sizeof path, "page-%s/report.html", name);
    text = text_of_file(in_folder(path));
    page_is_good(text);
    free(text);
}
/* the figures of a page as size and hash, because pages of many lines are too large to store */
static void check_figures(const char *name, const char *path) {
    kept_text all = {NULL, 0, 0};
    char *text = text_of_file(path), line[80];
    for (const char *at = text, *next; at && *at; at = next) {
        uint64_t hash = UINT64_C(14695981039346656037);
        next = strstr(at + 1, "<figure");
        for (const char *byte = at; *byte && byte != next; byte++) hash = (hash ^ (unsigned char)*byte) * UINT64_C(1099511628211);
        if (at != text) /* the text before the first figure contains the test's folder */
            kept_add(&all, line, (size_t)snprintf(line, sizeof line, "%zu bytes, FNV-1a %016llx\n", next ? (size_t)(next - at) : strlen(at), (unsigned long long)hash));
        if (!next || !strstr(next + 1, "<figure")) break; /* nor is the text after the last figure compared */
    }
    check_kept(name, all.data ? all.data : "");
    FREE_ALL(all.data, text);
}
/* files of several sessions and machines; in some, a number of a sample is missing */
static void test_mixed(void) {
    static const row rows[] = {
        {"mixed", "report %F/mixed --resamples 20", 0}, {"mixed-ttft", "report %F/mixed --resamples 20 --latency ttft", 0},
        {"mixed-csv", "report %F/mixed --resamples 20 --csv", 0},
        {"mixed-json", "report %F/mixed --resamples 20 --json", 0},
        {"mixed-best", "best %F/mixed --budget_ms 100 --resamples 20", 0}, {"mixed-compare-refused", "compare %F/mixed %F/whole", 2},
        {"mixed-compare", "compare %F/mixed %F/whole --force clocks model", 0}, {"mixed-compare-back",
        "compare %F/whole %F/mixed --force clocks model", 0}};
    static const char *const paths[] = {"mixed/made_imgsizetier-medium_crops5_topk8_blocks16.json", "mixed/made_imgsizetier-low_crops1_topk4_blocks12.json",
                                        "mixed/made_imgsizetier-low_crops1_topk8_blocks12.json"};
    truth t = truth_of(14, 2);
    write_sweep("mixed", &t);
    t.slower = 1.2;
    t.noise_seed = 5;
    write_sweep("whole", &t);
    edit(in_folder(paths[0]), "\"sample_id\": 3,", "\"TTFT\": ", "\"TTFT\": null, \"x\": ");
    edit(in_folder(paths[0]), "\"sample_id\": 5,", "\"accuracy\": ", "\"accuracy\": null, \"x\": ");
    edit(in_folder(paths[1]), "\"sample_id\": 7,", "\"status\": \"ok\"", "\"status\": \"failed\", \"reason\": \"why\"");
    edit(in_folder(paths[1]), "{", "\"num_failed\": 0, \"num_missing\": 0", "\"num_failed\": 1, \"num_missing\": 2");
    edit(in_folder(paths[2]), "{", "\"synthetic\": false", "\"synthetic\": true");
    edit(in_folder(paths[2]), "{", "\"num_throttled_runs\": 0", "\"num_throttled_runs\": 3, \"num_outlier_runs\": 2");
    edit(in_folder(paths[2]), "{", "\"host\": \"h\"", "\"host\": \"other\"");
    edit(in_folder(paths[1]), "{", "\"model\": \"made\"", "\"model\": null");
    for (int i = 0; i < 3; i++) {
        static const char *const times[] = {"\"measured_from\": \"2026-02-01T00:00:00Z\", \"measured_to\": \"2026-02-04T00:00:00Z\", \"plan\"",
            "\"measured_from\": \"2026-01-01T00:00:00Z\", \"measured_to\": \"2026-01-02T00:00:00Z\", \"plan\"",
        "\"measured_to\": \"2026-03-02T00:00:00Z\", \"plan\""};
        edit(in_folder(paths[i]), "{", "\"plan\"", times[i]);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char file[60];
        check_case("%s", rows[i].command);
        run("%s", rows[i].command);
        snprintf(file, sizeof file, "text-%s.txt", rows[i].name);
        check_kept_run(file, last.code < 2 ? last.code : rows[i].code);
    }
    check_page("mixed");
}
/* pages of report: a sweep on a GPU with kernels by part and an incomplete grid, and files of the experiments */
static void test_pages(void) {
    truth t = truth_of(12, 3);
    t.device = "cuda:0: test";
    t.parts = 1;
    t.lost_share = 0.2;
    t.sending = 0.95;
    t.top_k_count = t.block_count = 3;
    t.top_k[2] = 16;
    t.blocks[2] = 20;
    make_empty(in_folder("holes"));
    for (int i = 0; i < 27; i++) if (i % 4) write_made("holes", &t, i / 9, i / 3 % 3, i % 3);
    t.task = "second";
    t.is_corpus = 1;
    t.metric = "cider";
    write_made("holes", &t, 0, 0, 0);
    write_made("holes", &t, 1, 0, 0);
    check_page("holes");
    check_case("a page with more levels than it can draw lines for: size and hash of its figures");
    make_empty(in_folder("levels"));
    t = truth_of(12, 1);
    t.top_k_count = LEVELS;
    for (int i = 0; i < LEVELS; i++) t.top_k[i] = i + 1;
    for (int i = 0; i < LEVELS; i++)
        for (int k = 0; k < 2; k++) write_made("levels", &t, 0, i, k);
    CHECK_INT(run("report %%F/levels --resamples 20 --output_dir %%F/page-levels"), 0);
    check_figures("page-levels.txt", in_folder("page-levels/report.html"));
    make_empty(in_folder("foreign"));
    write_foreign(in_folder("foreign/text-vqa_imgsizetier-low_crops2_topk4_blocks12.json"), "latency_stats", FOREIGN_ROWS);
    check_page("foreign");
}
/* The exit code and messages of each of many commands, all in one file; no command may be ended by a signal. */
static void check_many(const char *name, const char *const *commands, size_t count) {
    kept_text all = {NULL, 0, 0};
    for (size_t i = 0; i < count; i++) {
        char head[400];
        check_case("%s", commands[i]);
        run("%s", commands[i]);
        CHECK(last.code >= 0);
        kept_add(&all, head, (size_t)snprintf(head, sizeof head, "$ %s\nexit %d\n", commands[i], last.code));
        kept_add(&all, last.out, strlen(last.out));
        kept_add(&all, last.err, strlen(last.err));
    }
    check_kept(name, all.data ? all.data : "");
    free(all.data);
}
#define CHECK_MANY(name, commands) check_many(name, commands, sizeof commands / sizeof *commands)

static void test_tile_words(void) {
    static const char *const commands[] = {
        "tile 640x480 --tier low --crops 2", "tile 640x480 --tier low --preprocess adaptive", "tile 640x480 --crops 3 --max_crops 4",
        "tile 640x480 --tier low --max_crops 4", "tile 640x480 --tier low --max_crops 3 --csv", "tile 640x480 --max_crops 5 --csv", "tile 640x480 -- 320x240 --csv",
        "tile 640x480 --family internvl --checkpoint %F", "tile 640x480 --family internvl --tier low", "tile 640x480 --checkpoint %F/none",
        "tile 640x480 --checkpoint %F/family", "tile 640x480 --checkpoint %F/family --max_patches 3 --json", "tile 640x480 --checkpoint %F/array",
        "tile 640x480 --checkpoint %F/torn", "tile 640x480 --checkpoint %F/unknown", "tile 640x480 --family molmo2 --max_crops 3",
        "tile 640x480 --family molmo2 --max_crops x",
        "tile 640x480 --family molmo2 --max_crops 3 --low_res_col_tokens 1 --json", "tile 640x480 --family internvl --max_crops 3",
        "tile 99999999x5 --family internvl --max_tokens 300",
        "tile 640x480 5x --family internvl --max_tokens 300", "tile 640x480 --compare internvl,gemma3 --max_patches 3 --csv",
        "tile 640x480 --family gemma3 --max_tokens 600",
        "tile 640x480 9000x20 33x900 --compare internvl,llama4,molmo2 --csv",
        "tile 100x100 --family lfm2_vl --json", "tile 2147483647x1 2147483648x1 1x2147483647 1x2147483648 0x1 1x0 --tier medium --csv",
        "tile 16777216x1 16777217x1 1x16777216 1x16777217 0x1 --family internvl --csv", "tile 100x1000 --family phi4_multimodal",
        "tile 3000x2000 1000x10 --family kimi_vl --max_tokens 500", "tile 3000x2000 1000x10 --compare kimi_vl,internvl --max_tokens 500 --csv"};
    make_empty(in_folder("family"));
    make_empty(in_folder("array"));
    make_empty(in_folder("torn"));
    make_empty(in_folder("unknown"));
    write_text(in_folder("family/preprocessor_config.json"), "{\"image_processor_type\": \"Qwen2VLImageProcessor\", \"min_pixels\": 3136, \"max_pixels\": 50176, "
               "\"patch_size\": 14, \"merge_size\": 2}");
    write_text(in_folder("family/config.json"), "{\"model_type\": \"qwen2_5_vl\"}");
    write_text(in_folder("array/config.json"), "[1]");
    write_text(in_folder("torn/config.json"), "{\"model_type\": ");
    write_text(in_folder("unknown/config.json"), "{\"model_type\": \"nothing\"}");
    CHECK_MANY("text-tile-words.txt", commands);
}
/* rejections of predict and fit, word by word; the folders are those of test_estimator */
static void test_estimator_words(void) {
    static const char *const commands[] = {
        "fit", "fit %F/none", "fit %F/one", "fit %F/one --num_experts 64", "predict", "predict %F/none 640x480", "predict %F/model.json 640",
        "predict %F/model.json 1x5000",
        "predict %F/model.json --tier low", "predict %F/model.json --views 2", "predict %F/model.json --views 0 --vision_tokens 100",
        "predict %F/model.json --views 2 --vision_tokens 400 --sequence 400", "predict %F/model.json 640x480 --views 2", "predict %F/model.json 640x480 --top_k 65",
        "predict %F/model.json 640x480 --sequence 5",
        "predict %F/model.json 640x480 -n 4",
        "predict %F/model.json 640x480 --data %F/b", "predict %F/model.json --data %F/b --top_k 4", "predict %F/model.json --data %F/b --views 4",
        "predict %F/model.json --views 3 --sequence 2000 --vision_tokens 900 --text_tokens 9 --json",
        "predict %F/model.json 5000x20 --preprocess adaptive-fill --max_crops 6 --json",
        "predict %F/model.json 640x480 --vision_tokens 1008 --json --output_tokens 40",
        "predict %F/no-vision.json 640x480 --budget_ms 50", "predict %F/no-prefill.json 640x480 --json", "predict %F/no-decode.json 640x480 20x20",
        "predict %F/no-decode.json --data %F/b"};
    truth t = truth_of(6, 1);
    make_empty(in_folder("one"));
    write_made("one", &t, 0, 0, 0);
    for (int i = 0; i < 3; i++) {
        static const char *const stages[] = {"vision", "prefill", "decode"};
        char *text = text_of_file(in_folder("model.json")), path[40], from[40], to[40];
        snprintf(path, sizeof path, "no-%s.json", stages[i]);
        snprintf(from, sizeof from, "\"%s\": {", stages[i]);
        snprintf(to, sizeof to, "\"%s\": null, \"x\": {", stages[i]);
        write_text(in_folder(path), text);
        edit(in_folder(path), "\"stages\"", from, to);
        free(text);
    }
    CHECK_MANY("text-estimator-words.txt", commands);
}
static void test_report_words(void) {
    static const char *const commands[] = {
        "report", "report %F/none", "report %F/family", "report %F/damaged %F/damaged", "report %F/damaged Makefile", "report Makefile",
        "report %F/damaged --latency tea",
        "report %F/damaged --percentile 101", "report %F/damaged --csv --json", "best", "best %F/damaged", "best %F/damaged --budget_ms 0.001",
        "best %F/none --budget_ms 5",
        "best %F/damaged --budget_ms 5000 --resamples 20", "compare %F/damaged", "compare %F/damaged %F/none", "compare %F/damaged %F/damaged --margin 0",
        "compare %F/damaged %F/damaged --force colour", "compare %F/damaged %F/one"};
    truth t = truth_of(3, 3);
    make_empty(in_folder("damaged"));
    write_made("damaged", &t, 0, 0, 0);
    CHECK_MANY("text-report-words.txt", commands);
}
static void test_scores(void) {
    static const row rows[] = {
        {"score-captions", "score --metric cider %F/captions.jsonl", 0},
        {"score-vqa", "score --metric vqa_official %F/answers.jsonl", 0},
        {"score-anls", "score --metric anls %F/answers.jsonl", 0}, {"score-mc", "score --metric mc %F/choices.jsonl", 0},
        {"score-lists", "score --metric cider %F/lists.jsonl", 0},
        {"score-none", "score --metric nothing %F/answers.jsonl", 2}, {"score-predictions", "score --predictions tests/golden/texts/merge-both-0.json", 0}};
    write_text(in_folder("captions.jsonl"), "{\"id\": 1, \"prediction\": \"A cat sits on the mat.\", \"references\": [\"a cat on a mat\", \"the cat sits\"]}\n"
               "{\"id\": 2, \"prediction\": \"two dogs\", \"references\": [\"two dogs run\", \"dogs\"]}\n"
               "{\"id\": 3, \"prediction\": \"\", \"references\": [\"nothing\"]}\n");
    write_text(in_folder("lists.jsonl"), "{\"image_id\": 7, \"candidate\": \"A Cat, sits!\", \"candidate_tokenised\": \"a cat sits\", \"references_tokenised\": "
               "[\"a cat\", \"cat sits here\", \"one\", \"two\"]}\n"
               "{\"id\": \"x\", \"candidate_tokenised\": \"dog\", \"caption\": \"two dogs\", \"references\": [\"Two dogs.\"]}\n"
               "{\"text\": \"the end\", \"references\": \"The end\"}\n");
    write_text(in_folder("answers.jsonl"), "{\"id\": \"a\", \"prediction\": \"Two.\", \"references\": [\"2\", \"two\", \"2\", \"three\"]}\n"
               "{\"prediction\": \"the kat\", \"references\": [\"cat\"]}\n{\"prediction\": \"no\", \"references\": [\"yes\", \"no\"], \"more\": 1}\n");
    write_text(in_folder("choices.jsonl"), "{\"id\": 1, \"prediction\": \"B\", \"options\": [\"x\", \"y\"], \"answer\": \"B\", \"answer_idx\": 1}\n"
               "{\"id\": 2, \"prediction\": \"x\", \"options\": [\"x\", \"y\"], \"answer\": \"A\", \"answer_idx\": 0}\n");
    CHECK_ROWS(rows);
}
static void test_tokens(void) {
    static const row rows[] = {
        {"tokenize", "tokenize --synthetic tiny 'What is this?' 'And that, \xc3\xa9?' ''", 0},
        {"tokenize-decode", "tokenize --synthetic tiny --decode '41 313 230' '' '5'", 0},
        {"tokenize-jsonl", "tokenize --synthetic tiny --jsonl <%F/records.jsonl", 0}, {"tokenize-bad", "tokenize --synthetic tiny --decode '41 x'", 2},
        {"show-prompt", "run samples/cat.jpg -p 'What?' --style vqa2 --synthetic tiny --show_prompt", 0}, {"info", "info --synthetic none", 2}};
    write_text(in_folder("records.jsonl"), "{\"text\": \"some words\", \"id\": 4}\n{\"dataset\": \"coco_caption\", \"index\": 2}\n"
               "{\"question\": \"Which?\", \"style\": \"own\"}\n");
    CHECK_ROWS(rows);
}

int main(void) {
    if (!program_begin("texts")) return 1;
    RUN_TESTS(test_tile, test_trace, test_long_trace, test_tile_words, test_estimator, test_estimator_words,
              test_report_words, test_mixed, test_pages, test_scores,
              test_tokens);
    free(json_nodes);
    return program_done("test_texts");
}
