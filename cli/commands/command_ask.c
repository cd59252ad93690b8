/* command_ask.c: ask a server one question and time the answer from outside. `run --endpoint` does the same. */
#include "base/option_rows.h"
#include "commands/commands.h"
#include "commands/run_endpoint.h"

static const struct option_spec ASK_OPTIONS[] = {
    OPTION_GROUP("the server"),
    OPTIONS_OF_RUN_ENDPOINT(1),
    OPTION_GROUP("the question"),
    {"prompt", TEXT, "TEXT", NULL, 0, 0, NULL, "the question (short: -p)"},
    {"max_new_tokens", COUNT, "N", "32", 1, 1000000, NULL, "most tokens of the answer"},
    OPTION_IGNORE_EOS,
    OPTION_GROUP("measuring"),
    {"num_runs", COUNT, "R", NULL, 1, 10000, NULL, "timed runs, after an untimed one that warms up (default: 1)"},
    {"cold", FLAG, NULL, NULL, 0, 0, NULL,
     "leave the warm-up out: the first timed run pays for what starts up, and no other request runs"},
    {"seed", COUNT, "S", "42", 0, UINT32_MAX, NULL, "of the order in the pairs of --twins", .needs = "twins"},
    OPTION_GROUP("output"),
    OPTION_JSON,
    OPTIONS_OF_ALL,
};
const struct command command_ask = {
    "ask", "[IMAGE] -p TEXT --endpoint URL", "ask a server one question and time the answer from outside",
    "vlmprof ask cat.jpg -p \"What is this?\" --endpoint http://127.0.0.1:8000 --endpoint_model NAME --num_runs 5\n"
    "  vlmprof ask cat.jpg -p \"What is this?\" --endpoint http://127.0.0.1:8000 --endpoint_model NAME --twins 20",
    1, ASK_OPTIONS, sizeof ASK_OPTIONS / sizeof *ASK_OPTIONS, "family", run_endpoint};
