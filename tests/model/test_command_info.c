/* test_command_info.c: the info command: this machine and checkpoints.
 * Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "support/command.h"
#include "support/scan.h"
#include "support/texts.h"
#include "vlmprof.h"

/* ------------------------------------------------------------------------------------------------------- info and selftest */
/* Size in bytes from a line of /proc/meminfo; -1 if the system has none. */
static double told_bytes(const char *key) {
    FILE *file = fopen("/proc/meminfo", "r");
    char line[256];
    double bytes = -1;
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, key, strlen(key))) bytes = 1024 * strtod(line + strlen(key), NULL);
    if (file) fclose(file);
    return bytes;
}
static void test_info(void) {
    document d;
    char command[600];
    struct stat info;
    check_case("info: this machine");
    CHECK_INT(cli("info"), 0);
    CHECK(last.out && strstr(last.out, VLMPROF_VERSION) && strstr(last.out, "\ncpu ") && strstr(last.out, "\nhuge pages  ")
          && strstr(last.out, "plain") && strstr(last.out, "\ngpu ") && !*last.err);
    const char *fp32 = last.out ? strstr(last.out, "\n  fp32 ") : NULL;
    CHECK(fp32 && !strstr(fp32, "avx512bf16 for") && !strstr(fp32, "amx for")); /* these multiply bf16 */
    if (cli_json("info --json", 0, &d)) {
        uint32_t cpu = member(&d, 0, "cpu");
        check_keys(&d, 0, "schema version compiler cuda_toolkit cpu gpus gpus_note gpu_tools model");
        check_keys(&d, cpu, "name threads memory_bytes available_bytes huge_pages gemm gemm_bf16 gemm_fp32");
        check_keys(&d, member(&d, cpu, "gemm_fp32"), "rows_1 rows_8 rows_1024");
        CHECK(is_null(&d, cpu, "huge_pages") == (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0));
        CHECK(is_null(&d, cpu, "huge_pages") || is_text(&d, cpu, "huge_pages", "always") || is_text(&d, cpu, "huge_pages", "madvise") ||
              is_text(&d, cpu, "huge_pages", "never"));
        CHECK(is_text(&d, 0, "version", VLMPROF_VERSION) && is_null(&d, 0, "model"));
        CHECK(number(&d, cpu, "threads") >= 1);
        if (told_bytes("MemTotal:") < 0) CHECK(is_null(&d, cpu, "memory_bytes") && is_null(&d, cpu, "available_bytes"));
        else CHECK_NEAR(number(&d, cpu, "memory_bytes"), told_bytes("MemTotal:"), 0);
        if (told_bytes("MemAvailable:") < 0) CHECK(is_null(&d, cpu, "available_bytes"));
        else CHECK(number(&d, cpu, "available_bytes") > 0 && number(&d, cpu, "available_bytes") <= number(&d, cpu, "memory_bytes"));
        int has_gpu = d.nodes[member(&d, 0, "gpus")].count > 0;
        CHECK(has_gpu == is_null(&d, 0, "gpus_note")); /* GPUs, or the reason why there are none */
        free(d.nodes);
    }
    check_case("info: checkpoints");
    snprintf(command, sizeof command, "info --model %s --json", check_golden("models/tiny-b"));
    if (cli_json(command, 0, &d)) {
        uint32_t m = member(&d, 0, "model");
        uint32_t parameters = member(&d, m, "parameters");
        CHECK_INT(number(&d, m, "tensors"), number(&d, member(&d, m, "dtypes"), "F32") + number(&d, member(&d, m, "dtypes"), "BF16"));
        CHECK(number(&d, member(&d, m, "dtypes"), "F32") > 0 && number(&d, member(&d, m, "dtypes"), "BF16") > 0);
        CHECK_INT(number(&d, parameters, "total"), number(&d, parameters, "vision") + number(&d, parameters, "experts") + number(&d, parameters, "other_llm")
                                                       + number(&d, parameters, "embeddings_and_head"));
        CHECK_INT(number(&d, parameters, "experts"), 3 * 64 * 3 * 256 * 8);               /* blocks, experts, matrices, width, expert width */
        CHECK_INT(number(&d, parameters, "embeddings_and_head"), (704 + 16 + 704) * 256);
        CHECK_INT(number(&d, member(&d, m, "bf16"), "kv_cache_bytes_per_token"), 2 * 2 * 256 * 3);
        CHECK_INT(number(&d, member(&d, m, "fp32"), "weights_bytes"), 4 * number(&d, parameters, "total"));
        CHECK_INT(number(&d, m, "tokenizer_size"), 660); /* from the goldens' README: the largest id is 659 */
        CHECK_INT(number(&d, m, "files"), 2);
        CHECK_INT(number(&d, m, "vit_blocks_needed"), 9);
        free(d.nodes);
    }
    snprintf(command, sizeof command, "%s/model.safetensors", check_golden("models/tiny-a"));
    CHECK_INT(stat(command, &info), 0);
    snprintf(command, sizeof command, "info --model %s --json", check_golden("models/tiny-a"));
    if (cli_json(command, 0, &d)) {
        CHECK_INT(number(&d, member(&d, 0, "model"), "file_bytes"), info.st_size);
        free(d.nodes);
    }
}
/* Info about a model does not depend on the machine: its text and JSON are compared as one text. */
static void test_info_texts(void) {
    static const char *const models[] = {"--synthetic tiny", "--synthetic molmoe-1b", "--model tests/golden/models/tiny-a", "--model tests/golden/models/tiny-b",
                                         "--model samples/tiny/model"};
    kept_text all = {NULL, 0, 0};
    char command[200];
    for (int i = 0; i < 10; i++) {
        snprintf(command, sizeof command, "info %s%s", models[i / 2], i % 2 ? " --json" : "");
        check_case("%s", command);
        CHECK_INT(cli(command), 0);
        const char *from = last.out ? strstr(last.out, i % 2 ? "\n  \"model\": {" : "\nmodel ") : NULL;
        if (!CHECK(from != NULL)) continue;
        kept_add(&all, "$ ", 2);
        kept_add(&all, command, strlen(command));
        kept_add(&all, from, strlen(from));
    }
    check_kept("info-models.txt", all.data ? all.data : "");
    free(all.data);
}

int main(void) {
    if (!command_begin("command_info")) return 1;
    test_info();
    test_info_texts();
    return command_end("test_command_info");
}
