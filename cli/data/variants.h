/* variants.h: what a sweep of servers varies next to the images: endpoints, their models, members of the request.
 * Options come in; variants, which a configuration of the grid has one of, go out. */
#ifndef VLMPROF_CLI_VARIANTS_H
#define VLMPROF_CLI_VARIANTS_H
#include "base/json.h"
#include "base/options.h"
#include "results/knobs.h"
#include "server/knobs.h"
#include "vlmprof_chat.h"
#include "vlmprof_families.h"

#define OPTION_ENDPOINTS \
    {"endpoint", TEXTS, "URL...", NULL, 0, 0, NULL, \
     "servers to measure instead of a model: vLLM, SGLang, llama.cpp, TGI, Ollama or hosted ones; see help servers"}
#define OPTION_ENDPOINT_MODELS \
    {"endpoint_model", TEXTS, "NAME...", NULL, 0, 0, NULL, \
     "the servers' names of the models: one for all servers, several of one server, or one for each server in turn"}
#define OPTION_FAMILY_OF_SERVERS \
    {"family", TEXT, "NAME", NULL, 0, 0, NULL, \
     "the model's family, and its keys as options: counts image tokens by its rule; --vision_tokens_list aims by it"}

struct variant {
    struct knob_values values;     /* of the server; the endpoint is without /v1 and without a slash at its end */
    const char *endpoint, *model;  /* of these */
    vp_chat_knob *knobs; size_t knob_count; /* they point into the request_knobs; knobs of image parts are last */
    size_t text_knob_count;                 /* those before them: of a request without an image */
    char *words;            /* "max_pixels=1024 detail=low"; "": no knobs */
    vp_family *family;      /* counts image tokens with the knobs' settings; NULL: no --family */
};
struct variants { struct variant *items; size_t count; struct request_knobs knobs; };

/* Makes the variants of --endpoint, --endpoint_model, --request_knob and --family. *variants is zeroed first. Returns 0
 * or an exit code; the caller calls variants_free in both cases. */
int variants_make(const struct options *options, struct variants *variants);
void variants_free(struct variants *variants);

/* A unique name for files, of letters, digits and ".=-", malloc'ed. */
char *variant_file_name(const struct variant *variant);

#endif
