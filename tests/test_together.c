/* test_together.c: all headers implemented in one file, as VLMPROF_IMPLEMENTATION promises: no private name of one is a name of another. */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include "vlmprof_analysis.h"
#include "vlmprof_caption.h"
#include "vlmprof_chat.h"
#include "vlmprof_checkpoint.h"
#include "vlmprof_families.h"
#include "vlmprof_file.h"
#include "vlmprof_image.h"
#include "vlmprof_latency.h"
#include "vlmprof_load.h"
#include "vlmprof_noise.h"
#include "vlmprof_processor.h"
#include "vlmprof_prompt.h"
#include "vlmprof_ranges.h"
#include "vlmprof_score.h"
#include "vlmprof_server.h"
#include "vlmprof_stages.h"
#include "vlmprof_tokenizer.h"
#include "vlmprof_trace.h"
#include "vlmprof_unicode.h"
#include "support/check.h"

int main(void) {
    vp_model_config config;
    check_case("headers in one file");
    CHECK_INT(vp_model_config_preset("tiny", &config), VP_OK);
    CHECK(vp_family_find("internvl") != NULL);
    CHECK_TEXT(vp_processor_placeholder(VP_PROCESSOR_LLAVA), "<image>");
    return check_done("test_together");
}
