/* test_command_selftest.c: the selftest command.
 * Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "support/command.h"
#include "vlmprof.h"

static void test_selftest(void) {
    document d, machine;
    char command[600], *text;
    size_t bytes = 0;
    int kernels = 0, has_gpu = finds_gpu();
    check_case("selftest: every bf16 GEMM kernel of this processor, and the kernels with fp32 arithmetic");
    if (cli_json("info --json", 0, &machine)) {
        kernels = (int)machine.nodes[member(&machine, member(&machine, 0, "cpu"), "gemm")].count;
        free(machine.nodes);
    }
    if (cli_json("selftest --device cpu --json", 0, &d)) {
        int checks = check_selftest(&d, "cpu");
        CHECK(checks > kernels && checks <= 2 * kernels);
        CHECK(is_text(&d, 0, "cuda_skipped", "not requested"));
        free(d.nodes);
    }
    check_case("selftest: a checkpoint, as text; all available backends");
    CHECK_INT(cli("selftest --model tests/golden/othermodels/llava/checkpoint --threads 2"), 0);
    CHECK(last.out && strstr(last.out, "cpu  fp32 plain") && strstr(last.out, " 0 failed, ") && !strstr(last.out, "FAILED"));
    CHECK(last.out && strstr(last.out, has_gpu ? "cuda fp32" : "cuda: skipped: ") && !strstr(last.out, has_gpu ? "cuda: skipped: " : "cuda fp32"));
    check_case("selftest: models other than Molmo, and models without experts or pictures");
    for (int i = 0; i < 3; i++) {
        static const char *const models[] = {"olmoe", "smolvlm", "internvl"};
        snprintf(command, sizeof command, "selftest --model tests/golden/othermodels/%s/checkpoint --device cpu", models[i]);
        CHECK_INT(cli(command), 0);
        CHECK(last.out && strstr(last.out, " 0 failed, ") && !strstr(last.out, "FAILED") && strstr(last.out, "        -        -") != NULL);
    }
    check_case("selftest: an unusable reference");
    link_model(check_golden("models/tiny-a"), in_folder("model"), "model.safetensors");
    snprintf(command, sizeof command, "%s/model.safetensors", check_golden("models/tiny-a"));
    text = check_read(command, &bytes);
    if (CHECK(text != NULL)) {
        memset(text + bytes / 2, 0xff, bytes / 4); /* NaN */
        write_file(in_folder("model/model.safetensors"), text, bytes);
        REFUSED("selftest --model %F/model", 3, "not numbers");
    }
    free(text);
}

int main(void) {
    if (!command_begin("command_selftest")) return 1;
    test_selftest();
    return command_end("test_command_selftest");
}
