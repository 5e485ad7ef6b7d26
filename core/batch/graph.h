#pragma once
/*
 * The graph of streams as far as time is concerned: who is made from whom, which times a stream is
 * valid at, which datasets exist (numbers of the driver's), how long they are remembered, and which
 * of them are saved.
 *
 *     input (slide 1 s) <- map <- window (W 4 s, slide 2 s) <- output
 *
 * A node's parents have smaller numbers, so walking from the last node to the first one meets every
 * node before its parents.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "batch/streaming_types.h"

/* A saved dataset; the text is owned. */
struct sl_graph_saved {
    int64_t time;
    char *text;
};

/* The oldest saved dataset that the checkpoint of a batch refers to. */
struct sl_graph_reference {
    int64_t batch;
    int64_t oldest;
};

struct sl_graph_node {
    char *name;
    char *call_site;
    int64_t slide_ms;
    int64_t window_ms;
    /* 0 = not set. */
    int64_t remember_ms;
    int64_t checkpoint_ms;
    SL_VEC(int32_t) parents;
    uint32_t flags;
    int32_t input_id;
    bool is_initialized;
    /* Inputs: the latest time that was asked for. */
    int64_t last_valid;
    /* In order of time, at most one a time. */
    SL_VEC(struct sl_streaming_dataset) datasets;
    /* All saved ones that still exist, and those that the next checkpoint names; by time. */
    SL_VEC(struct sl_graph_saved) saved;
    SL_VEC(int64_t) current;
    SL_VEC(struct sl_graph_reference) references;
};

struct sl_graph {
    SL_VEC(struct sl_graph_node *) nodes;
    /* Outputs in order of declaration. */
    SL_VEC(int32_t) outputs;
    int32_t input_count;
    int64_t batch_ms;
    /* SL_STREAMING_UNKNOWN before the start. */
    int64_t zero_time;
    /* 0 = not set. */
    int64_t remember_ms;
};

void sl_graph_create(struct sl_graph *self, int64_t batch_ms);
void sl_graph_destroy(struct sl_graph *self);

/* The node of a number, or NULL with SL_EINVAL. */
struct sl_graph_node *sl_graph_node(const struct sl_graph *self, int32_t node);

/* The number of the node of a name, or SL_ENOTFOUND (without setting the error). */
int32_t sl_graph_find_name(const struct sl_graph *self, const char *name);

/*
 * Adds a node (see struct sl_streaming_node) and returns its number. SL_EINVAL for a definition
 * that breaks a rule: no name, unknown parent, slides of parents that differ, a slide or window
 * that is no multiple of the parents' slide (of the batch interval for an input). SL_EEXIST for a
 * name that is taken.
 */
int32_t sl_graph_add(struct sl_graph *self, const struct sl_streaming_node *node);

/* SL_EEXIST when another node has the name. */
int sl_graph_rename(struct sl_graph *self, int32_t node, const char *name);

/* Initialises and validates everything that an output needs. has_checkpoint_dir: there is a place
 * for checkpoints. SL_EINVAL with the first rule that is broken. */
int sl_graph_start(struct sl_graph *self, int64_t zero_time, bool has_checkpoint_dir);

/* What is known of a node at a time; *out is filled in as far as it applies. SL_ECONFLICT for a
 * stream that was not initialised. Returns enum sl_streaming_found. */
int sl_graph_find(struct sl_graph *self, int32_t node, int64_t time,
                  struct sl_streaming_dataset *out);

/* SL_EEXIST when the node has a dataset at this time. */
int sl_graph_put(struct sl_graph *self, int32_t node, int64_t time, uint64_t handle);

typedef void (*sl_graph_drop_fn)(void *ctx, int32_t node,
                                 const struct sl_streaming_dataset *dataset);

/* Forgets what is older than the remember durations as of batch t and tells of each dataset. */
void sl_graph_clear_metadata(struct sl_graph *self, int64_t time, sl_graph_drop_fn drop, void *ctx);

/* The longest remember duration of an initialised input, 0 without one. */
int64_t sl_graph_max_input_remember(const struct sl_graph *self);

/* A dataset was saved; a second one of the same time replaces the first. */
void sl_graph_saved_add(struct sl_graph_node *node, int64_t time, const char *text);

/* Decides what the checkpoint of a batch names: the saved datasets that are remembered. */
void sl_graph_update_checkpoint(struct sl_graph *self, int64_t time);

typedef void (*sl_graph_file_fn)(void *ctx, const char *text);

/* The checkpoint of a batch is on the disk: forgets saved datasets that are older than the oldest
 * one it names, and tells of the files of nodes that own them. */
void sl_graph_clear_checkpoint(struct sl_graph *self, int64_t time, sl_graph_file_fn remove,
                               void *ctx);

/* The saved dataset of a time, or NULL. */
const struct sl_graph_saved *sl_graph_saved_at(const struct sl_graph_node *node, int64_t time);
