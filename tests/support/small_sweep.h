/* small_sweep.h: a sweep of two tiers and two top_k over a few records, and the files that it writes. A test includes it after command.h. */
#ifndef SMALL_SWEEP_H
#define SMALL_SWEEP_H

#define SWEEP "sweep --synthetic tiny --data %F/data/small_set.jsonl --output_dir %F/out --max_new_tokens 3 "
#define GRID "--tier_list low medium --top_k_list 1 2 --num_active_blocks_list 4 "
static const char *const RESULTS[] = {"small-set_imgsizetier-low_crops1_topk1_blocks4.json", "small-set_imgsizetier-low_crops1_topk2_blocks4.json",
                                      "small-set_imgsizetier-medium_crops6_topk1_blocks4.json", "small-set_imgsizetier-medium_crops6_topk2_blocks4.json"};

static inline char *result_path(int index) {
    static char path[4][600];
    snprintf(path[index], sizeof path[0], "%s/out/%s", folder, RESULTS[index]);
    return path[index];
}
static inline int count_results(void) {
    DIR *d = opendir(in_folder("out"));
    struct dirent *e;
    int count = 0;
    while (d && (e = readdir(d)) != NULL) count += strstr(e->d_name, "imgsize") != NULL;
    if (d) closedir(d);
    return count;
}
static inline int count_rows(void) { /* whole lines that close a point in the journal */
    char *text = check_read(in_folder("out/journal.jsonl"), NULL);
    int count = 0;
    for (const char *p = text, *end; p && *p && (end = strchr(p, '\n')) != NULL; p = end + 1) {
        const char *prev = strncmp(p, "{\"config\"", 9) ? NULL : strstr(p, "\"prev\": ");
        if (prev && prev < end) prev += strcspn(prev, ",");
        count += prev && prev < end && (!strncmp(prev, ", \"done\": ", 10) || !strncmp(prev, ", \"failed\": ", 12));
    }
    free(text);
    return count;
}

static inline void make_data(const char *third_line) {
    char text[2000], here[512] = "";
    CHECK(getcwd(here, sizeof here) != NULL);
    mkdir(in_folder("data"), 0777);
    snprintf(text, sizeof text,
             "{\"id\": \"one\", \"image\": \"%s/%s\", \"question\": \"What is it?\", \"answers\": [\"bus\", \"bus\", \"car\"], \"style\": \"vqa2\"}\n"
             "{\"id\": 2, \"image\": \"%s/%s\", \"question\": \"Which?\", \"options\": [\"red\", \"blue\"], \"answer\": 1, \"extra\": {\"x\": [1]}}\n%s",
             here, check_golden("images/img-200x150.png"), here, check_golden("images/img-333x517.png"), third_line);
    write_text(in_folder("data/small_set.jsonl"), text);
}
#endif
