/* test_report_page.c: the page of report --html. Sweeps that this program writes itself, small ones and one of 336 configurations, become pages that are parsed again:
 * every tag is allowed and closed, no number is NaN or infinite, nothing is loaded from elsewhere, no two texts of a plot overlap, and hostile names stay text. The
 * checks are first tried on damaged pages, which they must reject. Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "support/check.h"
#include "support/page_reader.h"
#include "support/program.h"

/* ---- sweeps */
typedef struct sweep { const char *name, *task, *model; int sizes, top_ks, blocks, samples, has_stages; } sweep; /* task, model: JSON texts */
static unsigned random_state = 1;
static int has_high_scores; /* 1: nearly all answers are right */
static double noise(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return (double)(random_state >> 8) / (1 << 24);
}
static void write_stage(FILE *f, const char *name, double ms, double work, const char *comma) {
    fprintf(f, "\"%s\": {\"wall_ms\": %.6f, \"device_ms\": %.6f, \"launches\": 3, \"flops\": %.0f, \"bytes\": %.0f}%s", name, ms, ms, work * 9e7, work * 2e6, comma);
}
static void write_sample(FILE *f, const sweep *s, int id, int tokens, int k, int b) {
    double spread = 1 + 0.02 * noise(), views = tokens / 144, text = 20 + id % 7, sequence = tokens + text + 1, outs = 2 + id % 5;
    double vit = 5 * views * spread, prefill = (1 + b * (0.3 + 0.001 * sequence * k)) * spread, decode = (outs - 1) * (0.2 + 0.3 * b) * spread;
    double total = 1 + vit + prefill + decode, accuracy = has_high_scores ? id % 4 > 0 || k < 2 : floor(10 * (0.2 + 0.5 * noise() + 0.02 * b + 0.02 * k)) / 10;
    fprintf(f, "%s{\"sample_id\": %d, \"output_tokens\": %.0f, \"actual_num_crops\": %.0f, \"actual_vision_tokens\": %d, \"input_text_tokens\": %.0f, "
            "\"actual_text_tokens\": %.0f, \"total_sequence_length\": %.0f, \"accuracy\": %.1f, \"T_vision_total\": %.6f, \"T_LLM_prefill\": %.6f, "
            "\"T_LLM_decode\": %.6f, \"T_total\": %.6f, \"T_decode_per_token\": %.6f, \"TTFT\": %.6f, "
            "\"metadata\": {\"kind\": \"k%d\"}", id ? ",\n" : "", id, outs, views - 1, tokens, text, text,
            sequence, accuracy > 1 ? 1 : accuracy, vit, prefill, decode, total, decode / (outs - 1), 1 + vit + prefill, id % 2);
    if (s->has_stages) {
        fprintf(f, ", \"unaccounted\": 0.01, \"closure\": 0.999, \"stages\": {\"preprocess\": 0.99, \"vit\": %.6f, \"prefill\": %.6f, \"decode\": %.6f}, "
                "\"stage_detail\": {", vit, prefill, decode);
        write_stage(f, "vit", vit, views * 40, ", ");
        write_stage(f, "prefill", prefill, b * sequence * k * 0.1, ", ");
        write_stage(f, "decode", decode, b * 0.2, "}");
    }
    fprintf(f, "}");
}
static void write_sweep(const sweep *s) {
    for (int i = 0; i < s->sizes * s->top_ks * s->blocks; i++) {
        int tokens = 288 + 144 * (i / s->top_ks / s->blocks), k = 1 + i / s->blocks % s->top_ks, b = 2 + 2 * (i % s->blocks);
        char path[512];
        snprintf(path, sizeof path, "%s/%s/t_imgsizetokens%d_topk%d_blocks%d.json", folder, s->name, tokens, k, b);
        FILE *f = fopen(path, "wb");
        if (!f) { CHECK(!"a result file can be written"); return; }
        fprintf(f, "{%s\"dataset_name\": \"%s\", \"model\": \"%s\", \"num_experts\": 64, \"target_vision_tokens\": %d, \"top_k\": %d, \"num_active_blocks\": %d, "
                "\"accuracy\": 0.5, \"per_sample_results\": [", s->has_stages ? "\"schema\": \"vlmprof-sweep-2\", " : "", s->task, s->model, tokens, k, b);
        for (int id = 0; id < s->samples; id++) write_sample(f, s, id, tokens, k, b);
        fprintf(f, "]}\n");
        if (fclose(f)) CHECK(!"a result file can be written");
    }
}

