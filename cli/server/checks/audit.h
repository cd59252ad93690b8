/* audit.h: checks whether a server counts an image's tokens by the rule of a model family.
 * A server's counts for images of many sizes come in; a verdict, and the likely cause of differences, come out. Nothing
 * is sent. */
#ifndef VLMPROF_CLI_AUDIT_H
#define VLMPROF_CLI_AUDIT_H
#include "base/memory.h"
#include "server/picture.h"
#include "vlmprof_chat.h"
#include "vlmprof_families.h"

/* A family's rule, changed by a request's knobs. */
struct audit_rule {
    vp_family family;
    int is_low_detail; /* 1 for OpenAI's detail low, which only costs the base tokens */
};
vp_result audit_count(const struct audit_rule *rule, int32_t width_px, int32_t height_px, vp_vision_count *count,
                      vp_error *error);

/* Applies a knob of a request to the rule. The end of its path, or each member of an object value, must be a key of the
 * family or a server's name for that key.
 * returns: VP_OK; VP_ERR_NOT_FOUND: the rule has no such knob; VP_ERR_RANGE: the key cannot have the value */
vp_result audit_set_knob(struct audit_rule *rule, const vp_chat_knob *knob, vp_error *error);

/* One size: tokens by the rule and by the server's count, and the same for a request without its knobs. */
struct audit_size {
    int32_t width_px, height_px;
    int64_t by_rule, measured;
    int has_without; /* 1 if it was also requested without the knobs */
    int64_t by_rule_without, measured_without;
};

#define AUDIT_CAUSES(X) \
    X(AUDIT_NO_CAUSE, "none") \
    X(AUDIT_DROPPED, "image dropped") \
    X(AUDIT_PLACEHOLDERS, "placeholders counted") \
    X(AUDIT_KNOB_IGNORED, "knob ignored") \
    X(AUDIT_32_BIT, "32-bit square root") \
    X(AUDIT_LIMIT, "another limit configured") \
    X(AUDIT_ROUNDING, "halves rounded up") \
    X(AUDIT_FAMILY, "another family") \
    X(AUDIT_FIXED, "fixed size") \
    X(AUDIT_ROWS, "tokens per row") \
    X(AUDIT_VIEWS, "tokens per view") \
    X(AUDIT_SHARE, "more or fewer everywhere") \
    X(AUDIT_UNEXPLAINED, "unknown")
#define AUDIT_CAUSE_ENUM(id, name) id,
typedef enum audit_cause { AUDIT_CAUSES(AUDIT_CAUSE_ENUM) AUDIT_CAUSE_COUNT } audit_cause;
#undef AUDIT_CAUSE_ENUM
const char *audit_cause_name(audit_cause cause);

/* The values of a key for which the rule gives every count: `values` of them from lowest to highest (AUDIT_UNBOUNDED
 * if there is no end); `value` is the roundest of them, `word` its name or NULL. */
#define AUDIT_UNBOUNDED (INT64_C(1) << 40)
struct audit_fit { const char *key, *word; int64_t value, lowest, highest, values; };

enum { AUDIT_FITS = 2, AUDIT_FAMILIES = 80, AUDIT_OFFSET_LEAST = -8, AUDIT_OFFSET_MOST = 16 };
struct audit_verdict {
    int is_equal;            /* 1 if equal except for a constant offset */
    int64_t offset;          /* measured - rule: at every size if equal, otherwise at most sizes */
    size_t different, first; /* sizes that differ by more than the offset, and the index of the first */
    audit_cause cause;
    int is_constant; int64_t constant; /* 1 if every size is measured with `constant` tokens */
    struct audit_fit fits[AUDIT_FITS]; size_t fit_count;
    /* other families whose published rule gives all counts */
    const vp_family_preset *families[AUDIT_FAMILIES]; size_t family_count;
    int is_half_up;          /* for AUDIT_32_BIT: 1 if halves are also rounded up */
    int64_t fit_offset;      /* measured - count, of the fits */
    int64_t extra; double share; /* for AUDIT_ROWS, AUDIT_VIEWS: tokens of each; for AUDIT_SHARE: measured / by rule */
    /* if all counts match: whether they are also equal without the knobs, and whether the rule predicts that */
    enum { AUDIT_HAS_EFFECT, AUDIT_BY_RULE, AUDIT_AS_STARTED } without_effect;
};
/* Judges count >= 1 sizes.
 * rule: A constant offset is not a difference if the rule's counts vary over the sizes, or if it is between
 *       AUDIT_OFFSET_LEAST and AUDIT_OFFSET_MOST: chat templates put tokens around an image. */
void audit_judge(const struct audit_rule *rule, const struct audit_size *sizes, size_t count,
                 struct audit_verdict *verdict);

/* Adds sentences: the verdict, its cause, and what to do. */
void audit_words(const struct audit_rule *rule, const struct audit_size *sizes, size_t count,
                 const struct audit_verdict *verdict, struct text_list *out);

/* ---- scene.c */
/* The same size and number give the same file. Free it with picture_free. */
void scene_draw(int32_t width_px, int32_t height_px, uint64_t number, struct picture *picture);

/* ---- corners.c */
enum { CORNERS_LEAST = 12, CORNERS_DEFAULT = 24, CORNERS_MOST = 1000 };

struct corner {
    int32_t width_px, height_px;
    vp_vision_count count;
    const char *why; /* static */
};

/* Finds sizes of at most most_pixels pixels, the most useful first: ordinary, small, large, the widest and the tallest
 * that the family accepts (up to 200:1); sizes at which a limit of the family takes effect; and, along the width, the
 * height and the diagonal, sizes at which the count changes and one pixel below and above. If a rule has too few of
 * them, other sizes are added up to CORNERS_LEAST. The family accepts every size, and none is repeated. out: corners
 * [most], most at least CORNERS_LEAST; notes: limits that no size within most_pixels reaches Returns the number of
 * sizes; 0 if the family accepts none. */
size_t corners_of(const vp_family *family, int64_t most_pixels, size_t most, struct corner *corners,
                  struct text_list *notes);

#endif
