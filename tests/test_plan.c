/* test_plan.c: data sets that are read in turn, and sweep --plan: memory of a sample, files that change between plan and measurement, the table
 * of reasons, FLOPs and bytes of the forecast against the engine's counters, what --plan prints. Includes two rooms for their inner parts, and
 * runs $PROGRAM (default ./vlmprof) as a whole. */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE 1
#include "support/check.h"
#include "cli/dataset/dataset.c"
#include "cli/dataset/forecast.c"
#include "commands/commands.h"
#include "support/folder.h"
#include <sys/resource.h>
#include <sys/wait.h>

static struct model tiny;

/* a shell command in which %P is the program and %F the folder; stdout and stderr go to files */
static pid_t start(const char *line) {
    struct text_buffer t = {NULL, 0, 0};
    const char *program = getenv("PROGRAM") ? getenv("PROGRAM") : "./vlmprof";
    pid_t child;
    for (const char *c = line; *c; c++) {
        if (!strncmp(c, "%P", 2) || !strncmp(c, "%F", 2)) text_add_string(&t, *++c == 'P' ? program : folder);
        else text_add(&t, c, 1);
    }
    fflush(stdout);
    if ((child = fork()) == 0) {
        if (!freopen(in_folder("stdout"), "w", stdout) || !freopen(in_folder("stderr"), "w", stderr)) _exit(126);
        execl("/bin/sh", "sh", "-c", t.data, (char *)NULL);
        _exit(127);
    }
    free(t.data);
    return child;
}
static int finish(pid_t child, long *most_kb) {
    struct rusage use;
    int status = 0;
    while (wait4(child, &status, 0, &use) < 0) { }
    if (most_kb) *most_kb = use.ru_maxrss;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
static int sh(const char *line) { return finish(start(line), NULL); }
static int says(const char *file, const char *words) {
    char *text = NULL;
    size_t bytes = 0;
    int found = vp_file_read(in_folder(file), 1 << 24, &text, &bytes, NULL) == VP_OK && strstr(text, words);
    free(text);
    return found;
}

/* ---- a data set in this process; what is said goes to a file */
static int kept_stderr = -1;
static void hush(int on) {
    fflush(stderr);
    if (on) {
        kept_stderr = dup(2);
        if (!freopen(in_folder("stderr"), "w", stderr)) abort();
    } else {
        dup2(kept_stderr, 2);
        close(kept_stderr);
    }
}
static int load(const char *words, struct options *o, struct dataset *d) {
    static char room[8][2048];
    static int turn;
    static char *argv[32];
    char *line = room[turn++ & 7], *word;
    int argc = 0, code;
    snprintf(line, sizeof room[0], "vlmprof sweep --synthetic tiny %s", words);
    for (word = strtok(line, " "); word && argc < 31; word = strtok(NULL, " ")) argv[argc++] = word;
    argv[argc] = NULL;
    memset(o, 0, sizeof *o);
    memset(d, 0, sizeof *d);
    o->command = &command_sweep;
    hush(1);
    code = options_parse(o, argc, argv);
    d->path = code ? "" : opt(o, "data")->items[0];
    if (!code) code = dataset_load(o, &tiny, d);
    hush(0);
    return code;
}
static void unload(struct options *o, struct dataset *d) {
    dataset_free(d);
    options_free(o);
}
static int take(const struct dataset *d, size_t index, struct sample *a) {
    int code;
    hush(1);
    code = dataset_sample(d, &tiny, index, a);
    hush(0);
    return code;
}

#define ROWS "{\"id\": \"a\", \"question\": \"What is it?\", \"answers\": [\"cat\"]}\n\n{\"id\": \"b\", \"question\": \"And this?\"}\n"
static void test_changed(void) {
    char words[600];
    struct options o;
    struct dataset d;
    struct sample a;
    check_case("a record is read when its turn comes, and refused when it changed");
    CHECK(sizeof(struct entry) <= 64);
    write_text(in_folder("rows.jsonl"), ROWS);
    snprintf(words, sizeof words, "--data %s", in_folder("rows.jsonl"));
    CHECK_INT(load(words, &o, &d), 0);
    CHECK_INT(d.count, 2);
    CHECK_INT(take(&d, 1, &a), 0);
    CHECK_TEXT(a.prompt, " User: And this? Assistant:");
    CHECK_INT(a.id, 2);
    CHECK_INT(a.text_count, d.samples[1].text_count);
    sample_free(&a);
    write_text(in_folder("rows.jsonl"), "{\"id\": \"a\", \"question\": \"What is it?\", \"answers\": [\"cat\"]}\n\n{\"id\": \"b\", \"question\": \"And that?\"}\n");
    CHECK_INT(take(&d, 0, &a), 0);
    sample_free(&a);
    CHECK_INT(take(&d, 1, &a), EXIT_INPUT);
    CHECK(!a.record && !a.prompt && !a.text_ids);
    CHECK(says("stderr", "rows.jsonl: line 3: the record changed since the sweep was planned"));
    write_text(in_folder("rows.jsonl"), "{\"id\": \"a\"");
    CHECK_INT(take(&d, 0, &a), EXIT_INPUT);
    CHECK(says("stderr", "rows.jsonl: the file changed while it was read"));
    unload(&o, &d);
}
static void test_changed_notes(void) {
    char words[600];
    struct options o;
    struct dataset d;
    struct sample a;
    check_case("VQA v2: a changed annotation is refused too");
    write_text(in_folder("q.json"), "{\"data_subtype\": \"val2014\", \"questions\": [{\"image_id\": 1, \"question\": \"A?\", \"question_id\": 10}]}");
    write_text(in_folder("a.json"), "{\"annotations\": [{\"question_id\": 10, \"answers\": [{\"answer\": \"yes\"}]}]}");
    snprintf(words, sizeof words, "--data %s --annotations %s", in_folder("q.json"), in_folder("a.json"));
    CHECK_INT(load(words, &o, &d), 0);
    CHECK_INT(take(&d, 0, &a), 0);
    CHECK(a.record && strstr(a.record, "\"answers\": [\"yes\"]"));
    CHECK(a.reason && strstr(a.reason, "COCO_val2014_000000000001.jpg: "));
    sample_free(&a);
    write_text(in_folder("a.json"), "{\"annotations\": [{\"question_id\": 10, \"answers\": [{\"answer\": \"nay\"}]}]}");
    CHECK_INT(take(&d, 0, &a), EXIT_INPUT);
    CHECK(says("stderr", "changed since the sweep was planned"));
    unload(&o, &d);
}
static void test_reasons(void) {
    char text[64];
    struct dataset d;
    check_case("reasons are kept once each, and not without bound");
    memset(&d, 0, sizeof d);
    d.source.fd = d.notes.fd = -1;
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "reason %d", i);
        CHECK_INT(add_reason(&d, text), i < REASONS_MAX - 1 ? i + 1 : REASONS_MAX);
    }
    CHECK_INT(add_reason(&d, "reason 7"), 8);
    CHECK_INT(d.reason_count, REASONS_MAX);
    CHECK(strstr(d.reasons[REASONS_MAX - 1], "look at the file"));
    dataset_free(&d);
}

