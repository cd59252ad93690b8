/* command_ask.h: `ask`, and `run` with --endpoint: asks a server a question and measures its answer as a client. The
 * answer and its times are printed as text or JSON. */
#ifndef VLMPROF_CLI_COMMAND_ASK_H
#define VLMPROF_CLI_COMMAND_ASK_H
#include "base/options.h"
#include "server/checks/twin_pairs.h"
#include "server/endpoint.h"
#include "server/knobs.h"
#include "server/unique.h"

/* Option rows for one question, to the engine or to a server. */
#define OPTION_PROMPT {"prompt", TEXT, "TEXT", NULL, 0, 0, NULL, "the question (short: -p)"}
#define OPTION_MAX_NEW_TOKENS {"max_new_tokens", COUNT, "N", "32", 1, 1000000, NULL, "longest answer in tokens"}
#define OPTION_COLD \
    {"cold", FLAG, NULL, NULL, 0, 0, NULL, \
     "skip the warm-up: the first timed run includes start-up costs, and no other request is sent"}

/* Option rows for requests to a server. must: 1 if a server is the only way to answer. */
#define OPTIONS_OF_ASK(must) \
    OPTION_ENDPOINT(must), OPTION_ENDPOINT_MODEL, OPTIONS_OF_CLIENT, OPTION_REQUEST_KNOB, \
    OPTIONS_OF_TWINS, \
    {"baseline", TEXT, "URL", NULL, 0, 0, NULL, \
     "another server, asked the same question: reports whether the answers are equal and, if both servers return log " \
     "probabilities, how far apart the next-token distributions are"}, \
    {"baseline_model", TEXT, "NAME", NULL, 0, 0, NULL, "model name on that server (default: its only one)", \
     .needs = "baseline"}, \
    {"resize", TEXT, "WxH", NULL, 0, 0, NULL, "resize the image before it is sent"}, \
    OPTIONS_OF_UNIQUE, \
    {"no_cache", FLAG, NULL, NULL, 0, 0, NULL, \
     "ask the server not to use its prompt cache (by cache_prompt or cache_salt, which hosted servers may reject)"}, \
    {"family", TEXT, "NAME", NULL, 0, 0, NULL, \
     "also count the image's tokens by the rule of this model family; its keys are options (--max_pixels N), as in " \
     "tile"}

int ask_command(const struct options *options);

#endif
