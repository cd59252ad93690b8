/* slow: requests on every kind of emulated device, 15 s */
/* test_devices.c: commands on missing, broken and emulated devices ($B/emulated/vlmprof, tests/emulator/cuda_on_cpu.h). Runs $PROGRAM from
 * the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof.h"
#include "support/command.h"
#include "support/small_sweep.h"
#include "support/scan.h"

/* ------------------------------------------------------------------------------------------------------------------ devices */
static void test_no_device(void) {
    check_case("a missing GPU: exit 4, one line, no files left");
    static const char *const commands[] = {"run -p a --synthetic tiny --device cuda:999", "selftest --device cuda:999",
                                           "sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/x --device cuda:999"};
    for (int i = 0; i < 3; i++) {
        char command[200];
        REFUSED(commands[i], 4, "cuda:999");
        CHECK_INT(last.err_lines, 1);
        snprintf(command, sizeof command, "%.*s", (int)strlen(commands[i]) - 4, commands[i]);
        if (finds_gpu()) continue;
        REFUSED(command, 4, "--device cuda: ");
        CHECK_INT(last.err_lines, 1);
    }
    CHECK(access(in_folder("x"), F_OK) != 0);
}

/* One line and exit 4 if a setting makes the emulated GPU unusable. `auto` uses the CPU and reports why, or fails with the same error. */
static void broken_gpu(const char *name, const char *value, const char *words, int automatic) {
    document d;
    check_case("a GPU with %s=%s", name, value);
    setenv(name, value, 1);
    REFUSED("run -p a --synthetic tiny --max_new_tokens 1 --device cuda", 4, words);
    CHECK_INT(last.err_lines, 1);
    if (automatic) REFUSED("run -p a --synthetic tiny --max_new_tokens 1", automatic, words);
    else {
        if (cli_json("run -p a --synthetic tiny --max_new_tokens 1 --json", 0, &d)) {
            uint32_t from = member(&d, 0, "provenance"), device = member(&d, from, "device");
            CHECK(!strncmp(d.json.text + d.nodes[device].start, "cpu: ", 5) && !is_null(&d, from, "device_note") && is_null(&d, from, "gpu"));
            free(d.nodes);
        }
        CHECK_INT(cli("run -p a --synthetic tiny --max_new_tokens 1"), 0);
        CHECK(last.out && strstr(last.out, "(no CUDA: ") && strstr(last.out, words));
        CHECK_INT(cli("info"), 0);
        CHECK(last.out && strstr(last.out, "\ngpu         none: ") && strstr(last.out, words));
    }
    unsetenv(name);
}

/* Integers give the same logits as on the CPU, after a prompt with a picture and from a cache, until rounding chooses another token. The noise of synthetic weights gives
 * logits of up to 3. A CPU that rounds its factors is 0.04 away, 0.3 if that flips an expert, and other tokens are 2 away. */
static int same_logits(const char *one, const char *other) {
    check_array logits[2], tokens[2];
    char path[64];
    int rows = 0;
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/logits.npy", i ? other : one);
        if (!CHECK(check_npy(in_folder(path), &logits[i]))) return 0;
        snprintf(path, sizeof path, "%s/tokens.npy", i ? other : one);
        if (!CHECK(check_npy(in_folder(path), &tokens[i]))) return 0;
    }
    for (int64_t row = 0, width = logits[0].shape[1]; row < logits[0].shape[0]; row++, rows++) {
        double most = 0.0;
        for (int64_t i = row * width; i < (row + 1) * width; i++) most = fmax(most, fabs(check_at(&logits[0], i) - check_at(&logits[1], i)));
        CHECK_NEAR(most, 0.0, 0.5);
        if (check_at(&tokens[0], row) != check_at(&tokens[1], row)) break;
    }
    for (int i = 0; i < 2; i++) { check_free(&logits[i]); check_free(&tokens[i]); }
    return rows;
}
static void test_integers(void) {
    static const char *const kinds[2] = {"int8", "int4"};
    for (int i = 0, rows = 0; i < 2; i++) {
        check_case("emulated: run --weights %s", kinds[i]);
        for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
            char command[300];
            document d;
            snprintf(command, sizeof command, "run samples/cat.jpg -p 'Count the dogs' --synthetic tiny --tier low --weights %s --head_weights %s "
                     "--vision_weights %s --max_new_tokens 5 --ignore_eos --device %s --dump %%F/%s --json", kinds[i], kinds[!i], kinds[i],
                     on_gpu ? "cuda" : "cpu --activations bf16", on_gpu ? "there" : "here");
            if (!cli_json(command, 0, &d)) continue;
            CHECK(strstr(d.json.text, "\"weights\": \"int") && strstr(d.json.text, "\"head_weights\": \"int"));
            CHECK(strstr(d.json.text, "\"activations_used\": \"bf16\""));
            free(d.nodes);
        }
        rows += same_logits("here", "there");
        if (i) CHECK(rows >= 2); /* some are from a cache */
        remove_folder(in_folder("here"));
        remove_folder(in_folder("there"));
    }
    REFUSED("run -p a --synthetic tiny --weights int8 --activations int8 --device cuda", 2, "a GPU multiplies integer weights by bf16 inputs; expected auto, bf16");
}

