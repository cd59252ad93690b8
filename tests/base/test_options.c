/* test_options.c: the options of all commands: help, unknown names with the nearest one, values out of range, conflicting options. Runs $PROGRAM (default
 * ./vlmprof) from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "vlmprof.h"
#include "support/command.h"
#include "support/scan.h"
#include "commands/commands.h"
#include "support/room.h"

#define ROW(name) &command_##name,
static const struct command *const ALL_COMMANDS[] = {VLMPROF_COMMANDS(ROW) NULL};

/* ---------------------------------------------------------------------------------------------------------------- help */
static void test_help(void) {
    char words[80];
    check_case("tables: unique names, a text for each, defaults that are choices, examples that are commands");
    for (const struct command *const *command = ALL_COMMANDS; *command; command++) {
        const struct option_spec *options = (*command)->options;
        for (size_t i = 0; i < (*command)->option_count; i++) {
            if (options[i].kind == GROUP) {
                CHECK(options[i].name[0] && i + 1 < (*command)->option_count && options[i + 1].kind != GROUP);
                continue;
            }
            CHECK(options[0].kind == GROUP);
            for (size_t j = 0; j < i; j++) CHECK(options[j].kind == GROUP || strcmp(options[i].name, options[j].name) != 0);
            CHECK(options[i].help && strlen(options[i].help) > 5);
            CHECK(!options[i].choices || !options[i].fallback || has_word(options[i].choices, options[i].fallback));
            CHECK(!options[i].fallback || !strstr(options[i].help, "(default") || strstr(strstr(options[i].help, "(default"), options[i].fallback));
            CHECK((options[i].kind == FLAG) == !options[i].argument);
        }
        for (const char *line = (*command)->example; line; line = strstr(line, "\n  ") ? strstr(line, "\n  ") + 3 : NULL)
            CHECK(!strncmp(line, "vlmprof ", 8) || strstr(line, "| vlmprof ") || *line == ' ');
        snprintf(words, sizeof words, "help %s --all", (*command)->name);
        CHECK_INT(cli(words), 0);
        CHECK(last.out && strstr(last.out, "usage: vlmprof") && strstr(last.out, (*command)->summary));
        for (size_t i = 0; i + 1 < (*command)->option_count; i++) { /* the last one is --help */
            snprintf(words, sizeof words, options[i].kind == GROUP ? "\n%s:\n" : "\n  --%s ", options[i].name);
            check_note(last.out && strstr(last.out, words) && (options[i].kind == GROUP || strstr(last.out, options[i].help)), __FILE__, __LINE__,
                       "help %s lacks %s", (*command)->name, words);
        }
    }
    check_case("help: the program, topics, unknown words, options that cannot be used together");
    CHECK_INT(cli("help"), 0);
    CHECK(last.out && strstr(last.out, "  tokens ") && strstr(last.out, "\nmeasure:\n  run ") && strstr(last.out, "130"));
    CHECK(strstr(last.out, "a transformers model") && strstr(last.out, "\nread results:\n  report ") && strstr(last.out, "\ncheck:\n  tile "));
    CHECK_INT(cli("help definitions"), 0);
    CHECK(last.out && strstr(last.out, "TTFT") && strstr(last.out, "ONE REQUEST"));
    CHECK_INT(cli("-V"), 0);
    CHECK(last.out && strstr(last.out, VLMPROF_VERSION));
    CHECK_INT(cli("run -h"), 0);
    REFUSED("run -p a --model allenai/MolmoE-1B-0924", 3, "hf download allenai/MolmoE-1B-0924 --local-dir MolmoE-1B-0924");
    CHECK_INT(cli("run -p a --model ./none"), 3);
    CHECK(last.err && !strstr(last.err, "hf download"));
    check_case("no colours in a pipe");
    CHECK_INT(cli("help run"), 0);
    CHECK(last.out && !strchr(last.out, 27));
    check_case("help: the main options of a large command, then all of them; main options are options");
    CHECK_INT(cli("help sweep"), 0);
    CHECK(last.out && strstr(last.out, "--top_k_list") && !strstr(last.out, "--bare_every") && strstr(last.out, " more: vlmprof help sweep --all"));
    CHECK_INT(cli("help sweep --all"), 0);
    CHECK(last.out && strstr(last.out, "--bare_every") && !strstr(last.out, " more: "));
    static const struct command *const large[] = {&command_sweep, &command_run};
    for (int i = 0; i < 2; i++) {
        size_t found = 0, named = 1;
        for (size_t k = 0; k < large[i]->option_count; k++)
            found += large[i]->options[k].kind != GROUP && has_word(large[i]->main_options, large[i]->options[k].name);
        for (const char *at = large[i]->main_options; *at; at++) named += *at == ' ';
        CHECK_INT(found, named);
    }
    check_case("help: invalid topics and options");
    REFUSED("help tokn", 2, "did you mean tokenize, tokens?");
    REFUSED("help nothing-like-it", 2, "unknown command or topic");
    REFUSED("help run --list", 2, "takes no command or topic");
    REFUSED("help run tile", 2, "unexpected argument");
}

