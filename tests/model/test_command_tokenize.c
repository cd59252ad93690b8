/* test_command_tokenize.c: the tokenize command: text and ids, JSONL, prompts of the data sets.
 * Runs $PROGRAM from the repository's root; its files are in a temporary folder. */
#define _POSIX_C_SOURCE 200809L
#include "support/command.h"
#include "vlmprof.h"

/* ------------------------------------------------------------------------------------------------------------- tokenize */
static void test_tokenize(void) {
    const char *model = check_golden("models/tiny-a");
    char command[700];
    check_case("tokenize");
    if (!CHECK(model != NULL)) return;
    snprintf(command, sizeof command, "tokenize --model %s 'What is this?'", model);
    CHECK_INT(cli(command), 0);
    CHECK_TEXT(last.out, "{\"text\": \"What is this?\", \"ids\": [262, 250, 504, 32]}\n");
    snprintf(command, sizeof command, "tokenize --tokenizer %s/tokenizer.json", model);
    CHECK_INT(cli_with(command, "What is this?\n\na\tb", in_folder("stdout"), 0), 0);
    CHECK(last.out && strstr(last.out, "[262, 250, 504, 32]}\n{\"text\": \"\", \"ids\": []}\n{\"text\": \"a\\tb\", \"ids\": ["));
    snprintf(command, sizeof command, "tokenize --model %s --decode '[262, 250,504 32]'", model);
    CHECK_INT(cli(command), 0);
    CHECK_TEXT(last.out, "{\"text\": \"What is this?\", \"ids\": [262, 250, 504, 32]}\n");
    snprintf(command, sizeof command, "tokenize --model %s --json 'What is this?' 'a b'", model);
    EXITS(cli(command), 0, out, "{\"text\": \"What is this?\", \"ids\": [262, 250, 504, 32]}\n");
    CHECK(last.out && strstr(last.out, "\n{\"summary\": {\"lines\": 2, \"text_bytes\": 16, \"tokens\": "));
    snprintf(command, sizeof command, "tokenize --model %s --jsonl --json", model);
    CHECK_INT(cli_with(command, "{\"text\": \"What is this?\"}\n{\"ids\": [262, 250, 504, 32]}\n{\"question\": \"Why?\"}\n", in_folder("stdout"), 0), 0);
    CHECK(last.out && strstr(last.out, "\n{\"summary\": {\"lines\": 3, \"text_bytes\": "));
    snprintf(command, sizeof command, "tokenize --model %s", model);
    refused_at(__FILE__, __LINE__, command, "good\nbad \xff\n", 2, "line 2");
    snprintf(command, sizeof command, "tokenize --model %s --decode '1 two'", model);
    REFUSED(command, 2, "two");
    REFUSED("tokenize hello", 2, "--tokenizer FILE");
    REFUSED("tokenize --tokenizer samples/cat.jpg hello", 3, "cat.jpg");
    REFUSED("tokenize --synthetic tiny --skip_special hello", 2, "--decode");
}