/* --gpu library with every kind of weights: the tokens of the first logits are those of the default, except where bf16 cannot tell them apart. */
static void test_library(void) {
    static const char *const weights[] = {"", "--weights int4 --vision_weights int8", "--head_weights int8"};
    for (int i = 0; i < 3; i++) {
        check_case("emulated: run --gpu library %s", weights[i]);
        for (int plain = 0; plain < 2; plain++) {
            char command[300];
            document d;
            snprintf(command, sizeof command, "run samples/cat.jpg -p 'Count the dogs' --synthetic tiny --tier low %s --max_new_tokens 5 --ignore_eos --device cuda %s "
                     "--dump %%F/%s --json", weights[i], plain ? "--gpu library" : "", plain ? "here" : "there");
            if (!cli_json(command, 0, &d)) continue;
            CHECK(!plain || (strstr(d.json.text, "\"gemm_rows_1\": \"cublas (biases: apart; tiles: none)\"") && strstr(d.json.text, "library")));
            free(d.nodes);
        }
        CHECK(same_logits("here", "there") >= 1);
        remove_folder(in_folder("here"));
        remove_folder(in_folder("there"));
    }
    REFUSED("run -p a --synthetic tiny --device cuda --gpu library tuned", 2, "library does not use the kernels that dependent, wgmma and tuned change");
}
/* The message of a failing kernel: what was sent, and what to do. A model without experts never launches a kernel of wgmma. */
static void test_ways_out(void) {
    static const struct { const char *arguments, *blocking, *text, *but; } cases[] = {
        {"tiny", "", "sent since the device was last known to work: copy_to_device .. k_convert; CUDA_LAUNCH_BLOCKING=1 names the kernel; try --gpu library\n", "wgmma"},
        {"tiny-dense", "", ".. k_convert; CUDA_LAUNCH_BLOCKING=1 names the kernel; try --gpu library\n", "wgmma"},
        {"tiny-dense --gpu wgmma dependent", "", ".. k_convert; CUDA_LAUNCH_BLOCKING=1 names the kernel; leave out --gpu dependent\n", "wgmma"},
        {"tiny --gpu wgmma dependent", "", "k_moe_lists .. k_down_wgmma128; CUDA_LAUNCH_BLOCKING=1 names the kernel; leave out --gpu wgmma dependent\n", "library"},
        {"tiny --gpu wgmma", "1", "tiny: k_gate_up_wgmma128: an illegal memory access", "last known"},
        {"tiny --gpu library", "", "CUDA_LAUNCH_BLOCKING=1 names the kernel\n", "--gpu"},
    };
    setenv("CUDA_ON_CPU_CAPABILITY", "9.0", 1);
    setenv("CUDA_ON_CPU_FAIL", "illegal:5", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char command[200];
        check_case("emulated: an illegal access with --synthetic %s%s", cases[i].arguments, *cases[i].blocking ? ", each launch waited for" : "");
        setenv("CUDA_LAUNCH_BLOCKING", cases[i].blocking, 1);
        if (!*cases[i].blocking) unsetenv("CUDA_LAUNCH_BLOCKING");
        snprintf(command, sizeof command, "run -p a --device cuda --synthetic %s", cases[i].arguments);
        CHECK_INT(cli(command), 4);
        CHECK(last.err && strstr(last.err, cases[i].text) && !strstr(last.err, cases[i].but));
    }
    unsetenv("CUDA_LAUNCH_BLOCKING");
    unsetenv("CUDA_ON_CPU_FAIL");
    unsetenv("CUDA_ON_CPU_CAPABILITY");
}