/* a reader's questions in order */
static const char *const PARTS[] = {"<h1>questions: tiny</h1>", "id=\"findings\"", "running 4 blocks raises", "most accurate: ", "id=\"warnings\"",
    "id=\"front\"", "id=\"knobs\"", "id=\"stages\"", "id=\"table\"", "id=\"scaling\"", "id=\"words\"", "id=\"source\""};

/* How often a whisker crosses a name on the front. */
static int crossings(const char *page) {
    const char *drawing = strstr(page, "viewBox=\"0 0 1000 "), *end = drawing ? strstr(drawing, "</svg>") : NULL;
    double x, y, from[2], to[2];
    int count = 0, words;
    for (const char *name = drawing; end && (name = strstr(name, "<text ")) != NULL && name < end; name++) {
        words = 0; /* where the name begins */
        if (sscanf(name, "<text x=\"%lf\" y=\"%lf\" class=\"o\">%n", &x, &y, &words) != 2 || !words) continue;
        const double px = 6.4 * (double)strcspn(name + words, "<");
        for (const char *line = drawing; (line = strstr(line, "<path class=\"w\"")) != NULL && line < end; line++)
            count += sscanf(line, "<path class=\"w\" d=\"M%lf %lfL%lf %lf", &from[0], &from[1], &to[0], &to[1]) == 4 && fmin(from[0], to[0]) < x + px
                     && fmax(from[0], to[0]) > x && fmin(from[1], to[1]) < y + 3 && fmax(from[1], to[1]) > y - 11;
    }
    return count;
}

