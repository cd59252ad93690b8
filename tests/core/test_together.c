/* test_together.c: all headers for copying implemented in one file, as VLMPROF_IMPLEMENTATION promises: their private names do not collide. */
#define VLMPROF_IMPLEMENTATION
#include "vlmprof.h"
#include "vlmprof_families.h"
#include "vlmprof_file.h"
#include "vlmprof_image.h"
#include "vlmprof_json.h"
#include "vlmprof_ranges.h"
#include "vlmprof_score.h"
#include "vlmprof_stages.h"
#include "vlmprof_statistics.h"
#include "vlmprof_torch_trace.h"
#include "vlmprof_trace.h"
#include "vlmprof_unicode.h"
#include "support/check.h"

int main(void) {
    check_case("all headers in one file");
    CHECK(vp_family_find("internvl") != NULL);
    CHECK_TEXT(vp_stage_name(VP_STAGE_VIT), "vit");
    CHECK(vp_unicode_is_space(0x2003));
    return check_done("test_together");
}
