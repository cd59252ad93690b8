/* bench_dataset.c: time and memory of a sweep over question and annotation files of VQA v2's validation size (214,354 questions, made up, 190 MB in
 * a temporary folder), 1000 samples and all of them. The images are missing, so that each point is a failed row: what is measured is the reading.
 * Runs $PROGRAM (default ./vlmprof). Build: cc -O2 tests/bench/bench_dataset.c */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { QUESTIONS = 214354 };
static char folder[300];

static FILE *create(const char *name) {
    char path[400];
    FILE *f;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "w");
    if (!f) { perror(path); exit(1); }
    return f;
}
static void make_files(void) {
    static const char *const answers[] = {"yes", "no", "2", "red", "on the street"}, *const types[] = {"yes/no", "yes/no", "number", "other", "other"};
    FILE *q = create("v2_OpenEnded_mscoco_val2014_questions.json"), *a = create("v2_mscoco_val2014_annotations.json");
    int i, k;
    fprintf(q, "{\"data_subtype\": \"val2014\", \"questions\": [");
    fprintf(a, "{\"data_subtype\": \"val2014\", \"annotations\": [");
    for (i = 0; i < QUESTIONS; i++) {
        const int image = 42 + i / 5 * 2, kind = i * 7 % 5;
        fprintf(q, "%s{\"image_id\": %d, \"question\": \"Is there a large number %d on the red umbrella?\", \"question_id\": %d}", i ? ", " : "", image, i,
                image * 1000 + i % 5);
        fprintf(a, "%s{\"question_type\": \"is there a\", \"multiple_choice_answer\": \"%s\", \"answers\": [", i ? ", " : "", answers[kind]);
        for (k = 0; k < 10; k++)
            fprintf(a, "%s{\"answer\": \"%s\", \"answer_confidence\": \"yes\", \"answer_id\": %d}", k ? ", " : "", k < 7 ? answers[kind] : "frisbee", k + 1);
        fprintf(a, "], \"image_id\": %d, \"answer_type\": \"%s\", \"question_id\": %d}", image, types[kind], image * 1000 + i % 5);
    }
    fprintf(q, "]}\n");
    fprintf(a, "]}\n");
    if (fclose(q) || fclose(a)) { perror(folder); exit(1); }
}

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static int bench(const char *name, const char *samples, const char *option, const char *value) {
    const char *program = getenv("PROGRAM") ? getenv("PROGRAM") : "./vlmprof";
    char data[400], out[400];
    struct rusage use;
    double start = seconds_now();
    int status = 0;
    pid_t child;
    snprintf(data, sizeof data, "%s/v2_OpenEnded_mscoco_val2014_questions.json", folder);
    snprintf(out, sizeof out, "%s/out-%s-%s", folder, samples, option ? "strata" : "plain");
    child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(127);
        execl(program, program, "sweep", "--synthetic", "tiny", "--data", data, "--output_dir", out, "--tier_list", "low", "--top_k_list", "1",
              "--num_runs_per_sample", "1", "--num_samples", samples, option, value, (char *)NULL);
        _exit(127);
    }
    if (wait4(child, &status, 0, &use) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 1) { /* 1: all points failed, as they must */
        printf("%s: %s did not run: status %d\n", name, program, status);
        return 1;
    }
    printf("%-44s %6.2f s, %6.1f MB at most (%d questions in the files)\n", name, seconds_now() - start, (double)use.ru_maxrss * 1024 / 1e6, QUESTIONS);
    return 0;
}

int main(void) {
    const char *base = getenv("TMPDIR");
    char command[400];
    int failed;
    snprintf(folder, sizeof folder, "%s/vlmprof-bench-XXXXXX", base && strlen(base) < 200 ? base : "/tmp");
    if (!mkdtemp(folder)) { perror(folder); return 1; }
    make_files();
    failed = bench("VQA v2 val, 1000 samples", "1000", NULL, NULL);
    failed |= bench("VQA v2 val, 1000 samples by answer_type", "1000", "--stratify_by", "answer_type");
    failed |= bench("VQA v2 val, all samples and their rows", "214354", NULL, NULL);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) != 0 || failed;
}
