/* baseline.c: sweep --baseline: the baseline that each configuration of a data set is compared with. */
#include "sweep/baseline.h"

#include "base/console.h"
#include "base/files.h"
#include "base/json.h"
#include "vlmprof_file.h"

#include <unistd.h>

/* ---- earlier results */
COMPARE_BY(by_id, struct old_answer, id)
/* Returns 1 if the row has an answer, and sets *answer to it. */
static int has_read_answer(const vp_json *json, uint32_t row, int64_t vocabulary, struct old_answer *answer) {
    const uint32_t ids = vp_json_get(json, row, "output_token_ids"), pred = vp_json_get(json, row, "pred");
    memset(answer, 0, sizeof *answer);
    answer->id = node_int(json, row, "sample_id", -1);
    if (answer->id < 0 || !node_is(json, pred, VP_JSON_STRING)) return 0;
    vp_json_text(json, pred, NULL, 0, &answer->bytes);
    answer->text = resize(NULL, answer->bytes + 1, 1);
    vp_json_text(json, pred, answer->text, answer->bytes + 1, NULL);
    if (!node_is(json, ids, VP_JSON_ARRAY)) return 1;
    answer->tokens = resize(NULL, (size_t)json->nodes[ids].count + 1, sizeof *answer->tokens);
    for (uint32_t i = ids + 1; i < json->nodes[ids].end; i = json->nodes[i].end) {
        int64_t id;
        if (vp_json_to_int(json, i, &id) != VP_OK || id < 0 || id >= vocabulary) {
            answer->count = 0; /* ids of another vocabulary: only the text is usable */
            break;
        }
        answer->tokens[answer->count++] = (int32_t)id;
    }
    return 1;
}
static void read_answers(struct baseline_of *of, const vp_json *json, int64_t vocabulary) {
    const uint32_t rows = vp_json_get(json, 0, "per_sample_results");
    of->answers = zeroed((size_t)json->nodes[rows].count + 1, sizeof *of->answers);
    for (uint32_t i = rows + 1; i < json->nodes[rows].end; i = json->nodes[i].end)
        of->count += (size_t)has_read_answer(json, i, vocabulary, &of->answers[of->count]);
    if (of->count) qsort(of->answers, of->count, sizeof *of->answers, by_id);
}
/* Returns 1 if the file has the same samples and the same answer length. */
static int is_of_set(const vp_json *json, const struct dataset *set) {
    char hash[24];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)set->hash);
    return node_is(json, vp_json_get(json, 0, "per_sample_results"), VP_JSON_ARRAY)
           && vp_json_equals(json, vp_json_get(json, 0, "data_hash"), hash)
           && node_int(json, 0, "max_new_tokens", -1) == set->new_tokens;
}
/* Reads a file if it is a result for the data set. *found counts such files. */
static int try_file(const char *path, const struct dataset *set, int64_t vocabulary, struct baseline_of *of,
                    int *found) {
    struct parsed parsed = {{NULL, NULL, 0}, NULL, 0};
    vp_error error = {VP_OK, -1, "", ""};
    char *text = NULL;
    size_t bytes = 0;
    vp_result result = vp_file_read(path, INT64_C(1) << 30, &text, &bytes, &error);
    if (result == VP_OK) result = parse_json(&parsed, text, bytes, &error);
    if (result == VP_OK && is_of_set(&parsed.json, set) && !(*found)++) {
        of->path = copy_text(path, strlen(path));
        read_answers(of, &parsed.json, vocabulary);
    }
    FREE_ALL(parsed.nodes, text);
    return result == VP_OK ? 0 : complain_result(EXIT_INPUT, path, result, &error);
}
static int read_old(const char *where, const struct dataset *set, int64_t vocabulary, struct baseline_of *of) {
    struct text_list names = {NULL, 0};
    int code = 0, found = 0;
    if (!is_folder(where)) code = try_file(where, set, vocabulary, of, &found);
    else code = names_of_folder(where, &names);
    for (size_t i = 0; i < names.count && !code; i++) {
        const char *end = strrchr(names.items[i], '.');
        if (names.items[i][0] == '.' || !strstr(names.items[i], "_imgsize") || !end || strcmp(end, ".json") != 0)
            continue;
        char *path = join_path(where, names.items[i]);
        code = try_file(path, set, vocabulary, of, &found);
        free(path);
    }
    text_list_free(&names);
    if (code || found == 1) return code;
    if (found)
        return complain(EXIT_USAGE, "--baseline %s: %d files have the samples of %s; name one of them", where, found,
                        set->task);
    return complain(EXIT_INPUT, "--baseline %s: no result file has the samples of %s with at most %d new tokens: use "
                                "the same --data, --num_samples, --seed and --max_new_tokens",
                    where, set->task, set->new_tokens);
}

