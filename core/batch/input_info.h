#pragma once
/* How many records each input brought to each batch. */

#include <stdint.h>

#include "base/vec.h"
#include "batch/job_set.h"

struct sl_input_info_entry {
    int64_t time;
    /* The text is owned. */
    struct sl_streaming_input input;
};

/* Zeroed memory is ready. Entries are in order of their report. */
struct sl_input_info {
    SL_VEC(struct sl_input_info_entry) entries;
};

void sl_input_info_destroy(struct sl_input_info *self);

/* SL_EEXIST for a second report of an input in a batch, SL_EINVAL for records below 0. */
int sl_input_info_report(struct sl_input_info *self, int64_t time,
                         const struct sl_streaming_input *input);

/* Adds what was reported for the batch of the set to it. */
void sl_input_info_fill(const struct sl_input_info *self, struct sl_job_set *set);

/* Forgets batches before the threshold. */
void sl_input_info_cleanup(struct sl_input_info *self, int64_t threshold);