/* ---------------------------------------------------------------------------------------------------------------- usage */
static void test_usage(void) {
    static const char *const commands[] = {"run", "tile", "audit", "sweep", "tokenize", "info", "selftest", "score", "merge",
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
        const char *first = last.out ? strstr(last.out, "\n\nexamples:\n  vlmprof ") : NULL, *second = first ? strstr(first + 20, "\n  vlmprof ") : NULL;
        CHECK(second && second < strstr(last.out, "\nusage: vlmprof ") && !*last.err);
    }
    check_case("for unknown words, the error names the nearest");
    REFUSED("swep --model x", 2, "did you mean sweep?");
    REFUSED("tokenise", 2, "did you mean tokenize?");
    REFUSED("profile x", 2, "unknown command"); /* profile is an option of run */
    REFUSED("run --topk 3", 2, "did you mean --top_k");
    REFUSED("sweep --max-new_tokens x", 2, "--max_new_tokens: \"x\"");
    REFUSED("zzzzzz", 2, "unknown command \"zzzzzz\"; vlmprof help");
    REFUSED("run --csv", 2, "unknown option --csv of run (report has this option);");
    REFUSED("infos", 2, "did you mean info?");
    REFUSED("self_test", 2, "did you mean selftest?");
    REFUSED("info --tier low", 2, "of info (run has this option)");
    REFUSED("selftest --jsn", 2, "did you mean --json?");
    REFUSED("run -x", 2, "unknown option -x");
    check_case("option values");
    REFUSED("run -p", 2, "needs a value");
    REFUSED("run -p a -p b --synthetic tiny", 2, "given twice");
    REFUSED("run -p a --json=1", 2, "takes no value");
    REFUSED("run -p a --synthetic tiny --top_k 9", 2, "8 experts");
    REFUSED("run -p a --synthetic tiny --num_active_blocks 5", 2, "4 blocks");
    REFUSED("run -p a --synthetic tiny --active_blocks 0,4", 2, "0..3");
    REFUSED("run -p a --synthetic tiny --active_blocks 0,1,1", 2, "twice");
    REFUSED("run -p a --synthetic tiny --active_blocks 0,,1", 2, "not a whole number");
    REFUSED("run -p a --synthetic tiny --device gpu", 2, "cuda:N");
    REFUSED("run -p a --synthetic tiny --device cuda:x", 2, "cuda:N");
    REFUSED("selftest --device ''", 2, "cuda:N");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/x --device cuda:1x", 2, "cuda:N");
    REFUSED("info now", 2, "now");
    REFUSED("selftest --synthetic tiny --model x", 2, "--model and --synthetic cannot be used together");
    REFUSED("info --model %F/none", 3, "none");
    REFUSED("run -p a --synthetic tiny --gemm magic", 2, "plain");
    REFUSED("run -p a --synthetic tiny --gpu events magic", 2, "--gpu: unknown value \"magic\"; expected one of: ");
    REFUSED("run -p a --synthetic huge", 2, "molmoe-1b");
    REFUSED("run -p a", 2, "--model DIR");
    REFUSED("run -p a --synthetic tiny --model x", 2, "--model and --synthetic cannot be used together");
    REFUSED("run --synthetic tiny", 2, "-p TEXT");
    REFUSED("run a.png b.png -p a --synthetic tiny", 2, "only one is allowed");
    REFUSED("run -p a --synthetic tiny --style vqa2 --raw_prompt", 2, "cannot be used together");
    REFUSED("run -p 'a\xff' --synthetic tiny", 2, "UTF-8");
    REFUSED("run -p a --style '\xc0\x80' --synthetic tiny", 2, "UTF-8");
    REFUSED("run -p a --synthetic tiny --max_new_tokens 5000", 2, "the model has 4096");
    REFUSED("run -p a --synthetic tiny --tier low --crops 2", 2, "cannot be used together");
    REFUSED("run -p a --synthetic tiny --tier low --preprocess adaptive", 2, "--preprocess tier");
    REFUSED("sweep --synthetic tiny --output_dir %F/x", 2, "--data");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl", 2, "--output_dir");
    REFUSED("sweep --synthetic tiny --data a --output_dir %F/x --sampling_strategy halton", 2, "custom_sparse");
    REFUSED("sweep --synthetic tiny --data samples/questions.jsonl --output_dir %F/x --tier_list low --vision_tokens_list 432", 2, "cannot be used together");
    REFUSED("sweep --synthetic tiny --data a --output_dir %F/x --dataset_name a/b", 2, "slash");
    CHECK(access(in_folder("x"), F_OK) != 0); /* a rejected sweep leaves no files */
}

