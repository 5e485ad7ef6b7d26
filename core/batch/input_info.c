#include "batch/input_info.h"

#include "base/err.h"

static void
entry_free(struct sl_input_info_entry *entry)
{
    sl_free((char *)(uintptr_t)entry->input.metadata);
}

void
sl_input_info_destroy(struct sl_input_info *self)
{
    sl_input_info_cleanup(self, INT64_MAX);
    sl_vec_destroy(&self->entries);
}

int
sl_input_info_report(struct sl_input_info *self, int64_t time,
                     const struct sl_streaming_input *input)
{
    if (input->records < 0) {
        return sl_err_set(SL_EINVAL, "an input reports %lld records", (long long)input->records);
    }
    for (size_t i = 0; i < self->entries.count; i++) {
        const struct sl_input_info_entry *entry = &self->entries.items[i];
        if (entry->time == time && entry->input.input_id == input->input_id) {
            return sl_err_set(SL_EEXIST, "input %d has reported its records at %lld ms already",
                              input->input_id, (long long)time);
        }
    }
    struct sl_input_info_entry entry = {time, *input};
    entry.input.metadata = sl_strdup(input->metadata != NULL ? input->metadata : "");
    sl_vec_push(&self->entries, entry);
    return 0;
}

void
sl_input_info_fill(const struct sl_input_info *self, struct sl_job_set *set)
{
    for (size_t i = 0; i < self->entries.count; i++) {
        if (self->entries.items[i].time == set->time) {
            sl_job_set_input(set, &self->entries.items[i].input);
        }
    }
}

void
sl_input_info_cleanup(struct sl_input_info *self, int64_t threshold)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->entries.count; i++) {
        if (self->entries.items[i].time < threshold) {
            entry_free(&self->entries.items[i]);
        } else {
            self->entries.items[kept++] = self->entries.items[i];
        }
    }
    self->entries.count = kept;
}
