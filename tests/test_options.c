/* test_options.c: the options of all commands: help, names with the nearest one, values out of range, what excludes what.
 * Runs $PROGRAM (default ./vlmprof) from the repository's root; its files lie in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof.h"
#include "support/command.h"
#include "support/scan.h"

/* ---------------------------------------------------------------------------------------------------------------- usage */
static void test_usage(void) {
    static const char *const commands[] = {"run", "tile", "sweep", "tokenize", "convert", "info", "selftest", "score", "rescore", "merge",
                                           "report", "best", "fit", "predict", "compare", "trace"};
    check_case("usage");
    CHECK_INT(cli(""), 2);
    CHECK(last.out && !last.out_bytes && last.err && strstr(last.err, "usage: vlmprof"));
    CHECK_INT(cli("--help"), 0);
    CHECK(last.out && strstr(last.out, "usage: vlmprof") && strstr(last.out, "130") && last.err && !*last.err);
    CHECK_INT(cli("--version"), 0);
    CHECK(last.out && strstr(last.out, VLMPROF_VERSION));
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        char command[32];
        snprintf(command, sizeof command, "%s --help", commands[i]);
        CHECK_INT(cli(command), 0);
        CHECK(last.out && strstr(last.out, "example:\n  vlmprof ") && last.err && !*last.err);
    }
    check_case("unknown words name the nearest");
    REFUSED("swep --model x", 2, "nearest is sweep");
    REFUSED("tokenise", 2, "nearest is tokenize");
    REFUSED("profile x", 2, "unknown command"); /* it is an option of run */
    REFUSED("run --topk 3", 2, "nearest is --top_k");
    REFUSED("sweep --max-new-tokens 3", 2, "--max_new_tokens");
    REFUSED("run --csv", 2, "of tile");
    REFUSED("infos", 2, "nearest is info");
    REFUSED("self_test", 2, "nearest is selftest");
    REFUSED("info --tier low", 2, "of run");
    REFUSED("selftest --jsn", 2, "nearest is --json");
    REFUSED("run -x", 2, "unknown option -x");
    check_case("values of options");
    REFUSED("run -p", 2, "needs a value");
    REFUSED("run -p a -p b --synthetic tiny", 2, "given twice");
    REFUSED("run -p a --json=1", 2, "takes no value");
    REFUSED("run -p a --synthetic tiny --top_k 0", 2, "outside 1..");
    REFUSED("run -p a --synthetic tiny --top_k 1e3", 2, "not a whole number");
    REFUSED("run -p a --synthetic tiny --top_k 99999999999999999999", 2, "not a whole number");
    REFUSED("run -p a --synthetic tiny --top_k 9", 2, "8 experts");
    REFUSED("run -p a --synthetic tiny --num_active_blocks 5", 2, "4 blocks");
    REFUSED("run -p a --synthetic tiny --active_blocks 0,4", 2, "0..3");
    REFUSED("run -p a --synthetic tiny --active_blocks 0,1,1", 2, "twice");
    REFUSED("run -p a --synthetic tiny --active_blocks 0,,1", 2, "not a whole number");
    REFUSED("run -p a --synthetic tiny --weights fp16", 2, "bf16 fp32");
    REFUSED("run -p a --synthetic tiny --device gpu", 2, "cuda:N");
    REFUSED("run -p a --synthetic tiny --device cuda:x", 2, "cuda:N");
    REFUSED("run -p a --synthetic tiny --device cuda:", 2, "cuda:N");
    REFUSED("run -p a --synthetic tiny --device cuda:-1", 2, "cuda:N");
    REFUSED("run -p a --synthetic tiny --device cuda1", 2, "cuda:N");
    REFUSED("selftest --device ''", 2, "cuda:N");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/x --device cuda:1x", 2, "cuda:N");
    REFUSED("info now", 2, "now");
    REFUSED("info --synthetic huge", 2, "molmoe-1b");
    REFUSED("selftest --synthetic huge", 2, "molmoe-1b");
    REFUSED("selftest --synthetic tiny --model x", 2, "one of");
    REFUSED("selftest --model %F/none", 3, "none");
    REFUSED("info --model %F/none", 3, "none");
    REFUSED("run -p a --synthetic tiny --gemm magic", 2, "plain");
    REFUSED("run -p a --synthetic huge", 2, "molmoe-1b");
    REFUSED("run -p a", 2, "--model DIR");
    REFUSED("run -p a --synthetic tiny --model x", 2, "one of");
    REFUSED("run --synthetic tiny", 2, "-p TEXT");
    REFUSED("run a.png b.png -p a --synthetic tiny", 2, "b.png");
    REFUSED("run -p a --synthetic tiny --style vqa2 --raw_prompt", 2, "exclude");
    REFUSED("run -p 'a\xff' --synthetic tiny", 2, "UTF-8");
    REFUSED("run -p a --style '\xc0\x80' --synthetic tiny", 2, "UTF-8");
    REFUSED("run -p a --synthetic tiny --max_new_tokens 5000", 2, "the model has 4096");
    REFUSED("run -p a --synthetic tiny --tier low --crops 2", 2, "exclude");
    REFUSED("run -p a --synthetic tiny --tier low --preprocess adaptive", 2, "--preprocess tier");
    REFUSED("sweep --synthetic tiny --output_dir %F/x", 2, "--data");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl", 2, "--output_dir");
    REFUSED("sweep --synthetic tiny --data a --output_dir %F/x --sampling_strategy halton", 2, "custom_sparse");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/x --sampling_strategy seed_lhs --tier_list low", 2, "no point");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/x --tier_list low huge", 2, "low medium high");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/x --vision_tokens_list 287", 2, "288");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/x --top_k_list 1 1", 2, "twice");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/x --tier_list low --vision_tokens_list 432", 2, "exclude");
    REFUSED("sweep --synthetic tiny --data a --output_dir %F/x --dataset_name a/b", 2, "slash");
    CHECK(access(in_folder("x"), F_OK) != 0); /* a refused sweep leaves nothing behind */
}

int main(void) {
    if (!command_begin("options")) return 1;
    test_usage();
    return command_end("test_options");
}