/* removes the fields that --jsonl adds */
static char *without(const char *text, const char *const *keys) {
    char *out = NULL;
    size_t used = 0;
    for (const char *line = text; *line; line = next_line(line)) {
        document d;
        int first = 1;
        if (!CHECK(parse(&d, line, strcspn(line, "\n")))) break;
        out = (char *)realloc(out, used + strcspn(line, "\n") + 8);
        out[used++] = '{';
        for (uint32_t i = 1; i < d.json.node_count; i = d.nodes[i + 1].end) {
            int made = 0;
            for (int k = 0; keys[k]; k++) made |= vp_json_equals(&d.json, i, keys[k]);
            if (made) continue;
            used += (size_t)sprintf(out + used, "%s%.*s", first ? "" : ", ", (int)((size_t)(d.json.text + d.nodes[i + 1].start + d.nodes[i + 1].bytes
                                    - (d.json.text + d.nodes[i].start - 1)) + (d.nodes[i + 1].type == VP_JSON_STRING)), d.json.text + d.nodes[i].start - 1);
            first = 0;
        }
        used += (size_t)sprintf(out + used, "}\n");
        unload(&d);
    }
    return out;
}
/* each golden prompt is reproduced from only its fields; the other fields do not change */
static void check_prompt_rows(const char *tokenizer, const char *const *left_out) {
    char *want = check_read(check_golden("prompts/prompts.jsonl"), NULL), *input = want ? without(want, left_out) : NULL;
    const char *w = want, *g, *in = input;
    char command[700], text[4096];
    int rows = 0;
    snprintf(command, sizeof command, "tokenize --tokenizer %s --jsonl", tokenizer);
    if (!CHECK(want && input)) return;
    CHECK_INT(cli_with(command, input, in_folder("stdout"), 0), 0);
    for (g = last.out; g && *g && *w && *in; g = next_line(g), w = next_line(w), in = next_line(in), rows++) {
        document golden, got;
        size_t kept = strcspn(in, "\n") - 1;
        CHECK(parse(&golden, w, strcspn(w, "\n")) && parse(&got, g, strcspn(g, "\n")));
        CHECK(!strncmp(g, in, kept)); /* the existing text is kept, byte for byte */
        uint32_t a = vp_json_get(&golden.json, 0, "prompt_text");
        uint32_t b = vp_json_get(&got.json, 0, "prompt_text");
        CHECK(vp_json_text(&golden.json, a, text, sizeof text, NULL) == VP_OK && vp_json_equals(&got.json, b, text));
        a = vp_json_get(&golden.json, 0, "ids");
        b = vp_json_get(&got.json, 0, "ids");
        CHECK(b != VP_JSON_NONE && golden.nodes[a].bytes == got.nodes[b].bytes
              && !memcmp(w + golden.nodes[a].start, g + got.nodes[b].start, (size_t)golden.nodes[a].bytes));
        unload(&golden);
        unload(&got);
    }
    CHECK_INT(rows, 60);
    FREE_ALL(want, input);
}
static void test_tokenize_jsonl(void) {
    static const char *const made[] = {"prompt_text", "ids", NULL}, *const by_style[] = {"dataset", "prompt_text", "ids", "messages", NULL};
    const char *tokenizer = check_golden("tokenizer/tokenizer.json");
    check_case("tokenize --jsonl: golden prompts");
    if (!tokenizer) check_skip("tokenize --jsonl: golden prompts", "no ../shared/goldens/tokenizer/tokenizer.json");
    else {
        char copy[512];
        snprintf(copy, sizeof copy, "%s", tokenizer);
        check_prompt_rows(copy, made);
        check_prompt_rows(copy, by_style);
    }
    check_case("tokenize --jsonl: texts and ids; other fields are kept");
    CHECK_INT(cli_with("tokenize --synthetic tiny --jsonl",
                       "{\"n\": [1, {\"a\": null}], \"text\": \"a\\u0000b\", \"ids\": 3, \"z\": 1.50}\n\n {\"ids\": [99, 100], \"text\": null}\n"
                       "{\"question\": \"x\", \"text\": \"kept\", \"prompt_text\": \"old\"}\n{\"style\": \"coco_captioning\", \"rng_seed\": 78}\n",
                       in_folder("stdout"), 0), 0);
    CHECK(last.out && !strncmp(last.out, "{\"n\": [1, {\"a\": null}], \"text\": \"a\\u0000b\", \"z\": 1.50, \"ids\": [99, 2, 100]}\n"
                                         "{\"ids\": [99, 100], \"text\": \"ab\"}\n"
                                         "{\"question\": \"x\", \"text\": \"kept\", \"prompt_text\": \" User: x Assistant:\", \"ids\": [34, ", 170));
    CHECK(last.out && strstr(last.out, "Brief Caption:A short image caption: Assistant:"));
    CHECK_INT(cli_with("tokenize --synthetic tiny --jsonl --decode --skip_special", "{\"ids\": [99, 0], \"text\": \"old\"}", in_folder("stdout"), 0), 0);
    CHECK_TEXT(last.out, "{\"ids\": [99, 0], \"text\": \"a\"}\n");
    check_case("tokenize --jsonl: errors name the line");
#define BAD_LINE(input, words) refused_at(__FILE__, __LINE__, "tokenize --synthetic tiny --jsonl", input, 3, words)
    BAD_LINE("{\"text\": \"a\"}\n[1]\n", "line 2: expected one JSON object");
    BAD_LINE("{\"text\": \"a\"", "line 1");
    BAD_LINE("{\"text\": \"\xff\"}", "line 1");
    BAD_LINE("{\"text\": 1}", "\"text\" must be");
    BAD_LINE("{\"ids\": [1.5]}", "\"ids\" must be");
    BAD_LINE("{\"ids\": [4294967296]}", "\"ids\" must be");
    BAD_LINE("{\"id\": 1}", "has none of");
    BAD_LINE("{\"question\": [1]}", "\"question\" must be");
    BAD_LINE("{\"questions\": \"a\"}", "\"questions\" must be");
    BAD_LINE("{\"question\": \"a\", \"options\": [[1]]}", "\"options\" (or \"choices\") must be");
    BAD_LINE("{\"question\": \"a\", \"hint\": 7}", "\"hint\" must be");
    BAD_LINE("{\"question\": \"a\", \"dataset\": \"vqa\"}", "is unknown");
    BAD_LINE("{\"question\": \"a\", \"dataset\": \"science_qa_img\"}", "no options");
    BAD_LINE("{\"dataset\": \"text_vqa\"}", "no question");
    BAD_LINE("{\"dataset\": \"coco_caption\", \"seed\": 4294967295, \"index\": 1}", "exceeds 4294967295");
    BAD_LINE("{\"dataset\": \"coco_caption\", \"seed\": -1}", "\"seed\" must be");
    BAD_LINE("{\"text\": \"a\", \"k\\u0000\": 1}", "a key contains");
    refused_at(__FILE__, __LINE__, "tokenize --synthetic tiny --jsonl --decode", "{\"text\": \"a\"}", 3, "has no \"ids\"");
    REFUSED("tokenize --synthetic tiny --jsonl {}", 2, "stdin");
}

int main(void) {
    if (!command_begin("command_tokenize")) return 1;
    test_tokenize();
    test_tokenize_jsonl();
    return command_end("test_command_tokenize");
}