static void test_emulated(void) {
    static char path[300];
    const char *ours = program;
    document d;
    snprintf(path, sizeof path, "%s/emulated/vlmprof", getenv("B") ? getenv("B") : "build");
    if (access(path, X_OK)) { check_skip("the command with an emulated GPU", "it was not built (make test builds it)"); return; }
    program = path;
    setenv("CUDA_ON_CPU_DEVICES", "2", 1);
    check_case("emulated: info lists the GPUs");
    if (cli_json("info --json", 0, &d)) {
        uint32_t gpu = vp_json_at(&d.json, member(&d, 0, "gpus"), 1);
        CHECK_INT(d.nodes[member(&d, 0, "gpus")].count, 2);
        check_keys(&d, gpu, "index name compute_capability multiprocessors memory_bytes free_bytes driver runtime");
        CHECK(number(&d, gpu, "index") == 1 && is_text(&d, gpu, "compute_capability", "8.0") && is_text(&d, gpu, "driver", "13.0"));
        CHECK(!is_null(&d, 0, "cuda_toolkit") && is_null(&d, 0, "gpus_note"));
        free(d.nodes);
    }
    check_case("emulated: auto is the first GPU, cuda:1 the second; cuda:2 does not exist");
    if (cli_json("run -p 'Where is it?' --synthetic tiny --max_new_tokens 3 --ignore_eos --json", 0, &d)) {
        uint32_t from = member(&d, 0, "provenance"), s = member(&d, 0, "stages");
        double sum = number(&d, 0, "unaccounted");
        CHECK(!strncmp(d.json.text + d.nodes[member(&d, from, "device")].start, "cuda:0: ", 8) && is_null(&d, from, "device_note"));
        CHECK(number(&d, member(&d, from, "gpu"), "index") == 0);
        check_stage_detail(&d, 0, number(&d, 0, "total_sequence_length"), 4);
        for (int i = 0; i < 10; i++) if (i != 2 && i != 3) sum += number(&d, s, stages[i]);
        CHECK_NEAR(sum, number(&d, 0, "T_total"), 1e-6 * sum); /* sum of the device's times, not the host's */
        CHECK(number(&d, member(&d, member(&d, 0, "stage_detail"), "prefill"), "wall_ms") > number(&d, s, "prefill"));
        free(d.nodes);
    }
    EXITS(cli("run -p a --synthetic tiny --max_new_tokens 1 --device cuda:1"), 0, out, "device   cuda:1: ");
    EXITS(cli("run -p a --synthetic tiny --max_new_tokens 1 --device cpu --gpu library"), 0, out, "--gpu has no effect on a CPU");
    REFUSED("run -p a --synthetic tiny --max_new_tokens 1 --device cuda:2", 4, "cuda:2");
    setenv("CUDA_ON_CPU_DEVICES", "1", 1);
    broken_gpu("CUDA_ON_CPU_DEVICES", "0", "", 0);
    broken_gpu("CUDA_ON_CPU_DRIVER", "0", "driver", 0);
    broken_gpu("CUDA_ON_CPU_DRIVER", "12000", "driver", 0);
    broken_gpu("CUDA_ON_CPU_CAPABILITY", "7.5", "7.5", 4);
    broken_gpu("CUDA_ON_CPU_CUBLAS", "0", "cuBLAS", 4);
    broken_gpu("CUDA_ON_CPU_MEMORY", "1000000", "GB", 4);
    broken_gpu("CUDA_ON_CPU_FAIL", "launch:5", "cuda", 4);
    test_integers();
    check_case("emulated: selftest finds that GPU, library and CPU agree, and reports a switch that this GPU does not support");
    if (cli_json("selftest --device cuda --gpu dependent --json", 0, &d)) {
        CHECK_INT(check_selftest(&d, "cuda"), 5);
        CHECK_INT(d.nodes[member(&d, 0, "checks")].count, 6); /* plus the yardstick of bf16 */
        CHECK(strstr(d.json.text, "\"reference\": \"cuda bf16, --gpu library\"") != NULL);
        CHECK(strstr(d.json.text, "\"no dependent launches: they need compute capability 9.0\"") != NULL);
        CHECK(is_null(&d, 0, "cuda_skipped"));
        free(d.nodes);
    }
    check_case("emulated: a GPU that fails during selftest gives a failed check");
    setenv("CUDA_ON_CPU_FAIL", "illegal:3", 1);
    CHECK_INT(cli("selftest --device cuda --synthetic tiny-dense --gpu events"), 1);
    CHECK(last.out && strstr(last.out, "cuda bf16 cublas     FAILED: ") && strstr(last.out, "\nselftest: 5 passed, 1 failed, 0 skipped"));
    setenv("CUDA_ON_CPU_FAIL", "cublas:4", 1); /* the reference's */
    CHECK_INT(cli("selftest --device cuda --synthetic tiny-dense --gpu events"), 1);
    CHECK(last.out && strstr(last.out, "cuda bf16 library    FAILED: ") && strstr(last.out, "\nselftest: 4 passed, 1 failed, 0 skipped"));
    unsetenv("CUDA_ON_CPU_FAIL");
    check_case("emulated: info lists the available switches, and why others are unavailable");
    CHECK_INT(cli("info"), 0);
    CHECK(last.out && strstr(last.out, "  ways      --gpu (all off by default): events library tuned; not dependent: needs compute capability 9.0; "
                                       "not wgmma: needs exactly compute capability 9.0\n"));
    setenv("CUDA_ON_CPU_CAPABILITY", "9.0", 1);
    CHECK_INT(cli("info"), 0);
    CHECK(last.out && strstr(last.out, "  ways      --gpu (all off by default): events dependent wgmma library tuned\n"));
    unsetenv("CUDA_ON_CPU_CAPABILITY");
    check_case("emulated: experts by wgmma that differ from those by mma.sync are not used");
    setenv("CUDA_ON_CPU_CAPABILITY", "9.0", 1);
    CHECK_INT(cli("run -p a --synthetic tiny --device cuda --gpu wgmma --max_new_tokens 2"), 0);
    CHECK(last.out && !strstr(last.out, "do not use wgmma"));
    setenv("CUDA_ON_CPU_PLANT", "wgmma", 1);
    CHECK_INT(cli("run -p a --synthetic tiny --device cuda --gpu wgmma --max_new_tokens 2"), 0);
    CHECK(last.out && strstr(last.out, "experts do not use wgmma: its results differ from those of mma.sync here"));
    CHECK_INT(cli("run -p a --synthetic tiny --device cuda --max_new_tokens 2"), 0);
    CHECK(last.out && !strstr(last.out, "wgmma"));
    unsetenv("CUDA_ON_CPU_PLANT");
    unsetenv("CUDA_ON_CPU_CAPABILITY");
    test_library();
    test_ways_out();
    check_case("emulated: a sweep on a GPU is not continued on the CPU");
    mkdir(in_folder("data"), 0777);
    write_text(in_folder("data/small_set.jsonl"), "{\"question\": \"Only words?\"}\n");
    CHECK_INT(cli(SWEEP "--tier_list low --top_k_list 1 --num_runs_per_sample 1"), 0);
    CHECK(last.err_lines == 2 && strstr(last.err, "image") && !strstr(last.err, "device:")); /* the set has no image and auto uses the GPU, so there is nothing to report
                                                                                              * */
    setenv("CUDA_ON_CPU_DEVICES", "0", 1);
    CHECK_INT(cli(SWEEP "--tier_list low --top_k_list 1 2 --num_runs_per_sample 1"), 4);
    CHECK(last.err && strstr(last.err, "no CUDA: ") && strstr(last.err, "were measured on cuda:0: ") && last.err_lines <= 4);
    CHECK_INT(count_rows(), 1);
    setenv("CUDA_ON_CPU_DEVICES", "1", 1);
    CHECK_INT(cli(SWEEP "--tier_list low --top_k_list 1 2 --num_runs_per_sample 1"), 0);
    CHECK_INT(count_rows(), 2);
    unsetenv("CUDA_ON_CPU_DEVICES");
    remove_folder(in_folder("out"));
    program = ours;
}
int main(void) {
    if (!command_begin("devices")) return 1;
    finds_gpu(); /* called first, because it runs the program */
    test_no_device();
    test_emulated();
    return command_end("test_devices");
}
