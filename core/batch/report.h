#pragma once
/* Reports of batches: copies that stay as they were when they were made, and a queue of events. */

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "batch/graph.h"
#include "batch/job_set.h"

/* An event with its report. Names and call sites are those of the graph; everything else is owned.
 */
struct sl_report {
    struct sl_list_node node;
    enum sl_streaming_event event;
    struct sl_streaming_report body;
};

/* A report of a batch as it is now, with all its operations or (operation >= 0) just one. */
struct sl_report *sl_report_batch_new(enum sl_streaming_event event, const struct sl_graph *graph,
                                      const struct sl_job_set *set, int32_t operation);

/* A report of a receiver; its texts are copied. */
struct sl_report *sl_report_receiver_new(enum sl_streaming_event event, int64_t time,
                                         const struct sl_streaming_receiver *receiver);

/* A report of a time alone. */
struct sl_report *sl_report_time_new(enum sl_streaming_event event, int64_t time);

void sl_report_free(struct sl_report *report);