/* ---- tests */
#define POLICY "<meta content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-"
#define END "1</script>\n</body></html>\n"
static void test_reader(void) {
    static const struct { const char *text, *wrong; } cases[] = {
        {"<!DOCTYPE html>\n<p>a &lt; b</p>", NULL}, {"<p>a</p>", "no doctype"}, {"<!DOCTYPE html>\n<p>a < b</p>", "a < that begins no tag"},
        {"<!DOCTYPE html>\n<img>", "a tag that is not the page's"}, {"<!DOCTYPE html>\n<p><g></p></g>", "a tag that closes nothing"},
        {"<!DOCTYPE html>\n<p>", "a tag that is never closed"}, {"<!DOCTYPE html>\n<p class=a></p>", "an attribute without quotes"},
        {"<!DOCTYPE html>\n<p onclick=\"a\"></p>", "an attribute that acts or loads"}, {"<!DOCTYPE html>\n<a href=\"x\"></a>", "a link to elsewhere"},
        {"<!DOCTYPE html>\n<rect x=\"nan\"/>", "a number that draws nothing"}, {"<!DOCTYPE html>\n<rect width=\"-3.0\"/>", "a number that draws nothing"},
        {"<!DOCTYPE html>\n<svg><text x=\"10\" y=\"10\">abc</text><text x=\"40\" y=\"10\">abc</text></svg>", NULL},
        {"<!DOCTYPE html>\n<svg><text x=\"10\" y=\"10\">abc</text><text x=\"20\" y=\"12\">abc</text></svg>", "a text over another"}};
    check_case("the reader of pages rejects damaged ones");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *wrong = page_fault(cases[i].text);
        CHECK_TEXT(wrong ? wrong : "good", cases[i].wrong ? cases[i].wrong : "good");
    }
    check_case("it also rejects pages whose scripts do not match their head");
    CHECK(page_scripts_are_right(POLICY "0123456789abcdef'\"><script type=\"application/json\">{}</script><script nonce=\"0123456789abcdef\">" END));
    CHECK(!page_scripts_are_right(POLICY "0123456789abcdef'\"><script nonce=\"1123456789abcdef\">" END));
    CHECK(!page_scripts_are_right(POLICY "0123456789abcdef'\"><script>1</script><script nonce=\"0123456789abcdef\">" END));
    CHECK(!page_scripts_are_right(POLICY "0123456789abcdef'\">0123456789abcdef<script nonce=\"0123456789abcdef\">" END));
    CHECK(!page_scripts_are_right(POLICY "0123456789abcdef' 'unsafe-inline'\"><script nonce=\"0123456789abcdef\">" END));
}
static void test_small(void) {
    static const sweep small = {"small", "questions", "tiny", 3, 2, 2, 20, 1};
    check_case("12 configurations: all plots in the order of a reader's questions, one table row each");
    make_empty(in_folder("small"));
    write_sweep(&small);
    CHECK_INT(run("report %%F/small --html"), 0);
    page_is_good(last.out);
    const page_nonce nonce = blank_nonce(last.out);
    CHECK_INT(parts_in_order(last.out, PARTS, sizeof PARTS / sizeof *PARTS), sizeof PARTS / sizeof *PARTS);
    CHECK_INT(page_count(strstr(last.out, "id=\"table\""), "<tr><th scope=\"row\""), 12);
    CHECK(strstr(last.out, "only 20 samples") && strstr(last.out, "T_LLM_prefill against") && strstr(last.out, "on the Pareto front")
          && strstr(last.out, "Accuracy by top_k") && strstr(last.out, "Latency by image size and blocks"));
    CHECK(strstr(last.out, "<title>vlmprof: questions: tiny</title>") && strstr(last.out, "reads: images of 288 vision tokens, "
                 "1 expert per token (top_k), 2 decoder blocks."));
    CHECK(strstr(last.out, "<dt>TTFT</dt><dd>time to first token") && strstr(last.out, "<dt>T_decode_per_token</dt><dd>TPOT"));
    CHECK(strstr(last.out, "<title>288 tokens k1 b2") != NULL);
    check_case("each plot explains its marks or bars; if lines are fitted to means, the marks are means");
    CHECK_INT(page_count(last.out, "<figcaption>"), page_count(last.out, "<span>Mark: ") + page_count(last.out, "<span>Bar: ")
              + page_count(last.out, "<span>Large mark: "));
    CHECK(page_count(last.out, "<figcaption>") > 15 && strstr(last.out, "Line: least squares through all samples") && !strstr(last.out, ": median "));
    char *file = last.out;
    check_case("the page in a file, and among all reports");
    last.out = NULL;
    CHECK_INT(run("report %%F/small --html=%%F/page.html"), 0);
    CHECK_TEXT(last.out, "");
    free(last.out);
    last.out = check_read(in_folder("page.html"), NULL);
    CHECK(last.out && strcmp(blank_nonce(last.out).text, nonce.text) && !strcmp(last.out, file));
    CHECK_INT(run("report %%F/small --output_dir %%F/answers"), 0);
    free(last.out);
    last.out = check_read(in_folder("answers/report.html"), NULL);
    CHECK(last.out && strcmp(blank_nonce(last.out).text, nonce.text) && !strcmp(last.out, file));
    free(file);
    check_case("impossible requests");
    CHECK_INT(run("report %%F/small --html --csv"), 2);
    EXITS(run("report %%F/small --html=%%F/none/page.html"), 5, err, "page.html");
}
static void test_large(void) {
    static const sweep large = {"large", "vqa", "tiny", 7, 6, 8, 12, 1};
    check_case("336 configurations: below 2 MB");
    make_empty(in_folder("large"));
    write_sweep(&large);
    CHECK_INT(run("report %%F/large --html --resamples 50"), 0);
    page_is_good(last.out);
    CHECK(strlen(last.out) > 300000 && strlen(last.out) < 2000000);
    CHECK_INT(page_count(strstr(last.out, "id=\"table\""), "<tr><th scope=\"row\""), 336);
}
static void test_hostile(void) {
    static const sweep hostile = {"hostile", "a\\\"'><script>alert(1)</script>&amp;", "<img src=x onerror=alert(2)>\\u202e\\u0007</title></style>", 1, 2, 2, 9, 1};
    check_case("names that contain markup stay text");
    make_empty(in_folder("hostile"));
    write_sweep(&hostile);
    CHECK_INT(run("report %%F/hostile --html"), 0);
    page_is_good(last.out);
    CHECK(strstr(last.out, "a&quot;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;") != NULL);
    CHECK(strstr(last.out, "&lt;img src=x onerror=alert(2)&gt;") != NULL);
    CHECK(!strstr(last.out, "\xE2\x80\xAE") && !strchr(last.out, 7)); /* no character changes the reading direction */
}
/* An interval of a mean that ends beyond the scores' range would be drawn outside it. */
static void test_ends(void) {
    static const sweep high = {"high", "a", "m", 1, 2, 2, 8, 0};
    const char *figure, *title;
    double value, from, to;
    int found = 0;
    check_case("whiskers of accuracy end at the limits of the scores");
    make_empty(in_folder("high"));
    has_high_scores = 1;
    write_sweep(&high);
    has_high_scores = 0;
    CHECK_INT(run("report %%F/high --html"), 0);
    page_is_good(last.out);
    figure = strstr(last.out, "<figcaption>Accuracy by top_k");
    for (title = figure; title && (title = strstr(title, "<title>top_k ")) != NULL && title < strstr(figure, "</figure>"); title++)
        if (CHECK(sscanf(title, "<title>top_k %*d: %lf [%lf, %lf]", &value, &from, &to) == 3)) {
            check_note(0 <= from && from <= value && value <= to && to <= 1, __FILE__, __LINE__, "%g [%g, %g]", value, from, to);
            found++;
        }
    CHECK_INT(found, 2);
}
/* The front's names are next to whiskers, not over them, where there is room. */
static void test_names(void) {
    static const sweep close = {"close", "a", "m", 2, 3, 3, 30, 1};
    check_case("no whisker crosses a name on the front");
    make_empty(in_folder("close"));
    random_state = 1;
    write_sweep(&close);
    CHECK_INT(run("report %%F/close --html"), 0);
    page_is_good(last.out);
    CHECK_INT(page_count(last.out, " class=\"o\">"), 5);
    CHECK_INT(crossings(last.out), 0);
}
static void test_odd(void) {
    static const sweep sweeps[] = {{"odd", "a", "m", 1, 1, 1, 1, 1}, {"odd", "b", "m", 1, 1, 1, 30, 1}, {"odd", "c", "m", 2, 1, 1, 2, 0},
                                   {"odd", "d", "m", 2, 3, 2, 25, 0}, {"odd", "e", "m", 26, 1, 1, 3, 1}};
    check_case("one configuration, one sample, files without stages, more sizes than fit");
    for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++) {
        make_empty(in_folder("odd"));
        write_sweep(&sweeps[i]);
        CHECK_INT(run("report %%F/odd --html --latency prefill --percentile mean"), 0);
        page_is_good(last.out);
        CHECK(!strstr(last.out, "T_vision_total against") == (i < 2) || !sweeps[i].has_stages); /* one number of views shows no growth */
        CHECK(i != 2 || (strstr(last.out, ">decode steps</text>") && !strstr(last.out, ">1.2</text>")));
    }
    check_case("two data sets on one page");
    make_empty(in_folder("first"));
    make_empty(in_folder("second"));
    static const sweep two[] = {{"first", "alpha", "m", 2, 2, 1, 9, 1}, {"second", "beta", "m", 2, 2, 1, 9, 1}};
    write_sweep(&two[0]);
    write_sweep(&two[1]);
    CHECK_INT(run("report %%F/first %%F/second --html"), 0);
    page_is_good(last.out);
    CHECK_INT(page_count(last.out, "on the Pareto front</span>"), 2);
    CHECK_INT(page_count(last.out, "<div data-set=\"1\">"), page_count(last.out, "<div data-set=\"0\">"));
    CHECK(strstr(last.out, "<h3>alpha</h3>") && strstr(last.out, "<h3>beta</h3>"));
}
static void test_command(void) {
    check_case("the command that repeats the sweep; names of options are not broken");
    CHECK_INT(run("report tests/golden/results/tiers --resamples 20 --html"), 0);
    CHECK(strstr(last.out, "<dt>command</dt><dd>") && strstr(last.out, " sweep --synthetic ") && strstr(last.out, "<code>--num_runs_per_sample</code>"));
}

int main(void) {
    if (!program_begin("html")) return 1;
    RUN_TESTS(test_reader, test_small, test_large, test_hostile, test_odd, test_names, test_ends, test_command);
    return program_done("test_report_page");
}
