/* describe.c: what a loaded data set contains, for sweep --plan. The samples were read when it was loaded, as a sweep
 * reads them; only the shown ones are read again. */
#include "data/dataset.h"

#include "base/console.h"

enum { PROMPT_SHOWN = 400 };
static const char *const FORMATS[] = {"JSONL", "VQA v2", "folder of images"};

/* What both forms print. `bad`: the first sample whose images cannot be used; `shown`: the first that can be used.
 * Their counts are 0 and their texts NULL if there is none. */
struct described { size_t unusable, images; struct sample bad, shown; };
static void described_free(struct described *all) {
    sample_free(&all->bad);
    sample_free(&all->shown);
}
static int describe(const struct dataset *dataset, const struct model *model, struct described *all) {
    size_t shown = dataset->count, bad = dataset->count;
    int code = 0;
    memset(all, 0, sizeof *all);
    for (size_t i = dataset->count; i-- > 0;) {
        const struct entry *entry = &dataset->samples[i];
        all->unusable += entry->reason > 0;
        all->images += (size_t)entry->image_count;
        if (entry->reason) bad = i;
        else shown = i;
    }
    if (bad < dataset->count) code = dataset_sample(dataset, model, bad, &all->bad);
    if (!code && shown < dataset->count) code = dataset_sample(dataset, model, shown, &all->shown);
    return code;
}
/* A prompt on one line: the newlines as \n, cut after PROMPT_SHOWN bytes. Servers get their images at `places`. */
static void add_prompt(struct text_buffer *out, const struct sample *sample, int is_server) {
    const char *text = sample->prompt;
    size_t image = 0, bytes = strlen(text);
    const size_t end = bytes > PROMPT_SHOWN ? vp_utf8_valid_bytes(text, PROMPT_SHOWN) : bytes;
    for (size_t i = 0; i <= end; i++) {
        while (is_server && image < sample->images.count && (sample->places ? sample->places[image] : 0) == i) {
            text_add_string(out, "<image>");
            image++;
        }
        if (i < end && text[i] == '\n') text_add_string(out, "\\n");
        else if (i < end) text_add(out, text + i, 1);
    }
    if (end < bytes) text_add_format(out, ".. (%zu bytes)", bytes);
}
static void print_answers(const struct dataset *dataset) {
    if (!dataset->answered) {
        print_plain("            no answers, so nothing is scored (the keys are \"answers\", or \"options\" and "
                    "\"answer\")\n");
        return;
    }
    print_plain("            answers of %zu of %zu sample%s", dataset->answered, dataset->count,
                plural_s((int64_t)dataset->count));
    if (dataset->most_answers && dataset->least_answers == dataset->most_answers)
        print_plain(", %zu each", dataset->most_answers);
    else if (dataset->most_answers) print_plain(", %zu to %zu each", dataset->least_answers, dataset->most_answers);
    print_plain("; metric %s (%s)\n", vp_score_metric_of(dataset->metric)->name, dataset->metric_from);
}
int dataset_print(const struct dataset *dataset, const struct model *model) {
    struct described all;
    struct text_buffer prompt = {NULL, 0, 0};
    int code = describe(dataset, model, &all);
    if (code) {
        described_free(&all);
        return code;
    }
    print_plain("data        %s: %zu sample%s", dataset->task, dataset->count, plural_s((int64_t)dataset->count));
    if (dataset->record_count > dataset->count) print_plain(" of %zu", dataset->record_count);
    print_plain(" of %s (%s%s%s), %zu image%s, at most %d new tokens\n", dataset->path, FORMATS[dataset->kind],
                dataset->notes_path ? " with " : "", dataset->notes_path ? dataset->notes_path : "", all.images,
                plural_s((int64_t)all.images), dataset->new_tokens);
    if (all.unusable)
        print_plain("            %zu sample%s cannot be used; the first: %.400s\n", all.unusable,
                    plural_s((int64_t)all.unusable), all.bad.reason);
    print_answers(dataset);
    if (dataset->kind == KIND_VQA && !dataset->notes_path)
        print_plain("            no annotations next to the questions file: --annotations FILE gives the answers\n");
    if (all.shown.prompt) {
        add_prompt(&prompt, &all.shown, !model);
        print_plain("            a prompt (sample %lld, %zu image%s): \"%s\"\n", (long long)all.shown.id,
                    all.shown.images.count, plural_s((int64_t)all.shown.images.count), prompt.data);
    }
    free(prompt.data);
    described_free(&all);
    return 0;
}
int dataset_put(vp_json_writer *writer, const struct dataset *dataset, const struct model *model) {
    struct described all;
    int code = describe(dataset, model, &all);
    PUT(writer, KEY_OBJECT(NULL), KEY("dataset_name", dataset->task), KEY("path", dataset->path),
        KEY("format", FORMATS[dataset->kind]), KEY("annotations", dataset->notes_path),
        KEY("num_records", dataset->record_count), KEY("num_samples", dataset->count), KEY("num_images", all.images),
        KEY("num_unusable_images", all.unusable), KEY("first_unusable", all.bad.reason),
        KEY("num_answered", dataset->answered), KEY("accuracy_metric", vp_score_metric_of(dataset->metric)->name),
        KEY("accuracy_metric_from", dataset->metric_from), KEY("max_new_tokens", dataset->new_tokens));
    put_text(writer, "prompt", all.shown.prompt);
    vp_json_end_object(writer);
    described_free(&all);
    return code;
}
