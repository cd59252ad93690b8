/* tasks.c: the known evaluation sets, under all names in common use. */
#include "formats/tasks.h"

#include <ctype.h>
#include <string.h>

static const struct task TASKS[] = {
    {"doc_qa", "docqa docvqa spdocvqa documentvqa", FORM_P1, FORM_P1, "anls_lmms", "anls_vlmevalkit", 32, "DocVQA"},
    {"info_vqa", "infovqa infographicvqa infographicsvqa infographicsvqavalv10 infographicsvqatestv10", FORM_P1,
     FORM_P1, "anls_lmms", "anls_vlmevalkit", 32, "InfographicVQA"},
    {"text_vqa", "textvqa textvqa051", FORM_CAPITALISED, FORM_P1, "textvqa_lmms", "vqa_vlmevalkit", 0, "TextVQA"},
    {"coco_2014_vqa", "coco2014vqa vqav2 vqa2 v2openendedmscocoval2014questions v2openendedmscocotrain2014questions",
     FORM_P1, FORM_P1, "vqav2_lmms", "vqa_vlmevalkit", 16, "VQA v2"},
    {"okvqa", "okvqa okvqaval2014 openendedmscocoval2014questions openendedmscocotrain2014questions", FORM_UNANSWERABLE,
     FORM_P1, "textvqa_lmms", "vqa_vlmevalkit", 0, "OK-VQA"},
    {"chart_qa", "chartqa testhuman testaugmented valhuman valaugmented", FORM_SINGLE_WORD, FORM_P1, "relaxed_lmms",
     "relaxed_vlmevalkit", 16, "ChartQA"},
    {"ai2d", "ai2d ai2dnomask ai2dtestnomask", FORM_LETTERS, FORM_CHOICE, "ai2d_lmms", "mcq_vlmevalkit", 16, "AI2D"},
    {"mmstar", "mmstar mmstaroc", FORM_MMSTAR, FORM_CHOICE, "mcq_lmms", "mcq_vlmevalkit", 0, "MMStar"},
    {"mmbench",
     "mmbench mmbenchencndev mmbenchcc mmbenchru mmbenchdevenv11 mmbenchdevcnv11 mmbenchtestenv11 "
     "mmbenchtestcnv11 mmbenchv11 mmbenchendevstatic mmbenchdevenmini",
     FORM_MMBENCH, FORM_CHOICE, "mmbench_static_lmms", "mcq_circular_vlmevalkit", 1024, "MMBench"},
    {"mme", "mme", FORM_MME, FORM_NONE, "mme_lmms", "yes_no_vlmevalkit", 16, "MME"},
    {"pope",
     "pope popeadv popeadversarial popepop popepopular poperandom poperand popefull cocopope cocopoperandom "
     "cocopopepopular cocopopeadversarial",
     FORM_P1_STRIPPED, FORM_NONE, "pope_lmms", "yes_no_vlmevalkit", 128, "POPE"},
    {"ocrbench", "ocrbench", FORM_STRIPPED, FORM_NONE, "ocrbench_lmms", "ocrbench_vlmevalkit", 128, "OCRBench"},
    {"real_world_qa", "realworldqa", FORM_STRIPPED, FORM_CHOICE, "realworldqa_lmms", "mcq_vlmevalkit", 16,
     "RealWorldQA"},
    {"seed_bench", "seedbench seedbenchimg", FORM_LETTERS, FORM_CHOICE, "seed_bench_lmms", "mcq_vlmevalkit", 0,
     "SEED-Bench"},
    {"math_vista",
     "mathvista mathvistatestminiformat mathvistatestminicot mathvistatestminisolution mathvistacot "
     "mathvistaformat mathvistasolution",
     FORM_MATHVISTA, FORM_NONE, "mathvista_lmms", "mathvista_vlmevalkit", 16384, "MathVista"},
    {"mmmu", "mmmu mmmua mmmudevval", FORM_MMMU, FORM_CHOICE, "mmmu_lmms", "mmmu_vlmevalkit", 128, "MMMU"},
    {"mmmu_pro",
     "mmmupro mmmuprostandard mmmupro10c mmmupro4c mmmupro10ccot mmmupro4ccot mmmuprovision mmmuprov "
     "mmmuprovcot mmmuprovisioncot mmmuprostandardcot mmmuprocot mmmupro10options mmmupro4options mmmuprostandard10 "
     "mmmuprostandard4 mmmuprocomposite mmmuprooriginal",
     FORM_MMMU_PRO, FORM_CHOICE_PRO, "mmmu_pro_lmms", "mmmu_vlmevalkit", 256, "MMMU-Pro"},
    {"science_qa_img", "scienceqaimg scienceqa sqa sqaimg", FORM_SCIENCE, FORM_CHOICE, "scienceqa_lmms",
     "mcq_vlmevalkit", 16, "ScienceQA, with pictures"},
    {"st_qa", "stqa stvqa", FORM_P1, FORM_P1, "anls_lmms", "anls_vlmevalkit", 32, "ST-VQA"},
    {"tally_qa", "tallyqa", FORM_NUMBER, FORM_NUMBER, "tallyqa_vlmevalkit", "tallyqa_vlmevalkit", 0, "TallyQA"},
    {"coco_caption",
     "cococaption cococap coco2014cap coco2014capval coco2017cap coco2017capval cocoval cocokarpathy "
     "cococaptions",
     FORM_CAPTION, FORM_DESCRIPTION, "captions", "captions", 64, "COCO captions"},
};
enum { TASK_COUNT = sizeof TASKS / sizeof *TASKS, NAME_BYTES = 128 };

