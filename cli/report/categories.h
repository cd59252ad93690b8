/* categories.h: the rows of a report below its configurations: the scores of each value of a field (--by category). */
#ifndef VLMPROF_CLI_CATEGORIES_H
#define VLMPROF_CLI_CATEGORIES_H
#include "base/memory.h"
#include "base/table.h"
#include "results/result_read.h"

/* A category with a 95 % interval. */
struct category_row {
    char configuration[160], name[120];
    int64_t count;          /* scored samples */
    vp_estimate value;
};
struct category_rows { struct category_row *items; size_t count; };

/* Reads the rows of every file again and adds the categories of `field`. Problems are added to `warnings`. `name` is
 * report_full_name. Returns 0, or an exit code if no sample has the field. */
typedef const char *file_namer(const struct results *results, const struct result_file *file, char out[160]);
int categories_read(const struct results *results, const char *field, file_namer *name,
                    struct category_rows *categories, struct text_list *warnings);
void category_rows_free(struct category_rows *rows);

/* The rows as a table. */
struct table category_table(const struct category_rows *rows);

#endif