/* ---- the forecast's FLOPs and bytes are the engine's */
static void test_cost(void) {
    static const int32_t passes[][5] = {{0, 40, 1, 4, 3}, {0, 200, 2, 4, 9}, {3, 600, 2, 4, 4}, {5, 800, 1, 2, 2}};
    check_case("FLOPs and bytes of a pass against the engine's counters");
    for (int fp32 = 0; fp32 < 2; fp32++) {
        vp_engine_options e = vp_engine_options_default();
        vp_engine *engine = NULL;
        struct session s;
        e.config = &tiny.config;
        e.device = "cpu";
        e.weights = fp32 ? VP_WEIGHTS_FP32 : VP_WEIGHTS_BF16;
        e.max_sequence = 1300;
        e.max_views = 8;
        memset(&s, 0, sizeof s);
        if (!CHECK_INT(vp_engine_open(&e, &engine, NULL), VP_OK)) return;
        for (size_t i = 0; i < (fp32 ? 3 : sizeof passes / sizeof *passes); i++) {
            struct pass_shape p = {passes[i][0], passes[i][1], passes[i][2], passes[i][3], passes[i][4]};
            size_t views = (size_t)p.views, patches = (size_t)tiny.config.vit_positions - 1;
            size_t values = (size_t)tiny.config.geometry.patch_px * (size_t)tiny.config.geometry.patch_px * 3;
            int32_t blocks[4] = {0, 1, 2, 3}, tokens[16];
            int32_t *ids = (int32_t *)resize(NULL, (size_t)p.sequence, sizeof *ids);
            int32_t *index = (int32_t *)zeroed(views * (size_t)vp_geometry_tokens_per_crop(&tiny.config.geometry) + 1, sizeof *index);
            float *pixels = (float *)zeroed(views * patches * values + 1, sizeof *pixels), *masks = (float *)zeroed(views * patches + 1, sizeof *masks);
            int64_t step_ns[16];
            vp_request q;
            vp_reply reply;
            struct pass_cost c;
            for (int32_t k = 0; k < p.sequence; k++) ids[k] = k * 37 % 250;
            memset(&q, 0, sizeof q);
            memset(&reply, 0, sizeof reply);
            q.input_ids = ids; q.input_count = p.sequence; q.views = p.views;
            q.pixels = pixels; q.image_masks = masks; q.image_input_idx = index;
            q.top_k = p.top_k; q.active_blocks = blocks; q.active_block_count = p.block_count;
            q.max_new_tokens = p.new_tokens; q.ignore_eos = 1;
            reply.tokens = tokens; reply.step_ns = step_ns;
            CHECK_INT(vp_engine_run(engine, &q, &reply, NULL), VP_OK);
            cost_of(&tiny.config, &p, fp32, &c);
            for (int stage = VP_STAGE_VIT; stage <= VP_STAGE_DECODE; stage++) {
                double flops = (double)reply.times.flops[stage], bytes = (double)reply.times.bytes[stage];
                CHECK_NEAR(c.flops[stage], flops, 0.01 * flops);
                CHECK_NEAR(c.bytes[stage], bytes, 0.03 * bytes);
            }
            free(ids); free(index); free(pixels); free(masks);
        }
        vp_engine_close(engine);
    }
}
static void test_memory(void) {
    char words[600];
    struct options o;
    struct plan p;
    struct rates x;
    struct model m = tiny;
    vp_engine_options e = vp_engine_options_default();
    vp_engine *engine = NULL;
    struct dataset d;
    check_case("the forecast's memory is what the engine asks for");
    snprintf(words, sizeof words, "--data %s --device cpu", in_folder("rows.jsonl"));
    write_text(in_folder("rows.jsonl"), ROWS);
    CHECK_INT(load(words, &o, &d), 0);
    memset(&p, 0, sizeof p);
    memset(&x, 0, sizeof x);
    p.max_sequence = 900;
    p.max_views = 5;
    CHECK_INT(calibrate(&o, &m, &p, &x), 0);
    CHECK_TEXT(x.reason, "");
    e.config = &m.config;
    e.device = "cpu";
    e.max_sequence = 900;
    e.max_views = 5;
    CHECK_INT(vp_engine_open(&e, &engine, NULL), VP_OK);
    CHECK_INT(x.memory_bytes, vp_engine_bytes(engine));
    vp_engine_close(engine);
    /* of a large model a part is calibrated: what is left out is counted as the engine counts it */
    engine = NULL;
    m.config.block_count = 10;
    m.config.embedding_size = m.config.vocab_size = 9000;
    e.config = &m.config;
    CHECK_INT(vp_engine_open(&e, &engine, NULL), VP_OK);
    CHECK_NEAR(x.memory_bytes - held_bytes(&tiny.config, 0, 900) + held_bytes(&m.config, 0, 900), vp_engine_bytes(engine),
               0.01 * (double)vp_engine_bytes(engine));
    vp_engine_close(engine);
    CHECK_INT(vp_model_config_preset("molmoe-1b", &m.config), VP_OK);
    m.config = calibration_config(&m.config);
    CHECK(parameter_count(&m.config) < 400000000 && m.config.d_model == 2048 && m.config.vit_width == 1024);
    unload(&o, &d);
}

