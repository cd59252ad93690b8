/* bench_dataset.c: time and memory of planning and resuming. JSONL of 100,000 rows of 0.2 to 2 KB without images: sweep --plan of 1,000, 10,000
 * and all of them, in 1 and in 9 configurations. Question and annotation files of VQA v2's validation size (214,354 questions, made up, 190 MB):
 * 1,000 samples and all of them, whose pictures end after their size, so that each point is a failed row and what is measured is the reading; then again, when
 * all points are in the journal. Files are in a temporary folder.
 * Runs $PROGRAM (default ./vlmprof). Build: cc -O2 tests/bench/bench_dataset.c */
#define _DEFAULT_SOURCE 1
#include "../support/temporary.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { QUESTIONS = 214354, ROWS = 100000 };
static char folder[300];

static FILE *create(const char *name) {
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f) { perror(path); exit(1); }
    return f;
}
/* a PNG's first 33 bytes: a size, but nothing to decode, so that only the data set costs time */
static void make_picture(int id) {
    static const char head[] = "\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\002\200\0\0\001\340\010\002\0\0\0\272\263\113\263";
    char name[100];
    snprintf(name, sizeof name, "val2014/COCO_val2014_%012d.jpg", id);
    FILE *f = create(name);
    if (fwrite(head, sizeof head - 1, 1, f) != 1 || fclose(f)) { perror(name); exit(1); }
}
static void make_rows(void) {
    static const int pads[] = {60, 100, 400, 900, 1800};
    FILE *f = create("rows.jsonl");
    for (int i = 0; i < ROWS; i++)
        fprintf(f, "{\"id\": \"r%d\", \"question\": \"What stands beside number %d of the red umbrellas?\", \"answers\": [\"a bus\"], \"context\": \"%0*d\"}\n", i, i,
                pads[i * 7 % 5], i);
    if (fclose(f)) { perror(folder); exit(1); }
}
static void make_files(void) {
    static const char *const answers[] = {"yes", "no", "2", "red", "on the street"}, *const types[] = {"yes/no", "yes/no", "number", "other", "other"};
    char pictures[400];
    snprintf(pictures, sizeof pictures, "%s/val2014", folder);
    if (mkdir(pictures, 0700)) { perror(pictures); exit(1); }
    FILE *q = create("v2_OpenEnded_mscoco_val2014_questions.json"), *a = create("v2_mscoco_val2014_annotations.json");
    fprintf(q, "{\"data_subtype\": \"val2014\", \"questions\": [");
    fprintf(a, "{\"data_subtype\": \"val2014\", \"annotations\": [");
    for (int i = 0; i < QUESTIONS; i++) {
        const int image = 42 + i / 5 * 2, kind = i * 7 % 5;
        if (i % 5 == 0) make_picture(image);
        fprintf(q, "%s{\"image_id\": %d, \"question\": \"Is there a large number %d on the red umbrella?\", \"question_id\": %d}", i ? ", " : "", image, i,
                image * 1000 + i % 5);
        fprintf(a, "%s{\"question_type\": \"is there a\", \"multiple_choice_answer\": \"%s\", \"answers\": [", i ? ", " : "", answers[kind]);
        for (int k = 0; k < 10; k++)
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
/* want: the exit code; 1: all points failed, as they must, for no picture can be decoded */
static int bench(const char *name, int want, const char *file, const char *samples, const char *const *more) {
    const char *program = getenv("PROGRAM") ? getenv("PROGRAM") : "./vlmprof", *args[40];
    char data[400], out[400];
    struct rusage use;
    double start = seconds_now();
    int status = 0, count = 0;
    snprintf(data, sizeof data, "%s/%s", folder, file);
    snprintf(out, sizeof out, "%s/out-%s", folder, samples);
    args[count++] = program; args[count++] = "sweep"; args[count++] = "--synthetic"; args[count++] = "tiny"; args[count++] = "--data";
    args[count++] = data; args[count++] = "--output_dir"; args[count++] = out; args[count++] = "--num_runs_per_sample"; args[count++] = "1";
    args[count++] = "--num_samples"; args[count++] = samples;
    while (*more) args[count++] = *more++;
    args[count] = NULL;
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr) || !freopen("/dev/null", "w", stdout)) _exit(127);
        execv(program, (char *const *)(size_t)args);
        _exit(127);
    }
    if (wait4(child, &status, 0, &use) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != want) {
        printf("%s: %s did not run: status %d\n", name, program, status);
        return 1;
    }
    printf("%-56s %6.2f s, %6.1f MB at most\n", name, seconds_now() - start, (double)use.ru_maxrss * 1024 / 1e6);
    fflush(stdout);
    return 0;
}

int main(void) {
#define ONE "--tier_list", "low", "--top_k_list", "1"
    static const char *const one[] = {ONE, NULL}, *const plan_one[] = {ONE, "--plan", NULL}, *const strata[] = {ONE, "--stratify_by", "answer_type", NULL},
                      *const plan_nine[] = {"--top_k_list", "1", "2", "4", "--plan", NULL};
    static const char vqa[] = "v2_OpenEnded_mscoco_val2014_questions.json";
    char command[400];
    if (!temporary_folder("bench", folder, sizeof folder)) return 1;
    make_rows();
    make_files();
    int failed = bench("JSONL, plan of 1,000 samples, 1 configuration", 0, "rows.jsonl", "1000", plan_one);
    failed |= bench("JSONL, plan of 10,000 samples, 1 configuration", 0, "rows.jsonl", "10000", plan_one);
    failed |= bench("JSONL, plan of 100,000 samples, 1 configuration", 0, "rows.jsonl", "100000", plan_one);
    failed |= bench("JSONL, plan of 1,000 samples, 9 configurations", 0, "rows.jsonl", "1000", plan_nine);
    failed |= bench("JSONL, plan of 100,000 samples, 9 configurations", 0, "rows.jsonl", "100000", plan_nine);
    failed |= bench("VQA v2 val, plan of all 214,354 samples", 0, vqa, "214354", plan_one);
    failed |= bench("VQA v2 val, 1,000 samples by answer_type and their rows", 1, vqa, "1000", strata);
    failed |= bench("VQA v2 val, all samples and their rows", 1, vqa, "214354", one);
    failed |= bench("VQA v2 val, all samples again: they are in the journal", 1, vqa, "214354", one);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) != 0 || failed;
}