/* ---- the choice */
static int is_named(const char *file_name, const char *name) {
    const size_t bytes = strlen(name);
    return !strncmp(file_name, name, bytes) && (!file_name[bytes] || !strcmp(file_name + bytes, ".json"));
}
/* A name refers to one data set or, without the data set's name, to each of them. */
static const struct configuration *find_configuration(const struct plan *plan, size_t set, const char *name) {
    for (size_t i = 0; i < plan->configuration_count; i++) {
        const struct configuration *configuration = &plan->configurations[i];
        const char *knobs = strstr(configuration->file_name, "imgsize");
        if (configuration->set != &plan->sets[set]) continue;
        if (!strcmp(name, "first") || is_named(configuration->file_name, name) || (knobs && is_named(knobs, name)))
            return configuration;
    }
    return NULL;
}
static int unknown_baseline(const struct plan *plan, const char *name) {
    struct text_buffer names = {NULL, 0, 0};
    for (size_t i = 0; i < plan->configuration_count && i < 6; i++) {
        const char *file_name = plan->configurations[i].file_name;
        text_add_string(&names, i ? ", " : "");
        text_add(&names, file_name, strlen(file_name) - 5); /* without .json */
    }
    text_add_string(&names, plan->configuration_count > 6 ? ", ..." : "");
    int code =
        complain(EXIT_USAGE, "--baseline %s: not a file and not a configuration of this grid: %s", name, names.data);
    free(names.data);
    return code;
}
/* Uses the knobs, not the file's name: a tier's name has the mean of its crops. */
static uint64_t hash_choice(uint64_t hash, const struct baseline_of *of) {
    struct text_buffer text = {NULL, 0, 0};
    vp_json_writer writer;
    if (!of->configuration) {
        for (size_t i = 0; i < of->count; i++) {
            const struct old_answer *answer = &of->answers[i];
            hash = hash_bytes(hash_number(hash, answer->id), answer->text, answer->bytes);
            for (int32_t k = 0; k < answer->count; k++) hash = hash_number(hash, answer->tokens[k]);
        }
        return hash;
    }
    vp_json_writer_init_sink(&writer, text_sink, &text, 0);
    vp_json_begin_object(&writer);
    knob_put_journal(&writer, &of->configuration->knobs);
    vp_json_end_object(&writer);
    if (vp_json_finish(&writer) == VP_OK) hash = hash_bytes(hash, text.data, text.bytes);
    free(text.data);
    return hash;
}
int baseline_open(struct baseline *baseline, const char *name, const struct model *model, struct plan *plan) {
    uint64_t hash = hash_text(plan->fingerprint, "baseline");
    int code = 0;
    if (!name) return 0;
    baseline->width = model ? (size_t)model->config.embedding_size : 0;
    baseline->of = zeroed(plan->set_count, sizeof *baseline->of);
    baseline->set_count = plan->set_count;
    for (size_t i = 0; i < plan->set_count && !code; i++) {
        struct baseline_of *of = &baseline->of[i];
        of->configuration = find_configuration(plan, i, name);
        if (!of->configuration && strcmp(name, "first") != 0)
            code = !access(name, R_OK) ? read_old(name, &plan->sets[i], (int64_t)baseline->width, of)
                                       : unknown_baseline(plan, name);
        if (!code) hash = hash_choice(hash, of);
    }
    plan->fingerprint = hash;
    return code;
}
void baseline_close(struct baseline *baseline) {
    baseline_forget(baseline);
    for (size_t i = 0; i < baseline->set_count; i++) {
        struct baseline_of *of = &baseline->of[i];
        for (size_t k = 0; k < of->count; k++) { FREE_ALL(of->answers[k].tokens, of->answers[k].text); }
        FREE_ALL(of->answers, of->path);
    }
    FREE_ALL(baseline->of, baseline->tokens.data, baseline->logits.data, baseline->row.data);
}
const char *baseline_name(const struct baseline *baseline, size_t set) {
    const struct baseline_of *of = &baseline->of[set];
    return of->configuration ? of->configuration->file_name : of->path;
}

