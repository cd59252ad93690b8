/* test_fidelity.c: `sweep --baseline`. KL divergences against the sum in long double, along the baseline's answer from the logits of `run --dump`;
 * first differences against the answers' tokens, one by one; bounds of truncated lists against the whole distributions; servers with lists, without, and with an error
 * for them; a stopped sweep that continues to the same numbers. Runs $PROGRAM from the repository's root. */
#define _POSIX_C_SOURCE 200809L
#include "base/memory.h"
#include "measure/fidelity.h"
#include "support/command.h"
#include "support/hostile_server.h"

/* ------------------------------------------------------------------------------------------------------------ one position */
static uint64_t draws = 20261124;
static double draw(void) { /* splitmix64, scaled to 0..1 */
    uint64_t z = (draws += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}
static long double log_sum(const float *values, size_t count) {
    long double most = values[0], sum = 0;
    for (size_t i = 0; i < count; i++) if ((long double)values[i] > most) most = values[i];
    for (size_t i = 0; i < count; i++) sum += expl((long double)values[i] - most);
    return most + logl(sum);
}
/* The definition: sum of p (log p - log q). */
static double direct(const float *base, const float *other, size_t count) {
    const long double total = log_sum(base, count), other_total = log_sum(other, count);
    long double sum = 0;
    for (size_t i = 0; i < count; i++) {
        const long double log_p = (long double)base[i] - total;
        sum += expl(log_p) * (log_p - ((long double)other[i] - other_total));
    }
    return (double)sum;
}
static void test_divergence(void) {
    static const double spreads[] = {0.5, 3, 30, 300}, changes[] = {0, 1e-6, 1e-3, 0.1, 2, 50};
    enum { VALUES = 700 };
    float base[VALUES], other[VALUES], wrong[VALUES];
    check_case("KL divergences of logits, small and large, against long double: within 1e-12, or 1e-9 for tiny ones");
    for (int s = 0; s < 4; s++)
        for (int c = 0; c < 6; c++) {
            for (int i = 0; i < VALUES; i++) {
                base[i] = (float)(spreads[s] * (draw() - 0.5));
                other[i] = (float)((double)base[i] + changes[c] * (draw() - 0.5));
            }
            for (int i = 0; i < VALUES; i++) wrong[i] = other[VALUES - 1 - i];
            double want = direct(base, other, VALUES);
            double got = kl_divergence(base, other, VALUES);
            CHECK_NEAR(got, want, 1e-12 * fabs(want) + 1e-18 + (fabs(want) < 1e-6 ? 1e-9 * fabs(want) + 1e-19 : 0));
            CHECK(got >= 0);
            if (c < 4) CHECK(fabs(kl_divergence(base, wrong, VALUES) - want) > 1e-9); /* another order gives another divergence */
        }
    CHECK_NEAR(kl_divergence(base, base, VALUES), 0, 0);
}
/* A list of the `count` likeliest tokens of a distribution, whose names are numbers. The caller provides names and step. */
static void list_of(const double *p, int tokens, int count, char (*names)[8], struct likely *top, struct likely_step *step) {
    char taken[64] = {0};
    for (int k = 0; k < count; k++) {
        int best = -1;
        for (int i = 0; i < tokens; i++) if (!taken[i] && (best < 0 || p[i] > p[best])) best = i;
        taken[best] = 1;
        snprintf(names[best], 8, "t%d", best);
        top[k] = (struct likely){names[best], strlen(names[best]), log(p[best])};
    }
    *step = (struct likely_step){top[0], top, (size_t)count};
}
static void test_bounds(void) {
    enum { TOKENS = 40 };
    static const int lengths[] = {1, 3, 5, 20, TOKENS};
    check_case("bounds from lists of 1 to 40 of 40 tokens contain the divergence of the whole distributions; complete lists give it exactly");
    for (int round = 0; round < 200; round++) {
        double p[TOKENS], q[TOKENS], p_sum = 0, q_sum = 0, want = 0;
        for (int i = 0; i < TOKENS; i++) {
            p_sum += p[i] = exp(8 * draw());
            q_sum += q[i] = exp(log(p[i]) + (round % 5) * (draw() - 0.5));
        }
        for (int i = 0; i < TOKENS; i++) { p[i] /= p_sum; q[i] /= q_sum; want += p[i] * log(p[i] / q[i]); }
        for (int k = 0; k < 5; k++) {
            char names[TOKENS][8];
            struct likely top[TOKENS], other_top[TOKENS];
            struct likely_step step, other;
            list_of(p, TOKENS, lengths[k], names, top, &step);
            list_of(q, TOKENS, lengths[k], names, other_top, &other);
            struct divergence got = likely_divergence(&step, &other);
            CHECK(got.nats <= want + 1e-12);
            CHECK(got.at_most >= want - 1e-12);
            if (lengths[k] == TOKENS) CHECK_NEAR(got.nats, want, 1e-9);
        }
    }
}

/* ---------------------------------------------------------------------------------------------------------------- a sweep */
#define MODEL "samples/tiny/model"
#define GRID " --tier_list low --top_k_list 1 2 --num_active_blocks_list 3 5 --num_samples 4 --num_runs_per_sample 1 --max_new_tokens 6 --bare_every 0 --gemm %G --quiet "
static void write_data(void) {
    char text[4000], here[600];
    if (!CHECK(getcwd(here, sizeof here) != NULL)) return;
    snprintf(text, sizeof text,
             "{\"image\": \"%s/samples/cat.jpg\", \"question\": \"What is this?\"}\n{\"image\": \"%s/samples/sign.png\", \"question\": \"What does it say?\"}\n"
             "{\"image\": \"%s/samples/chart.png\", \"question\": \"How many bars are there?\"}\n{\"image\": \"%s/samples/coffee.jpg\", \"question\": \"Is it "
             "hot?\"}\n", here, here, here, here);
    write_text(in_folder("few.jsonl"), text);
}
/* The result file, in a folder, of a configuration of the grid, whose crops are not known. */
static int load_result(document *d, const char *where, int which) {
    char pattern[600], path[700] = "";
    snprintf(pattern, sizeof pattern, "ls %s/few_imgsizetier-low_crops*_topk%d_blocks%d*.json", in_folder(where), which / 2 + 1, which % 2 ? 5 : 3);
    FILE *list = popen(pattern, "r");
    if (!CHECK(list && fgets(path, sizeof path, list))) { if (list) pclose(list); return 0; }
    pclose(list);
    path[strcspn(path, "\n")] = 0;
    return CHECK(load(d, path));
}
static uint32_t row_of(const document *d, int index) { return vp_json_at(&d->json, member(d, 0, "per_sample_results"), (uint32_t)index); }
static int tokens_of(const document *d, uint32_t row, int32_t *tokens) {
    const uint32_t list = member(d, row, "output_token_ids");
    int count = 0;
    for (uint32_t i = list + 1; i < d->nodes[list].end && count < 16; i = d->nodes[i].end) {
        int64_t id = 0;
        vp_json_to_int(&d->json, i, &id);
        tokens[count++] = (int32_t)id;
    }
    return count;
}
static void test_differences(void) {
    document all[4];
    int there = 1;
    check_case("first differences and equal answers match the answers' tokens, and their distribution the direct count");
    write_data();
    CHECK_INT(cli("sweep --model " MODEL " --data %F/few.jsonl --output_dir %F/sweep --weights_list fp32" GRID "--baseline first"), 0);
    for (int k = 0; k < 4; k++) there &= load_result(&all[k], "sweep", k);
    for (int k = 0; there && k < 4; k++) {
        double counted[16] = {0}, equal = 0, sum = 0, largest = 0;
        double positions = 0, top1 = 0;
        uint32_t distribution = member(&all[k], 0, "first_difference_distribution");
        for (int i = 0; i < 4; i++) {
            const uint32_t row = row_of(&all[k], i);
            int32_t own[16], first[16];
            const int own_count = tokens_of(&all[k], row, own), count = tokens_of(&all[0], row_of(&all[0], i), first);
            int at = 0;
            while (at < count && at < own_count && own[at] == first[at]) at++;
            CHECK_INT(number(&all[k], row, "fidelity_tokens"), count);
            CHECK_INT(number(&all[k], row, "answer_agreement"), at == count && own_count == count);
            if (at == count) CHECK(is_null(&all[k], row, "first_difference_index"));
            else {
                CHECK_INT(number(&all[k], row, "first_difference_index"), at);
                CHECK(number(&all[k], row, "first_difference_margin") >= 0 && number(&all[k], row, "first_difference_baseline_margin") >= 0);
                counted[at]++;
            }
            equal += at == count;
            sum += number(&all[k], row, "kl_divergence_mean") * count;
            positions += count;
            top1 += number(&all[k], row, "top1_agreement") * count;
            largest = fmax(largest, number(&all[k], row, "kl_divergence_max"));
            CHECK(number(&all[k], row, "kl_divergence_median") <= number(&all[k], row, "kl_divergence_p99"));
        }
        CHECK_NEAR(number(&all[k], 0, "answer_agreement"), equal / 4, 1e-12);
        CHECK_NEAR(number(&all[k], 0, "kl_divergence_mean"), sum / positions, 1e-12);
        CHECK_NEAR(number(&all[k], 0, "kl_divergence_max"), largest, 0);
        CHECK_NEAR(number(&all[k], 0, "top1_agreement"), top1 / positions, 1e-12);
        for (int at = 0; at < 16; at++) {
            char key[8];
            snprintf(key, sizeof key, "%d", at);
            double found = number(&all[k], distribution, key);
            CHECK_NEAR(isfinite(found) ? found : 0, counted[at], 0);
        }
        if (!k) CHECK_NEAR(number(&all[k], 0, "kl_divergence_max"), 0, 0); /* the baseline itself, bit by bit */
        else CHECK(number(&all[k], 0, "kl_divergence_mean") > 0);
    }
    for (int k = 0; k < 4; k++) unload(&all[k]);
}
/* The divergence at index `at` of a sample in the journal, for tier low and top_k 2; NaN if there is none. */
static double journal_divergence(const char *journal, int sample, uint32_t at) {
    char wanted[200];
    const char *line = journal;
    double value = (double)NAN;
    snprintf(wanted, sizeof wanted, "\"sample_id\": %d,", sample);
    for (; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const char *end = strchr(line, '\n');
        document d;
        char *one = (char *)calloc((size_t)(end - line) + 1, 1);
        memcpy(one, line, (size_t)(end - line));
        if (strstr(one, "\"fidelity\"") && strstr(one, "{\"config\": \"few_imgsizetier-low_crops2_topk1_blocks5") && strstr(one, wanted) && parse(&d, one, strlen(one))) {
            const uint32_t list = member(&d, member(&d, 0, "fidelity"), "divergences");
            CHECK(d.nodes[list].count <= 6); /* one number per token, not a row of the vocabulary */
            if (at < d.nodes[list].count) value = number(&d, vp_json_at(&d.json, list, at), "kl_divergence");
            free(d.nodes);
        }
        free(one);
    }
    return value;
}
static int dump_logits(const char *name, int top_k, int blocks, check_array *logits) {
    char command[600];
    snprintf(command, sizeof command, "run samples/sign.png --raw_prompt -p ' User: What does it say? Assistant:' --model " MODEL
             " --tier low --top_k %d --num_active_blocks %d --weights fp32 --gemm %%G --max_new_tokens 6 --cold --dump %%F/%s", top_k, blocks, name);
    if (!CHECK_INT(cli(command), 0)) return 0;
    snprintf(command, sizeof command, "%s/logits.npy", in_folder(name));
    return CHECK(check_npy(command, logits));
}
static void test_along_the_answer(void) {
    check_array base, other;
    document d;
    char *journal = check_read(in_folder("sweep/journal.jsonl"), NULL);
    check_case("a sweep's KL divergences match those from `run --dump`, up to the first token that differs");
    if (journal && load_result(&d, "sweep", 1) && dump_logits("base", 1, 3, &base)) {
        const uint32_t row = row_of(&d, 1);
        const int64_t width = base.shape[1];
        const double first = number(&d, row, "first_difference_index");
        const uint32_t steps = isfinite(first) ? (uint32_t)first + 1 : (uint32_t)base.shape[0];
        CHECK(is_text(&d, row, "prompt", " User: What does it say? Assistant:"));
        if (dump_logits("other", 1, 5, &other)) {
            for (uint32_t step = 0; step < steps; step++) {
                float *p = (float *)malloc((size_t)width * 2 * sizeof *p), *q = p + width;
                for (int64_t i = 0; i < width; i++) {
                    p[i] = (float)check_at(&base, (int64_t)step * width + i);
                    q[i] = (float)check_at(&other, (int64_t)step * width + i);
                }
                CHECK_NEAR(journal_divergence(journal, 1, step), direct(p, q, (size_t)width), 1e-9 * direct(p, q, (size_t)width) + 1e-15);
                free(p);
            }
            check_free(&other);
        }
        check_free(&base);
        unload(&d);
    }
    free(journal);
}
/* The passes in --plan that a baseline costs: one along its answer for each open point, one of its own for each sample with such a point. */
static void check_plan(const char *folder_option, int follow, int own) {
    char command[1200], wanted[80];
    document d;
    snprintf(command, sizeof command, "sweep --model " MODEL " --data %%F/few.jsonl --output_dir %s --weights_list fp32%s--baseline first --plan", folder_option, GRID);
    CHECK_INT(cli(command), 0);
    snprintf(wanted, sizeof wanted, ".json: %d remaining untimed passes along its answers%s", follow, own ? "," : "");
    CHECK(last.out && strstr(last.out, wanted));
    snprintf(wanted, sizeof wanted, ", after %d that generate them;", own);
    if (own) CHECK(last.out && strstr(last.out, wanted));
    strcat(command, " --json");
    if (!cli_json(command, 0, &d)) return;
    CHECK_INT(number(&d, 0, "num_follow_passes_left"), follow);
    CHECK_INT(number(&d, 0, "num_baseline_passes_left"), own);
    if (!follow) CHECK_NEAR(number(&d, 0, "expected_seconds"), 0, 0);
    free(d.nodes);
}
static void test_choices(void) {
    document d, again;
    check_case("the baseline by name, by a folder that contains only answers, and invalid ones");
    CHECK_INT(cli("sweep --model " MODEL " --data %F/few.jsonl --output_dir %F/named --weights_list fp32" GRID "--baseline imgsizetier-low_crops1_topk1_blocks4"), 2);
    CHECK(last.err && strstr(last.err, "not a file and not a configuration"));
    CHECK_INT(cli("sweep --model " MODEL " --data %F/few.jsonl --output_dir %F/old --tier_list low --top_k_list 2 --num_samples 4 --num_runs_per_sample 1 "
                  "--max_new_tokens 6 --weights fp32 --gemm %G --quiet --baseline %F/sweep"), 2);
    CHECK(last.err && strstr(last.err, "name one of them"));
    CHECK_INT(cli("sweep --model " MODEL " --data %F/few.jsonl --output_dir %F/old --tier_list low --top_k_list 2 --num_samples 4 --num_runs_per_sample 1 "
                  "--max_new_tokens 5 --weights fp32 --gemm %G --quiet --baseline %F/sweep"), 3);
    if (load_result(&d, "sweep", 0)) {
        char command[1200];
        FILE *list = popen((snprintf(command, sizeof command, "ls %s/few_imgsizetier-low_crops*_topk1_*.json", in_folder("sweep")), command), "r");
        char line[700] = "";
        const char *path = list && fgets(line, sizeof line, list) ? line : "";
        if (list) pclose(list);
        line[strcspn(line, "\n")] = 0;
        snprintf(command, sizeof command, "sweep --model " MODEL " --data %%F/few.jsonl --output_dir %%F/old --tier_list low --top_k_list 2 --num_samples 4 "
                 "--num_runs_per_sample 1 --max_new_tokens 6 --weights fp32 --gemm %%G --quiet --baseline %s", path);
        CHECK_INT(cli(command), 0);
        unload(&d);
    }
    if (load_result(&d, "sweep", 3) && load_result(&again, "old", 3)) {
        static const char *const equal[] = {"top1_agreement", "answer_agreement", "first_difference_index", "first_difference_margin"};
        for (int i = 0; i < 4; i++) if (!is_null(&d, 0, equal[i])) CHECK_NEAR(number(&again, 0, equal[i]), number(&d, 0, equal[i]), 0);
        CHECK(is_null(&again, 0, "kl_divergence_mean") && is_null(&again, 0, "first_difference_baseline_margin"));
        CHECK(!is_null(&again, 0, "fidelity_reason"));
        unload(&d);
        unload(&again);
    }
    check_case("a sweep that stopped in the middle of a point continues with the same results");
    char *journal = check_read(in_folder("sweep/journal.jsonl"), NULL);
    if (CHECK(journal != NULL)) {
        char *cut = journal;
        for (int lines = 0; lines < 3; lines++) cut = strstr(cut, "\"fidelity\"") + 1; /* the third such line and all after it are lost */
        while (cut > journal && cut[-1] != '\n') cut--;
        *cut = 0;
        check_plan("%F/gone", 16, 4);
        CHECK_INT(mkdir(in_folder("gone"), 0777), 0);
        write_text(in_folder("gone/journal.jsonl"), journal);
        free(journal);
        check_plan("%F/gone", 14, 4);
        CHECK_INT(cli("sweep --model " MODEL " --data %F/few.jsonl --output_dir %F/gone --weights_list fp32" GRID "--baseline first"), 0);
        for (int k = 0; k < 4; k++) if (load_result(&d, "sweep", k) && load_result(&again, "gone", k)) {
            CHECK_NEAR(number(&again, 0, "kl_divergence_mean"), number(&d, 0, "kl_divergence_mean"), 0);
            CHECK_NEAR(number(&again, 0, "kl_divergence_p99"), number(&d, 0, "kl_divergence_p99"), 0);
            CHECK_NEAR(number(&again, 0, "top1_agreement"), number(&d, 0, "top1_agreement"), 0);
            unload(&d);
            unload(&again);
        }
        check_plan("%F/gone", 0, 0);
        CHECK_INT(cli("sweep --model " MODEL " --data %F/few.jsonl --output_dir %F/without --weights_list fp32" GRID "--plan --json"), 0);
        CHECK(last.out && !strstr(last.out, "passes_left")); /* no passes without a baseline */
        REFUSED("sweep --model " MODEL " --data %F/few.jsonl --output_dir %F/gone --weights_list fp32" GRID, 2, "belongs to another plan");
    }
}
/* The cell at `index` in a line of a printed table; cells are separated by two spaces. */
static const char *cell_of(const char *line, int index, char out[100]) {
    size_t bytes = 0;
    line += strspn(line, " ");
    for (; index > 0; index--) { line = strstr(line, "  ") ? strstr(line, "  ") : ""; line += strspn(line, " "); }
    while (line[bytes] && line[bytes] != '\n' && strncmp(line + bytes, "  ", 2) != 0) bytes++;
    snprintf(out, 100, "%.*s", (int)bytes, line);
    return out;
}
/* The table of agreement: page and text have the same cells, which match the JSON's numbers. The finding names both ends of the range. */
static void test_tables(void) {
    static const struct { int cell; const char *key; } numbers[] = {
        {1, "kl_divergence_mean"}, {2, "kl_divergence_median"}, {3, "kl_divergence_p99"}, {4, "kl_divergence_max"}, {5, "top1_agreement"}, {6, "answer_agreement"}};
    double least = HUGE_VAL, most = -HUGE_VAL;
    char *text, *page = NULL, near[100] = "", far[100] = "";
    document d;
    check_case("agreement in text, page and JSON: the same digits, and the closest and farthest configurations");
    CHECK_INT(cli("report %F/sweep"), 0);
    text = last.out ? copy_text(last.out, strlen(last.out)) : NULL;
    CHECK_INT(cli("report %F/sweep --html=%F/page.html"), 0);
    page = check_read(in_folder("page.html"), NULL);
    const char *line = text ? strstr(text, "E2: agreement with few_imgsizetier-low") : NULL;
    const char *section = page ? strstr(page, "<section id=\"agreement\">") : NULL;
    CHECK(page && strstr(page, "<a href=\"#agreement\">Agreement</a>"));
    if (CHECK(line && section) && cli_json("report %F/sweep --json", 0, &d)) {
        for (int i = 0; i < 2; i++) line = strchr(strchr(line, '\n') + 1, '\n'); /* skip the column heads */
        for (uint32_t row = 0; row < 4; row++) {
            const uint32_t fidelity = member(&d, vp_json_at(&d.json, member(&d, member(&d, 0, "e1_stage_decomposition"), "configurations"), row), "fidelity");
            const double divergence = number(&d, fidelity, "kl_divergence_mean");
            char cell[100], wanted[120];
            line = strchr(line, '\n') + 1;
            for (int i = 0; i < 6; i++) {
                const double value = number(&d, fidelity, numbers[i].key);
                CHECK_NEAR(strtod(cell_of(line, numbers[i].cell, cell), NULL), value, 0.06 * fabs(value));
                snprintf(wanted, sizeof wanted, "<td>%s<", cell);
                CHECK(strstr(section, wanted));
            }
            cell_of(line, 1, cell);
            if (divergence > 0 && divergence < least) { least = divergence; snprintf(near, sizeof near, "%s", cell); }
            if (divergence > most) { most = divergence; snprintf(far, sizeof far, "%s", cell); }
        }
        for (int where = 0; where < 2; where++) {
            const char *closest = strstr(where ? page : text, "closest to few_imgsizetier-low"), *farthest = closest ? strstr(closest, "; farthest: ") : NULL,
                       *at = farthest ? strstr(closest, near) : NULL;
            CHECK(at && at < farthest && strstr(farthest, far) && strstr(farthest, far) < strchr(farthest, '\n'));
        }
        free(d.nodes);
    }
    FREE_ALL(page, text);
}
static void test_without_answers(void) {
    document d;
    check_case("without reference answers the agreement is the axis of fronts, `best` and `compare`");
    CHECK_INT(cli("report %F/sweep"), 0);
    CHECK(last.out && strstr(last.out, "accuracy by top1_agreement") && strstr(last.out, "agreement with few_imgsizetier-low"));
    if (cli_json("best %F/sweep --budget_ms 100000 --json", 0, &d)) {
        CHECK_NEAR(number(&d, member(&d, 0, "best"), "accuracy"), 1, 0); /* the baseline agrees with itself completely */
        free(d.nodes);
    }
    CHECK_INT(cli("compare %F/sweep %F/sweep"), 0);
    if (cli_json("compare %F/sweep %F/gone --json --force noise device", last.code, &d)) free(d.nodes);
    CHECK(last.out && strstr(last.out, "\"of\": \"top1_agreement\"") && strstr(last.out, "\"of\": \"kl_divergence_mean\"")
          && !strstr(last.out, "\"of\": \"accuracy\""));
}

/* --------------------------------------------------------------------------------------------------------------- servers */
static hostile_server server;
/* Model a answers "red cat", b "red dog"; c answers "red cat" and rejects lists; d gives lists with one token that is not in the answer. */
static void answer(const char *headers, const char *body, char *reply, size_t capacity) {
    const int is_b = strstr(body, "\"b\"") != NULL, is_c = strstr(body, "\"c\"") != NULL;
    const int wants = strstr(body, "top_logprobs") != NULL;
    char text[3000], lists[2000] = "";
    const char *status = is_c && wants ? "400 Bad Request" : "200 OK";
    if (strstr(headers, "GET ")) {
        snprintf(text, sizeof text, "{\"data\":[{\"id\":\"a\"}]}");
        snprintf(reply, capacity, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(text), text);
        return;
    }
    if (wants)
        snprintf(lists, sizeof lists,
                 ",\"logprobs\":{\"content\":[{\"token\":\"red\",\"logprob\":%.6f,\"top_logprobs\":[{\"token\":\"red\",\"logprob\":%.6f},"
                 "{\"token\":\"blue\",\"logprob\":%.6f}]},{\"token\":\"%s\",\"logprob\":%.6f,\"top_logprobs\":[{\"token\":\"%s\",\"logprob\":%.6f},"
                 "{\"token\":\"%s\",\"logprob\":%.6f}]}]}",
                 is_b ? log(0.6) : log(0.7), is_b ? log(0.6) : log(0.7), is_b ? log(0.3) : log(0.2), is_b ? " dog" : " cat", log(0.51),
                 is_b ? " dog" : " cat", log(0.51), is_b ? " cat" : " dog", log(0.48));
    snprintf(text, sizeof text,
             "{\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"red%s\"},\"finish_reason\":\"stop\"%s}],"
             "\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}", is_b ? " dog" : " cat", lists);
    snprintf(reply, capacity, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status, strlen(text), text);
}
static void test_servers(void) {
    static const hostile_step call[] = {{HOSTILE_CALL, NULL, 0}, {HOSTILE_KEEP, NULL, 0}};
    static const hostile_reply replies[] = {call};
    /* first token: both lists contain both tokens, and the other tokens count as one; second token: 0.51 and 0.48 are swapped */
    const double first = 0.7 * log(0.7 / 0.6) + 0.2 * log(0.2 / 0.3) + 0.1 * log(0.1 / 0.1),
                 second = 0.51 * log(0.51 / 0.48) + 0.48 * log(0.48 / 0.51) + 0;
    char command[1000];
    document d;
    check_case("servers: lists of likely tokens give bounds up to the first difference; without lists, only texts are compared");
    hostile_start(&server, replies, 1);
    server.call = answer;
    snprintf(command, sizeof command, "sweep --endpoint http://127.0.0.1:%d --endpoint_model a b c --data %%F/few.jsonl --num_samples 2 --num_runs_per_sample 1 "
             "--max_new_tokens 16 --output_dir %%F/served --quiet --baseline first", server.port);
    CHECK_INT(cli(command), 0);
    for (int k = 0; k < 3; k++) {
        char path[800] = "";
        FILE *list = popen((snprintf(command, sizeof command, "ls %s/few_imgsizeasis_%c-*.json", in_folder("served"), 'a' + k), command), "r");
        if (!CHECK(list && fgets(path, sizeof path, list))) { if (list) pclose(list); continue; }
        pclose(list);
        path[strcspn(path, "\n")] = 0;
        if (!CHECK(load(&d, path))) continue;
        CHECK_NEAR(number(&d, 0, "answer_agreement"), k != 1, 0);
        if (k == 1) {
            CHECK_NEAR(number(&d, 0, "kl_divergence_mean"), (first + second) / 2, 1e-5);
            CHECK(number(&d, 0, "kl_divergence_mean_at_most") > (first + second) / 2);
            CHECK_NEAR(number(&d, 0, "first_difference_index"), 1, 0);
            CHECK_NEAR(number(&d, 0, "first_difference_baseline_margin"), log(0.51 / 0.48), 1e-5);
            CHECK_NEAR(number(&d, 0, "top1_agreement"), 0.5, 1e-12);
            CHECK_NEAR(number(&d, 0, "num_ties"), 2, 0);
        } else if (k == 2) {
            CHECK(is_null(&d, 0, "kl_divergence_mean") && is_null(&d, 0, "top1_agreement") && !is_null(&d, 0, "fidelity_reason"));
        } else CHECK_NEAR(number(&d, 0, "kl_divergence_mean"), 0, 1e-6);
        unload(&d);
    }
    hostile_stop(&server);
}

int main(void) {
    if (!command_begin("fidelity")) return 1;
    RUN_TESTS(test_divergence, test_bounds, test_differences, test_along_the_answer, test_choices, test_tables, test_without_answers, test_servers);
    return command_end("test_fidelity");
}
