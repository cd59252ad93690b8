/* command_ask.h: `ask`, and `run` with --endpoint: a server answers the question, seen from its client.
 * Options come in; the answer and its times go to stdout as text or JSON. */
#ifndef VLMPROF_CLI_COMMAND_ASK_H
#define VLMPROF_CLI_COMMAND_ASK_H
#include "base/options.h"
#include "server/checks/twin_pairs.h"
#include "server/endpoint.h"
#include "server/knobs.h"
#include "server/unique.h"

/* Rows of one question, to the engine or to a server. */
#define OPTION_PROMPT {"prompt", TEXT, "TEXT", NULL, 0, 0, NULL, "the question (short: -p)"}
#define OPTION_MAX_NEW_TOKENS {"max_new_tokens", COUNT, "N", "32", 1, 1000000, NULL, "longest answer in tokens"}
#define OPTION_COLD \
    {"cold", FLAG, NULL, NULL, 0, 0, NULL, \
     "skip the warm-up: the first timed run includes start-up costs, and no other request is sent"}

/* Option rows that only a server's request has. must: 1 if there is no other way to answer. */
#define OPTIONS_OF_ASK(must) \
    OPTION_ENDPOINT(must), OPTION_ENDPOINT_MODEL, OPTIONS_OF_CLIENT, OPTION_REQUEST_KNOB, \
    OPTIONS_OF_TWINS, \
    {"baseline", TEXT, "URL", NULL, 0, 0, NULL, \
     "another server, asked the same: whether the answers are equal, and how far apart the next-token distributions " \
     "are where both servers give log probabilities"}, \
    {"baseline_model", TEXT, "NAME", NULL, 0, 0, NULL, "its name of the model (default: its only one)", \
     .needs = "baseline"}, \
    {"resize", TEXT, "WxH", NULL, 0, 0, NULL, "resize the image before it is sent"}, \
    OPTIONS_OF_UNIQUE, \
    {"no_cache", FLAG, NULL, NULL, 0, 0, NULL, \
     "ask the server not to use its prompt cache (cache_prompt, cache_salt; hosted servers may reject this)"}, \
    {"family", TEXT, "NAME", NULL, 0, 0, NULL, \
     "also count the image's tokens by the rule of this model family; its keys are options, as in tile: --max_pixels N"}

int ask_command(const struct options *options);

#endif
