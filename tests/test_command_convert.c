/* slow: checkpoints written by the command, up to 14 GB of them, 6 s */
/* test_command_convert.c: the convert command: every form of a model gives the same answers; rejections; the state after an interruption. Runs $PROGRAM (default
 * ./vlmprof) from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "support/command.h"
#include "support/scan.h"
#include "support/texts.h"
#include "vlmprof.h"

/* ----------------------------------------------------------------------------------------------------------------- convert */
static int same_files(const char *a, const char *b) {
    size_t a_bytes = 0, b_bytes = 0;
    char *x = check_read(a, &a_bytes), *y = check_read(b, &b_bytes);
    int same = x && y && a_bytes == b_bytes && !memcmp(x, y, a_bytes);
    FREE_ALL(x, y);
    return same;
}
/* number of files in a subfolder of the test's folder; -1 if there is no such folder */
static int count_files(const char *name) {
    DIR *d = opendir(in_folder(name));
    struct dirent *e;
    int count = 0;
    if (!d) return -1;
    while ((e = readdir(d)) != NULL) count += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(d);
    return count;
}
#define SAME_RUN "run %s -p 'What is behind the tower?' --gemm plain --device cpu --ignore_eos --max_new_tokens 5 --seed 7 --dump %%F/%s "
/* runs of the model and of its two converted forms have identical ids, logits and tokens */
static void same_runs(const char *model, const char *input) {
    static const char *const dumps[] = {"input_ids.npy", "image_features.npy", "block_last.npy", "logits.npy", "tokens.npy"};
    char words[1500], one[64], other[64];
    check_case("convert: %s and its two forms give bit-identical answers", input);
    snprintf(words, sizeof words, SAME_RUN "%s", check_golden("images/img-333x517.png"), "dump", model);
    CHECK_INT(cli(words), 0);
    for (int packed = 0; packed < 2; packed++) {
        snprintf(words, sizeof words, "convert %s %%F/form%d --layout %s", input, packed, packed ? "packed" : "hf --max_shard_mb 1");
        CHECK_INT(cli(words), 0);
        CHECK(last.out && !last.out_bytes && last.err_lines == 1 && strstr(last.err, packed ? "packed, 0.0" : "hf, 0.0"));
        snprintf(words, sizeof words, SAME_RUN "--model %%F/form%d", check_golden("images/img-333x517.png"), "dump2", packed);
        CHECK_INT(cli(words), 0);
        for (size_t i = 0; i < sizeof dumps / sizeof dumps[0]; i++) {
            snprintf(one, sizeof one, "dump/%s", dumps[i]);
            snprintf(other, sizeof other, "dump2/%s", dumps[i]);
            check_note(same_files(in_folder(one), in_folder(other)), __FILE__, __LINE__, "%s differs, packed %d", dumps[i], packed);
        }
        remove_folder(in_folder("dump2"));
    }
    remove_folder(in_folder("dump"));
}
/* --json lists the written files, and stderr stays empty */
static void test_convert_json(void) {
    document d;
    struct stat info;
    check_case("convert --json");
    if (!CHECK_INT(cli_json("convert --synthetic tiny %F/json --seed 3 --max_shard_mb 1 --json", 0, &d), 1)) return;
    CHECK(!last.err_lines);
    CHECK(is_text(&d, 0, "layout", "hf") && is_text(&d, 0, "model", "tiny"));
    CHECK_INT(number(&d, 0, "seed"), 3);
    CHECK_INT(number(&d, 0, "tensors"), 225);
    CHECK_INT(number(&d, 0, "weight_files"), 4);
    CHECK(number(&d, 0, "weight_bytes") > 3e6 && number(&d, 0, "seconds") > 0);
    CHECK_INT(d.nodes[member(&d, 0, "files")].count, count_files("json"));
    CHECK(stat(in_folder("json/config.json"), &info) == 0);
    unload(&d);
    remove_folder(in_folder("json"));
}
/* the files that conversion of a synthetic model writes: their texts; size and hash of the large files */
static void test_convert_texts(void) {
    static const char *const names[] = {"config.json", "vlmprof_convert.json", "tokenizer.json", "model.safetensors.index.json", "model.safetensors", "model.packed",
                                        "model-00001-of-00004.safetensors", "model-00004-of-00004.safetensors"};
    static const char *const layouts[] = {"--layout hf --seed 3", "--layout packed --seed 3", "--layout hf --max_shard_mb 1 --seed 3"};
    kept_text all = {NULL, 0, 0};
    check_case("convert: the written files");
    for (int i = 0; i < 3; i++) {
        char line[300];
        snprintf(line, sizeof line, "convert --synthetic tiny %%F/texts %s", layouts[i]);
        remove_folder(in_folder("texts"));
        CHECK_INT(cli(line), 0);
        kept_add(&all, line, strlen(line));
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            size_t bytes = 0;
            uint64_t hash = UINT64_C(14695981039346656037);
            char name[100], *text;
            snprintf(name, sizeof name, "texts/%s", names[k]);
            text = check_read(in_folder(name), &bytes);
            if (!text) continue;
            for (size_t at = 0; at < bytes; at++) hash = (hash ^ (unsigned char)text[at]) * UINT64_C(1099511628211);
            kept_add(&all, line, (size_t)snprintf(line, sizeof line, "\n---- %s: %zu bytes", names[k], bytes));
            if (strstr(name, "model")) hash = 0; /* weights are compared by their results */
            if (bytes > 4000) kept_add(&all, line, (size_t)snprintf(line, sizeof line, ", FNV-1a %016llx", (unsigned long long)hash));
            else kept_add(&all, "\n", 1), kept_add(&all, text, bytes);
            free(text);
        }
        kept_add(&all, "\n", 1);
    }
    check_kept("convert-files.txt", all.data ? all.data : "");
    free(all.data);
    remove_folder(in_folder("texts"));
}
static void stop_convert(int signal_number, int code) {
    check_case("convert: stopped by signal %d; no partial files", signal_number);
    remove_folder(in_folder("big"));
    pid_t child = start("convert --synthetic molmoe-1b %F/big --layout packed --threads 1", NULL, in_folder("stdout"), 0);
    for (int i = 0; i < 2000 && count_files("big/.vlmprof-converting") < 3; i++) pause_ms(10);
    pause_ms(50);
    kill(child, signal_number);
    finish(child, in_folder("stdout"));
    if (last.code == 5 && last.err && strstr(last.err, "the weights need")) { check_skip("a convert that is stopped", "it needs 14.4 GB on the disk"); return; }
    if (last.code == 4 && last.err && strstr(last.err, "not enough address space for the packed weights")) {
        check_skip("a convert that is stopped", "a limit of this process's memory below 14.4 GB");
        return;
    }
    CHECK_INT(last.code, code);
    if (code == 130) {
        CHECK_INT(count_files("big"), -1);
        CHECK(last.err_lines >= 1 && last.err_lines <= 4 && strstr(last.err, "stopped"));
        return;
    }
    CHECK_INT(count_files("big"), 1);
    REFUSED("run -p a --model %F/big", 3, "config.json");
    CHECK_INT(cli("convert --synthetic tiny %F/big"), 0); /* removes the files left by the killed process */
    CHECK_INT(count_files("big"), 4);
    remove_folder(in_folder("big"));
}
static void test_convert_refusals(const char *tiny_a) {
    char words[800];
    check_case("convert: usage");
    REFUSED("convert", 2, "IN and OUT");
    REFUSED("convert a", 2, "IN and OUT");
    REFUSED("convert a b c", 2, "unexpected argument");
    REFUSED("convert a b --synthetic tiny", 2, "no IN");
    REFUSED("convert --synthetic huge %F/x", 2, "molmoe-1b");
    REFUSED("convert --synthetic tiny-dense %F/x", 2, "accepts only molmoe-1b and tiny, because a folder of tiny-dense would lack its config.json");
    REFUSED("convert --synthetic tiny-gemma3 %F/x --layout packed", 2, "accepts only molmoe-1b and tiny");
    CHECK_INT(count_files("x"), -1);
    REFUSED("convert a b --layout gguf", 2, "hf packed");
    REFUSED("convert a b --layout packed --weights fp32", 2, "bf16 int8 int4");
    REFUSED("convert a b --weights int8", 2, "--weights int8 needs --layout packed");
    REFUSED("convert a b --layout hf --vision_weights int4", 2, "--vision_weights int4 needs --layout packed");
    REFUSED("convert a b --max_shard_mb 0", 2, "outside 1..");
    REFUSED("convert %F/none %F/x", 3, "no such folder");
    snprintf(words, sizeof words, "convert %s %%F/form0/../form0/../../%s", tiny_a, strrchr(folder, '/') + 1);
    REFUSED(words, 2, "not empty");
    REFUSED("convert %F/form0 %F/form0/", 2, "same folder");
    REFUSED("convert %F/form1 %F/x", 3, "already packed");
    write_text(in_folder("file"), "x");
    REFUSED("convert %F/form0 %F/file/x", 5, "file");
    REFUSED("convert %F/form0 %F/file", 5, "file");
    check_case("convert: folders that are not checkpoints");
    mkdir(in_folder("olmo"), 0777);
    write_text(in_folder("olmo/config.yaml"), "model:\n");
    write_text(in_folder("olmo/model.pt"), "x");
    REFUSED("convert %F/olmo %F/x", 3, "OLMo's original training format");
    REFUSED("info --model %F/olmo", 3, "OLMo's original training format");
    link_model(check_golden("models/tiny-a"), in_folder("model"), "model.safetensors");
    write_text(in_folder("model/pytorch_model.bin"), "x");
    REFUSED("convert %F/model %F/x", 3, "execute code");
    REFUSED("run -p a --model %F/model", 3, "safe_serialization=True");
    CHECK_INT(count_files("x"), -1); /* a rejected convert leaves no files */
}
static void test_convert_packed(void) {
    document d;
    size_t bytes = 0;
    char *file = check_read(in_folder("form1/model.packed"), &bytes);
    check_case("convert: uses that packed weights do not support");
    REFUSED("run -p a --model %F/form1 --weights fp32", 3, "the packed weights are bf16, not --weights fp32: omit the option");
    REFUSED("selftest --model %F/form1", 3, "selftest compares with fp32");
    if (cli_json("info --model %F/form1 --json", 0, &d)) {
        uint32_t m = member(&d, 0, "model");
        CHECK(number(&d, m, "files") == 1 && number(&d, m, "file_bytes") == (double)bytes);
        CHECK(d.nodes[member(&d, m, "packed")].type == VP_JSON_TRUE);
        free(d.nodes);
    }
    CHECK_INT(cli("info --model %F/form1"), 0);
    CHECK(last.out && strstr(last.out, "packed for the CPU, bf16"));
    check_case("convert: damaged packed weights");
    if (!CHECK(file != NULL)) return;
    write_file(in_folder("form1/model.packed"), file, bytes - 1);
    REFUSED("run -p a --model %F/form1", 3, "truncated");
    REFUSED("info --model %F/form1", 3, "truncated");
    file[100] ^= 1;
    write_file(in_folder("form1/model.packed"), file, bytes);
    REFUSED("run -p a --model %F/form1", 3, "header is damaged");
    file[100] ^= 1;
    write_file(in_folder("form1/model.packed"), file, bytes);
    write_text(in_folder("form1/model.safetensors"), "x");
    REFUSED("run -p a --model %F/form1", 3, "next to model.packed");
    unlink(in_folder("form1/model.safetensors"));
    free(file);
    file = check_read(in_folder("form1/config.json"), NULL);
    if (CHECK(file != NULL) && CHECK(strstr(file, "\"n_layers\": 4") != NULL)) {
        *(strstr(file, "\"n_layers\": 4") + strlen("\"n_layers\": ")) = '3';
        write_text(in_folder("form1/config.json"), file);
        REFUSED("run -p a --model %F/form1", 3, "another config.json");
    }
    free(file);
}
/* A packed model of integers gives the same answers as its folder in the same precision, which is then the default; any other precision is rejected. */
static void test_convert_integers(const char *tiny_a) {
    static const char *const dumps[] = {"image_features.npy", "logits.npy", "tokens.npy"};
    char words[1500], one[64], other[64], *journal;
    document d;
    check_case("convert: packed integers give the same bits as integers made at opening");
    snprintf(words, sizeof words, "convert %s %%F/integers --layout packed --weights int4 --head_weights int8", tiny_a);
    CHECK_INT(cli(words), 0);
    snprintf(words, sizeof words, SAME_RUN "--model %s --weights int4 --head_weights int8", check_golden("images/img-333x517.png"), "dump", tiny_a);
    CHECK_INT(cli(words), 0);
    snprintf(words, sizeof words, SAME_RUN "--model %%F/integers --json", check_golden("images/img-333x517.png"), "dump2");
    CHECK_INT(cli(words), 0);
    CHECK(last.out && strstr(last.out, "\"weights\": \"int4\"") && strstr(last.out, "\"head_weights\": \"int8\""));
    for (size_t i = 0; i < sizeof dumps / sizeof dumps[0]; i++) {
        snprintf(one, sizeof one, "dump/%s", dumps[i]);
        snprintf(other, sizeof other, "dump2/%s", dumps[i]);
        check_note(same_files(in_folder(one), in_folder(other)), __FILE__, __LINE__, "%s differs", dumps[i]);
    }
    remove_folder(in_folder("dump"));
    remove_folder(in_folder("dump2"));
    check_case("convert: the precision of packed integers");
    CHECK_INT(cli("run -p a --model %F/integers --weights int4 --device cpu --max_new_tokens 1"), 0);
    REFUSED("run -p a --model %F/integers --weights gguf", 2, "--weights gguf: expected --model FILE.gguf, got");
    REFUSED("run -p a --synthetic tiny --weights gguf", 2, "--weights gguf: expected --model FILE.gguf, got tiny");
    REFUSED("run -p a --model %F/integers --weights bf16", 3, "the packed weights are int4, head int8, not --weights bf16: omit the option");
    REFUSED("run -p a --model %F/integers --head_weights int4", 3, "not --head_weights int4");
    REFUSED("sweep --model %F/integers --data samples/questions.jsonl --output_dir %F/swept --weights_list int4 int8", 3, "not --weights_list int8");
    CHECK_INT(count_files("swept"), -1);
    CHECK_INT(cli("sweep --model %F/integers --data samples/questions.jsonl --num_samples 1 --tier_list low --max_new_tokens 1 --device cpu --output_dir %F/swept "
                  "--weights_list int4"), 0);
    journal = check_read(in_folder("swept/journal.jsonl"), NULL);
    CHECK(journal && strstr(journal, "\"head_weights\": \"int8\""));
    free(journal);
    remove_folder(in_folder("swept"));
    CHECK_INT(cli("info --model %F/integers"), 0);
    CHECK(last.out && strstr(last.out, "packed for the CPU, int4, head int8)"));
    if (cli_json("info --model %F/integers --json", 0, &d)) {
        uint32_t held = member(&d, member(&d, 0, "model"), "packed_weights");
        CHECK(is_text(&d, held, "weights", "int4") && is_text(&d, held, "head_weights", "int8") && is_text(&d, held, "vision_weights", "bf16"));
        unload(&d);
    }
    remove_folder(in_folder("integers"));
}
static void test_convert_folder(void) {
    document d;
    check_case("convert: its own output is replaced as a whole; files of others stay");
    write_text(in_folder("form0/notes"), "mine");
    CHECK_INT(cli("convert --synthetic tiny %F/form0 --layout packed"), 0);
    CHECK_INT(count_files("form0"), 5); /* config.json, tokenizer.json, model.packed, the list, the notes */
    CHECK(access(in_folder("form0/notes"), F_OK) == 0 && access(in_folder("form0/model.packed"), F_OK) == 0);
    CHECK_INT(cli("run -p a --model %F/form0 --device cpu --max_new_tokens 1"), 0);
    if (CHECK(load(&d, in_folder("form0/vlmprof_convert.json")))) {
        CHECK(is_text(&d, 0, "schema", "vlmprof-convert-1") && is_text(&d, 0, "layout", "packed") && is_text(&d, 0, "synthetic", "tiny"));
        CHECK(is_text(&d, 0, "weights", "bf16") && is_text(&d, 0, "vision_weights", "bf16"));
        CHECK_INT(d.nodes[member(&d, 0, "files")].count, 3);
        unload(&d);
    }
    write_text(in_folder("form0/model.safetensors"), "mine");
    REFUSED("convert --synthetic tiny %F/form0", 2, "model.safetensors was not written by convert");
    CHECK(count_files("form0") == 6 && access(in_folder("form0/model.packed"), F_OK) == 0);
    unlink(in_folder("form0/model.safetensors"));
    check_case("convert: an empty folder is filled, a folder with other files stays untouched");
    mkdir(in_folder("empty"), 0777);
    CHECK_INT(cli("convert --synthetic tiny %F/empty"), 0);
    CHECK_INT(count_files("empty"), 4);
    unlink(in_folder("empty/vlmprof_convert.json"));
    REFUSED("convert --synthetic tiny %F/empty", 2, "not empty");
    write_text(in_folder("empty/vlmprof_convert.json"), "{\"schema\": \"vlmprof-convert-1\", \"files\": [\"../notes\"]}");
    REFUSED("convert --synthetic tiny %F/empty", 2, "not empty");
    CHECK_INT(count_files("empty"), 4);
    check_case("convert: first the disk is full, then it is not");
    for (int packed = 0; packed < 2; packed++)
        for (long limit = 500; limit < 3000000; limit *= 50) {
            CHECK_INT(cli_with(packed ? "convert --synthetic tiny %F/full --layout packed" : "convert --synthetic tiny %F/full", NULL,
                               in_folder("stdout"), limit), 5);
            CHECK(last.err_lines >= 1 && last.err_lines <= 4 && !last.out_bytes);
            CHECK_INT(count_files("full"), -1);
        }
    CHECK_INT(cli_with("convert --synthetic tiny %F/form0", NULL, in_folder("stdout"), 100000), 5);
    CHECK_INT(cli("run -p a --model %F/form0 --device cpu --max_new_tokens 1"), 0); /* the earlier form is intact */
    remove_folder(in_folder("empty"));
}
static void test_convert(void) {
    static char tiny_a[600], emulated[300];
    char words[700];
    const char *ours = program;
    if (!check_golden("models/tiny-a")) { check_skip("convert", "golden models not found"); return; }
    snprintf(tiny_a, sizeof tiny_a, "%s", check_golden("models/tiny-a"));
    same_runs("--synthetic tiny", "--synthetic tiny --seed 7");
    remove_folder(in_folder("form0"));
    remove_folder(in_folder("form1"));
    snprintf(words, sizeof words, "--model %s", tiny_a);
    same_runs(words, tiny_a);
    CHECK_INT(count_files("form1"), 9); /* seven small files, the weights, the list */
    test_convert_refusals(tiny_a);
    test_convert_texts();
    test_convert_json();
    snprintf(emulated, sizeof emulated, "%s/emulated/vlmprof", getenv("B") ? getenv("B") : "build");
    if (access(emulated, X_OK)) check_skip("packed weights and a GPU", "the command with an emulated GPU was not built (make test builds it)");
    else {
        check_case("convert: packed weights cannot be used on a GPU, and auto does not fall back");
        program = emulated;
        REFUSED("run -p a --model %F/form1 --device cuda", 3, "laid out for the CPU; a GPU needs the folder");
        REFUSED("run -p a --model %F/form1", 3, "or use --device cpu");
        CHECK_INT(cli("run -p a --model %F/form1 --device cpu --max_new_tokens 1"), 0);
        CHECK_INT(cli("run -p a --model %F/form0 --device cuda --max_new_tokens 1"), 0);
        CHECK_INT(cli("convert --synthetic tiny %F/integers --layout packed --weights int4"), 0);
        REFUSED("run -p a --model %F/integers --device cuda", 3, "laid out for the CPU; a GPU needs the folder");
        REFUSED("run -p a --model %F/integers --device cuda --weights int4", 3, "or use --device cpu");
        program = ours;
    }
    test_convert_packed();
    test_convert_integers(tiny_a);
    test_convert_folder();
    stop_convert(SIGINT, 130);
    stop_convert(SIGTERM, 130);
    stop_convert(SIGKILL, -1);
    remove_folder(in_folder("form0"));
    remove_folder(in_folder("form1"));
    remove_folder(in_folder("olmo"));
}

int main(void) {
    if (!command_begin("command_convert")) return 1;
    test_convert();
    return command_end("test_command_convert");
}