/* ---- the command as a whole */
static void test_vanished(void) {
    int status = 0;
    pid_t child;
    check_case("an image that vanishes while a sweep runs is a failed row, one that grew too");
    CHECK_INT(sh("mkdir %F/images && cp samples/cat.jpg %F/images/a.jpg && cp samples/cat.jpg %F/images/b.jpg && cp samples/cat.jpg %F/images/c.jpg"), 0);
    write_text(in_folder("rows.jsonl"), "{\"question\": \"A?\", \"image\": \"images/a.jpg\"}\n{\"question\": \"B?\", \"image\": \"images/b.jpg\"}\n"
                             "{\"question\": \"C?\", \"image\": \"images/c.jpg\"}\n");
    child = start("exec %P sweep --synthetic tiny --data %F/rows.jsonl --output_dir %F/out --tier_list low --max_new_tokens 1 --num_runs_per_sample 30");
    while (access(in_folder("out/journal.jsonl"), F_OK) && waitpid(child, &status, WNOHANG) == 0) usleep(1000); /* planned; sample 0 takes a while */
    CHECK_INT(unlink(in_folder("images/b.jpg")), 0);
    CHECK_INT(sh("cp samples/chart.png %F/images/c.jpg"), 0);
    CHECK_INT(finish(child, NULL), EXIT_WORK);
    CHECK_INT(sh("cat %F/out/rows_imgsizetier-low_crops*.json"), 0);
    CHECK(says("stdout", "\"num_failed\": 2") && says("stdout", "\"num_ok\": 1"));
    CHECK(says("stdout", "/images/b.jpg: ") && says("stdout", "/images/c.jpg: the image has "));
}
static double plan_number(const char *key) {
    struct parsed p = {{NULL, NULL, 0}, NULL, 0};
    char *text = NULL;
    size_t bytes = 0;
    double value = (double)NAN;
    if (vp_file_read(in_folder("stdout"), 1 << 24, &text, &bytes, NULL) == VP_OK && parse_json(&p, text, bytes, NULL) == VP_OK)
        value = node_number(&p.json, vp_json_get(&p.json, 0, key));
    free(text);
    free(p.nodes);
    return value;
}
#define PLAN "%P sweep --synthetic tiny --data samples/questions.jsonl --tier_list low medium --top_k_list 1 2 --max_new_tokens 4 --plan "
static void test_plan(void) {
    struct options o;
    struct plan p;
    char text[900];
    const char *name = "questions_imgsizetier-low_crops1_topk1_blocks4.json";
    check_case("--plan prints grid, memory, time and resolution, and writes nothing");
    CHECK_INT(sh(PLAN "--output_dir %F/planned"), 0);
    CHECK(access(in_folder("planned"), F_OK) != 0);
    CHECK(says("stdout", "4 configurations, 52 points, 3 runs each; 0 runs measured, 156 left"));
    CHECK(says("stdout", name) && says("stdout", "questions_imgsizetier-medium_crops5_topk2_blocks4.json"));
    CHECK(says("stdout", "memory  ") && says("stdout", "(estimate)") && says("stdout", "warning     fewer than 500"));
    CHECK_INT(sh(PLAN "--json"), 0);
    CHECK_NEAR(plan_number("num_points"), 52, 0);
    CHECK_NEAR(plan_number("num_runs_left"), 156, 0);
    CHECK(plan_number("expected_seconds") > 0.05 && plan_number("engine_bytes") > 1e6);
    CHECK(says("stdout", "\"too_few_samples\": true") && says("stdout", "\"expected_from\": \"estimate\""));
    check_case("--plan goes by what a journal holds, of this plan only");
    memset(&p, 0, sizeof p);
    memset(&o, 0, sizeof o);
    {
        char line[] = "vlmprof sweep --synthetic tiny --data samples/questions.jsonl --tier_list low medium --top_k_list 1 2 --max_new_tokens 4 --plan";
        char *argv[32];
        int argc = 0;
        for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;
        o.command = &command_sweep;
        CHECK_INT(options_parse(&o, argc, argv), 0);
        CHECK_INT(plan_make(&o, &tiny, &p), 0);
        snprintf(text, sizeof text, "{\"schema\": \"vlmprof-journal-2\", \"plan\": \"%016llx\"}\n"
                 "{\"config\": \"%s\", \"sample_id\": 0, \"run\": 0, \"total_ns\": 2000000000}\n"
                 "{\"config\": \"%s\", \"sample_id\": 0, \"run\": 1, \"total_ns\": 4000000000}\n"
                 "{\"config\": \"%s\", \"sample_id\": 0, \"run\": 2, \"total_ns\": 6000000000}\n"
                 "{\"config\": \"%s\", \"sample_id\": 0, \"done\": 3}\n{\"config\": \"%s\", \"sample_id\": 1, \"fai",
                 (unsigned long long)p.fingerprint, name, name, name, name, name);
        plan_free(&p);
        options_free(&o);
    }
    CHECK_INT(sh("mkdir %F/planned"), 0);
    write_text(in_folder("planned/journal_rank0of2.jsonl"), text);
    CHECK_INT(sh(PLAN "--output_dir %F/planned --json"), 0);
    CHECK_NEAR(plan_number("num_runs_measured"), 3, 0);
    CHECK_NEAR(plan_number("num_runs_left"), 153, 0);
    CHECK(plan_number("expected_seconds") > 36 * 4 + 117 * 4 / 4); /* the others are scaled: a larger tier takes no less */
    CHECK(says("stdout", "\"T_total_measured\": 4000"));
    CHECK_INT(sh(PLAN "--output_dir %F/planned --seed 7"), 0);
    CHECK(says("stdout", "belongs to another plan") && says("stdout", "0 runs measured"));
}
#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
enum { SANITIZED = __has_feature(address_sanitizer) };
#else
enum { SANITIZED = 0 };
#endif
static void test_flat(void) {
    long few = 0, many = 0;
    check_case("a planned sample takes less than 100 bytes, whatever its record holds");
    if (SANITIZED) { /* the program is, too */
        check_skip("memory of a planned sample", "a sanitizer keeps freed memory");
        return;
    }
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(in_folder("many.jsonl"), "wb");
        int n = i ? 200000 : 1000;
        for (int k = 0; f && k < n; k++) fprintf(f, "{\"question\": \"Number %d?\", \"context\": \"%0*d\"}\n", k, 100 + k % 100, k);
        CHECK(f && fclose(f) == 0);
        CHECK_INT(finish(start("exec %P sweep --synthetic tiny --data %F/many.jsonl --num_samples 200000 --tier_list low --top_k_list 1 --plan"), i ? &many : &few), 0);
        CHECK(says("stdout", i ? "200000 samples" : "1000 samples"));
    }
    if (!CHECK((many - few) * 1024 < 199000 * 100)) printf("%ld KiB for 1000 samples, %ld for 200000\n", few, many);
}

int main(void) {
    if (!folder_make("plan")) return 1;
    tiny.name = "tiny";
    CHECK_INT(model_load_preset(&tiny), 0);
    test_changed();
    test_changed_notes();
    test_reasons();
    test_cost();
    test_memory();
    test_vanished();
    test_plan();
    test_flat();
    model_free(&tiny);
    remove_folder(folder);
    return check_done("test_plan");
}