/* ------------------------------------------------------------------------------------------- options parsed in this process */
static const struct option_value *value_of(const struct options *o, const char *name) { return opt(o, name); }
static void test_values(void) {
    struct options o;
    static const struct { const char *text; double value; } reals[] = {
        {"0.25", 0.25}, {".5", 0.5}, {"3.", 3}, {"7", 7}, {"123456.789012345678", 123456.789012345678}, {"1234567.890123456789", -1}, {".", -1}, {"1e3", -1},
        {"-1", -1}, {"1.2.3", -1}, {"+1", -1}, {"nan", -1}, {"5x", -1}, {"5.x", -1}};
    int64_t whole = -1;
    char words[100];
    check_case("numbers as typed by a user");
    CHECK(can_parse_number("0", &whole) && whole == 0);
    CHECK(can_parse_number("12", &whole) && whole == 12);
    CHECK(can_parse_number("-7", &whole) && whole == -7);
    CHECK(!can_parse_number("", &whole) && !can_parse_number("-", &whole) && !can_parse_number("1x", &whole) && !can_parse_number(" 1", &whole));
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        snprintf(words, sizeof words, "--budget_ms %s", reals[i].text);
        CHECK_INT(HEARD(options_of_words(&o, &command_best, words)), reals[i].value < 0 ? 2 : 0);
        if (reals[i].value >= 0) CHECK_NEAR(opt(&o, "budget_ms")->real, reals[i].value, 0);
        options_free(&o);
    }
    check_case("a choice from a list must match as a whole");
    CHECK(has_word("low medium high", "low") && has_word("low medium high", "medium") && has_word("low medium high", "high"));
    CHECK(!has_word("low medium high", "") && !has_word("low medium high", "lo") && !has_word("low medium high", "ow") && !has_word("lows slow low", "lo"));
    CHECK(has_word("lows slow low", "low") && !has_word("lows slow", "low"));
    check_case("the distance between two names");
    CHECK(edit_distance("kitten", "sitting") == 3 && edit_distance("", "abc") == 3 && edit_distance("abc", "") == 3 && edit_distance("topk", "top_k") == 1);
    CHECK(edit_distance("same", "same") == 0 && edit_distance("ab", "ba") == 1);
    CHECK(edit_distance("abcd", "acbd") == 1 && edit_distance("ca", "abc") == 3 && edit_distance("abcdef", "bcdefg") == 2);
    memset(words, 'a', 65);
    words[65] = 0;
    CHECK(edit_distance(words, "a") == 1000 && edit_distance("a", words) == 1000 && edit_distance(words + 1, "a") == 63 && edit_distance("b", words + 1) == 64);
    check_case("values, lists and defaults");
    CHECK_INT(HEARD(options_of_words(&o, &command_sweep, "--top_k_list 1,2 4 --data a,b c --num_samples=7 --quiet --stop_half_width 2.5")), 0);
    CHECK_TEXT(room_said, "");
    CHECK_INT(value_of(&o, "top_k_list")->count, 3);
    CHECK(value_of(&o, "top_k_list")->numbers[0] == 1 && value_of(&o, "top_k_list")->numbers[1] == 2 && value_of(&o, "top_k_list")->numbers[2] == 4);
    CHECK_TEXT(value_of(&o, "top_k_list")->items[1], "2");
    CHECK_INT(value_of(&o, "data")->count, 2); /* file names are not split */
    CHECK_TEXT(value_of(&o, "data")->items[0], "a,b");
    CHECK_TEXT(value_of(&o, "data")->items[1], "c");
    CHECK_INT(number_of(&o, "num_samples"), 7);
    CHECK(is_given(&o, "num_samples") && is_given(&o, "quiet") && !is_given(&o, "tier_list") && !is_given(&o, "seed"));
    CHECK(value_of(&o, "stop_half_width")->real == 2.5);
    options_free(&o);
    check_case("operands after --");
    CHECK_INT(HEARD(options_of_words(&o, &command_tile, "1x2 --csv 3x4 -- --json 5x6")), 0);
    CHECK(is_given(&o, "csv") && !is_given(&o, "json"));
    if (CHECK_INT(o.operand_count, 4)) {
        CHECK_TEXT(o.operands[0], "1x2");
        CHECK_TEXT(o.operands[1], "3x4");
        CHECK_TEXT(o.operands[2], "--json");
        CHECK_TEXT(o.operands[3], "5x6");
    }
    options_free(&o);
}
/* words that are rejected, with the whole message */
static void test_refusals(void) {
    static const char *const rows[][2] = {
        {"--top_k_list 1 01", "vlmprof: --top_k_list: 01 is listed twice\n"}, {"--tier_list low,low", "vlmprof: --tier_list: low is listed twice\n"},
        {"--top_k_list 0", "--top_k_list: 0 is outside 1.."}, {"--top_k_list", "--top_k_list needs a value: "}, {"--top_k_list --quiet", "--top_k_list needs a value: "},
        {"--num_samples 1 --num_samples 1", "given twice"}, {"--num_samples", "needs a value"}, {"--quiet=1", "takes no value"}, {"--quite", "did you mean --quiet?"},
        {"--weights fp16", "--weights: unknown value \"fp16\"; expected one of: bf16 "}, {"--weights bf61", "--weights: unknown value \"bf61\"; did you mean bf16?\n"},
        {"--stop_half_width x", "--stop_half_width: expected a number from "},
        {"--csv", "unknown option --csv; see vlmprof sweep --help\n"},
        {"--num_samples 1.5", "--num_samples: \"1.5\" is not a whole number"}, {"--stop_half_width 999999", "--stop_half_width: expected a number from "}};
    struct options o;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_case("sweep %s", rows[i][0]);
        FAILS(options_of_words(&o, &command_sweep, rows[i][0]), 2, rows[i][1]);
        options_free(&o);
    }
    check_case("a range includes its ends");
    for (size_t i = 0; i < command_run.option_count; i++) {
        const struct option_spec *spec = &command_run.options[i];
        char words[100];
        if (spec->kind != COUNT) continue;
        for (int end = 0; end < 2; end++) {
            int64_t bound = end ? spec->most : spec->least;
            if (bound >= INT64_C(1000000000000000000) || bound <= -INT64_C(1000000000000000000)) continue; /* more digits than are parsed */
            snprintf(words, sizeof words, "--%s %lld", spec->name, (long long)bound);
            check_note(HEARD(options_of_words(&o, &command_run, words)) == 0, __FILE__, __LINE__, "%s: %s", words, room_said);
            CHECK_INT(number_of(&o, spec->name), bound);
            options_free(&o);
            snprintf(words, sizeof words, "--%s %lld", spec->name, (long long)(end ? bound + 1 : bound - 1));
            FAILS(options_of_words(&o, &command_run, words), 2, "is outside");
            options_free(&o);
        }
    }
}
/* rules of rows: options that require each other, that exclude each other, and that lift a rule */
static void test_rules(void) {
    static const struct { const struct command *command; const char *words, *said; } rows[] = {
        {&command_sweep, "--data a --output_dir b --tier_list low --vision_tokens_list 432", "--tier_list and --vision_tokens_list cannot be used together\n"},
        {&command_sweep, "--data a --output_dir b --weights_list bf16 --weights int8", "--weights_list and --weights cannot be used together\n"},
        {&command_sweep, "--data a", "sweep needs --output_dir DIR; see vlmprof sweep --help\n"},
        {&command_sweep, "--data a --plan", ""},
        {&command_sweep, "--plan", "sweep needs --data FILE..."},
        {&command_sweep, "--data a --plan --row_limit 3", "--row_limit needs --use_profiler\n"},
        {&command_sweep, "--data a --plan --use_profiler --row_limit 3", ""},
        {&command_sweep, "--data a --plan --use_profiler --endpoint c", "--use_profiler and --endpoint cannot be used together: only vlmprof"},
        {&command_sweep, "--data a --plan --device cpu --endpoint c", "--device and --endpoint cannot be used together: the server decides this; "},
        {&command_sweep, "--data a --plan --twins 2", "--twins needs --endpoint URL"},
        {&command_tile, "--max_tokens 5", "--max_tokens needs --family NAME, --checkpoint DIR or --compare A,B,...\n"},
        {&command_tile, "--csv --json", "--csv and --json cannot be used together\n"}};
    struct options o;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_case("rules: %s", rows[i].words);
        CHECK_INT(HEARD(options_of_words(&o, rows[i].command, rows[i].words)), 0);
        CHECK_INT(HEARD(options_check(&o)), *rows[i].said ? 2 : 0);
        check_note(*rows[i].said ? strstr(room_said, rows[i].said) != NULL : !*room_said, __FILE__, __LINE__, "%s", room_said);
        options_free(&o);
    }
}
/* a file to write that is read, is in a folder that is read, or is written twice */
static void test_outputs(void) {
    static const struct { const char *words, *said; } rows[] = {
        {"report %F/in --html=%F/in/k.json", "would overwrite a file in the input folder"}, {"fit %F/in/k.json -o %F/link.json", "would overwrite the input"},
        {"report %F/in/k.json --html=%F/in/../in/k.json", "would overwrite the input"}, {"fit %F/in -o %F/in/k.json", "overwrite a file in the input folder"},
        {"run %F/in/c.jpg -p a --synthetic tiny --profile --html %F/in/c.jpg", "would overwrite the input"},
        {"run -p a --synthetic tiny --profile --html %F/new --trace %F/in/../new", "are the same file"}};
    CHECK_INT(mkdir(in_folder("in"), 0777), 0);
    write_text(in_folder("in/k.json"), "{}");
    write_text(in_folder("in/c.jpg"), "");
    CHECK_INT(link(in_folder("in/k.json"), in_folder("link.json")), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_case("outputs: %s", rows[i].words);
        REFUSED(rows[i].words, 2, rows[i].said);
    }
    check_case("outputs: a page beside the results is written again");
    write_text(in_folder("in/report.html"), "");
    CHECK_INT(cli("report %F/in --html=%F/in/report.html"), 3);
}
int main(void) {
    if (!command_begin("options")) return 1;
    RUN_TESTS(test_help, test_usage, test_values, test_refusals, test_rules, test_outputs);
    free(room_said);
    return command_end("test_options");
}