const struct task *task_at(size_t index) { return index < TASK_COUNT ? &TASKS[index] : NULL; }

static int has_alias(const char *aliases, const char *name) {
    size_t bytes = strlen(name);
    for (const char *at = aliases; bytes && (at = strstr(at, name)) != NULL; at++)
        if ((at == aliases || at[-1] == ' ') && (at[bytes] == ' ' || !at[bytes])) return 1;
    return 0;
}
/* The task of a folded name. */
static const struct task *find_folded(const char *name) {
    for (size_t i = 0; i < TASK_COUNT; i++) if (has_alias(TASKS[i].aliases, name)) return &TASKS[i];
    return NULL;
}
/* Removes the last word if it only names a split of a set. */
static int drop_tail(const char *words, size_t *bytes) {
    static const char tails[] = " val validation dev test testmini mini lite train tsv parquet local v1 en cn withqt ";
    char word[NAME_BYTES + 2];
    size_t start = *bytes, count;
    while (start && words[start - 1] != ' ') start--;
    count = *bytes - start;
    if (!start || !count) return 0;
    word[0] = ' ';
    memcpy(word + 1, words + start, count);
    word[count + 1] = ' ';
    word[count + 2] = 0;
    if (!strstr(tails, word)) return 0;
    *bytes = start - 1;
    return 1;
}
const struct task *task_find(const char *name) {
    char words[NAME_BYTES] = "", folded[NAME_BYTES];
    size_t bytes = 0;
    const char *slash = strrchr(name, '/');
    if (slash && slash[1]) name = slash + 1; /* an organisation, or folders */
    for (; *name && bytes + 1 < sizeof words; name++) {
        int is_gap = strchr("-_ .", *name) != NULL;
        if (!is_gap) words[bytes++] = (char)tolower((unsigned char)*name);
        else if (bytes && words[bytes - 1] != ' ') words[bytes++] = ' ';
    }
    if (*name) return NULL;
    while (bytes && words[bytes - 1] == ' ') bytes--;
    do {
        size_t count = 0;
        const struct task *task;
        for (size_t i = 0; i < bytes; i++) if (words[i] != ' ') folded[count++] = words[i];
        folded[count] = 0;
        if ((task = find_folded(folded)) != NULL) return task;
    } while (drop_tail(words, &bytes));
    return NULL;
}