/* ---- the answer to a sample */
void baseline_forget(struct baseline *baseline) {
    free(baseline->reason);
    served_answer_free(&baseline->said);
    baseline->reason = NULL;
    baseline->token_count = baseline->logit_rows = baseline->is_made = 0;
}
void baseline_lacks(struct baseline *baseline, const char *reason) {
    struct text_buffer text = {NULL, 0, 0};
    free(baseline->reason);
    text_add_string(&text, "the baseline has no answer: ");
    text_add_string(&text, reason);
    baseline->reason = text.data;
    baseline->is_made = 1;
}
void baseline_take_old(struct baseline *baseline, size_t set, int64_t sample_id) {
    const struct baseline_of *of = &baseline->of[set];
    const struct old_answer *answer = of->answers;
    while (answer < of->answers + of->count && answer->id != sample_id) answer++;
    if (answer == of->answers + of->count) {
        baseline_lacks(baseline, "it is not in the file");
        return;
    }
    baseline->is_made = 1;
    baseline->token_count = answer->count;
    if (answer->count)
        memcpy(reserve(&baseline->tokens, (size_t)answer->count, sizeof(int32_t)), answer->tokens,
               (size_t)answer->count * sizeof(int32_t));
    baseline->said.text = copy_text(answer->text, answer->bytes);
    baseline->said.bytes = answer->bytes;
}
static void keep_logits(void *with, int32_t step, const float *logits) {
    struct baseline *baseline = (struct baseline *)with;
    const size_t width = baseline->width, needed = ((size_t)step + 1) * width * sizeof *logits;
    if (baseline->logits.bytes < needed) { /* doubled, so that data are rarely moved */
        baseline->logits.bytes = needed * 2;
        baseline->logits.data = resize(baseline->logits.data, baseline->logits.bytes, 1);
    }
    memcpy((float *)baseline->logits.data + (size_t)step * width, logits, width * sizeof *logits);
    baseline->logit_rows = step + 1;
}
static void see_logits(struct baseline *baseline, struct pass_input *input, vp_dump *dump) {
    memset(dump, 0, sizeof *dump);
    dump->logits = reserve(&baseline->row, baseline->width, sizeof *dump->logits);
    input->engine.dump = dump;
    input->engine.timing = VP_TIMING_OFF;
}
void baseline_answer(struct baseline *baseline, struct pass_input *input, vp_dump *dump) {
    see_logits(baseline, input, dump);
    dump->on_logits = keep_logits;
    dump->with = baseline;
}
void baseline_keep(struct baseline *baseline, const struct pass_result *run) {
    baseline->is_made = 1;
    baseline->token_count = run->reply.token_count;
    memcpy(reserve(&baseline->tokens, (size_t)run->reply.token_count, sizeof *run->reply.tokens), run->reply.tokens,
           (size_t)run->reply.token_count * sizeof *run->reply.tokens);
}
void baseline_follow(struct baseline *baseline, struct pass_input *input, vp_dump *dump, struct fidelity_pass *pass,
                     struct fidelity *fidelity) {
    see_logits(baseline, input, dump);
    *pass = (struct fidelity_pass){baseline->logit_rows ? (const float *)baseline->logits.data : NULL,
                                   (const int32_t *)baseline->tokens.data, baseline->token_count, baseline->width,
                                   fidelity};
    dump->on_logits = fidelity_step;
    dump->with = pass;
    input->engine.max_new_tokens = baseline->token_count;
    input->engine.forced_tokens = pass->answer;
}
