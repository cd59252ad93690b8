/* fuzz_dataset.c: libFuzzer target for data sets: the bytes are a JSONL file, VQA v2's questions with or without annotations, or lines of
 * tokenize --jsonl, taken by the command's own reading code. Whatever they are, a load ends with samples whose parts are there, or with a message;
 * and of a file that changed since then each sample is what was planned, or refused.
 * make fuzz */
#include "fuzz.h"
#include "cli/commands/command_tokenize.c"
#include "commands/settings.h"
#include "data/dataset.h"

/* Two folders: both have the questions under their official name, the second one their annotations too. The names lead to files in memory. */
static char folders[2][300];
static char *questions_paths[2], *annotations_path;
static struct memory_file questions, annotations;
static struct model tiny;

static void clean(void) {
    unlink(questions_paths[0]);
    unlink(questions_paths[1]);
    unlink(annotations_path);
    rmdir(folders[0]);
    rmdir(folders[1]);
}
static void prepare(void) {
    memory_file_fill(&questions, "", 0);
    memory_file_fill(&annotations, "", 0);
    for (int i = 0; i < 2; i++) {
        MUST(temporary_folder("fuzz", folders[i], sizeof folders[i]));
        questions_paths[i] = join_path(folders[i], "v2_OpenEnded_mscoco_val2014_questions.json");
        MUST(symlink(questions.path, questions_paths[i]) == 0);
    }
    annotations_path = join_path(folders[1], "v2_mscoco_val2014_annotations.json");
    MUST(symlink(annotations.path, annotations_path) == 0);
    tiny.name = "tiny";
    MUST(model_load_preset(&tiny) == 0);
    atexit(clean);
}

static void check_entries(const struct dataset *d) {
    MUST(d->new_tokens > 0 && d->task);
    for (size_t i = 0; i < d->count; i++) {
        struct sample a;
        MUST(dataset_sample(d, &tiny, i, &a) == 0); /* no one changed the files */
        MUST(a.record && a.prompt && a.question && a.tokens.ids && a.tokens.count > 0 && a.tokens.count == d->samples[i].text_count);
        MUST(a.id == d->samples[i].id && (!i || a.id > d->samples[i - 1].id));
        MUST((a.reason != NULL) == (d->samples[i].reason > 0) && (a.reason || a.images.count == (size_t)d->samples[i].image_count));
        MUST(vp_utf8_valid_bytes(a.prompt, strlen(a.prompt)) == strlen(a.prompt));
        MUST(vp_json_parse(a.record, strlen(a.record), NULL, 0, NULL, NULL, NULL) == VP_ERR_CAPACITY);
        sample_free(&a);
    }
}
/* other bytes at the same places: each sample is what was planned, or refused */
static void check_changed(const struct dataset *d, const uint8_t *data, size_t bytes) {
    char *other = copy_text((const char *)data, bytes);
    for (size_t i = bytes / 3; i < bytes; i += 5) other[i] ^= 1;
    memory_file_fill(&questions, other, bytes - bytes / 7);
    for (size_t i = 0; i < d->count; i++) {
        struct sample a;
        if (dataset_sample(d, &tiny, i, &a) == 0) MUST(a.tokens.count == d->samples[i].text_count);
        else MUST(!a.record && !a.prompt && !a.tokens.ids);
        sample_free(&a);
    }
    free(other);
}
/* the first byte picks options; the second file, if any, begins after the first 0xFF */
static void load(const uint8_t *data, size_t bytes, int choice) {
    const char *words[] = {"vlmprof", "sweep", "--synthetic", "tiny", "--num_samples", choice & 1 ? "2" : "1000", "--stratify_by", "answer_type"};
    const uint8_t *second;
    size_t second_bytes, first_bytes = fuzz_split(data, bytes, &second, &second_bytes);
    struct options o = {0};
    struct dataset d = {0};
    o.command = &command_sweep;
    MUST(options_parse(&o, choice & 2 ? 8 : 6, (char **)(size_t)words) == 0);
    memory_file_fill(&questions, data, first_bytes);
    if (second) memory_file_fill(&annotations, second, second_bytes);
    d.path = questions_paths[second != NULL];
    const struct data_settings settings = data_settings_of(&o);
    if (dataset_load(&settings, &tiny, &d) == 0) {
        check_entries(&d);
        check_changed(&d, data, first_bytes);
    }
    dataset_free(&d);
    options_free(&o);
}
static void lines(const uint8_t *data, size_t bytes) {
    struct tokenize_job job = {0};
    char *text = copy_text((const char *)data, bytes), *line = text, *end;
    job.tokenizer = tiny.tokenizer;
    for (int64_t number = 1; line < text + bytes; line = end + 1, number++) {
        end = (char *)memchr(line, '\n', (size_t)(text + bytes - line));
        if (!end) end = text + bytes;
        *end = 0;
        job.out.bytes = 0;
        if (jsonl_line(&job, line, (size_t)(end - line), number) == 0 && job.out.bytes) /* one object, one line */
            MUST(memchr(job.out.data, '\n', job.out.bytes) == job.out.data + job.out.bytes - 1
                 && vp_json_parse(job.out.data, job.out.bytes - 1, NULL, 0, NULL, NULL, NULL) == VP_ERR_CAPACITY);
    }
    free(text);
    free(job.out.data);
    free(job.ids.data);
    free(job.text.data);
    free(job.record.nodes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    if (!bytes) return 0;
    fuzz_silence();
    if (!questions_paths[0]) prepare();
    if (data[0] & 4) lines(data + 1, bytes - 1);
    else load(data + 1, bytes - 1, data[0]);
    return 0;
}
