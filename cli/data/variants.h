/* variants.h: what a sweep of servers varies in addition to images: endpoints, their models, members of the request.
 * Settings become variants; a configuration of the grid has one of them. */
#ifndef VLMPROF_CLI_VARIANTS_H
#define VLMPROF_CLI_VARIANTS_H
#include "base/options.h"
#include "results/knobs.h"
#include "server/endpoint.h"
#include "server/launch.h"
#include "server/request_knobs.h"
#include "tile/family.h"
#include "vlmprof_chat.h"
#include "vlmprof_families.h"

struct variant {
    struct knob_values values;     /* values of the server; the endpoint has no /v1 and no slash at its end */
    const char *endpoint, *model;  /* from `values` */
    vp_chat_knob *knobs; size_t knob_count; /* they point into the request_knobs; knobs of image parts are last */
    size_t text_knob_count;                 /* number of knobs before them, for a request without an image */
    size_t server_at;       /* the combination of server_knobs with which its server is started */
    char *words;            /* "max_pixels=1024 detail=low"; "" without knobs */
    vp_family *family;      /* counts image tokens with the knobs' settings; NULL without --family */
};
struct variants {
    struct variant *items; size_t count;
    struct request_knobs knobs, server_knobs;
    struct text_list models; /* as given, or the only model of each server */
};

/* What the variants are made from. */
struct variant_settings {
    const struct option_value *endpoints, *models, *request_knobs;
    const struct option_value *rates, *concurrency; /* NULL: not given; at most one of them */
    struct launch_settings launch; const struct option_value *server_knobs;
    struct endpoint_settings client; /* to ask a server for its model */
    const char *family; /* NULL if it is not given */
    struct family_keys keys;
};

/* Adds the values of --knob. Returns 0 or an exit code. */
int own_knobs_add(const struct variant_settings *settings, struct request_knobs *knobs);
/* Sets a combination of them as a configuration's own knobs. */
void knobs_set_own(const struct request_knobs *knobs, size_t combination, struct knob_values *out);

/* *variants is zeroed first. Returns 0 or an exit code; the caller calls variants_free in both cases. */
int variants_make(const struct variant_settings *settings, struct variants *variants);
void variants_free(struct variants *variants);

/* A unique name for files, of letters, digits and ".=-", malloc'ed. */
char *variant_file_name(const struct variant *variant);

#endif
