#pragma once
/*
 * Intrusive doubly linked lists: the node lives in the item, so linking never allocates.
 *
 *     struct job { int id; struct sl_list_node node; };
 *     sl_list_push_back(&jobs, &job->node);
 *     sl_list_each(&jobs, it) { struct job *job = sl_container_of(it, struct job, node); ... }
 */

#include <stdbool.h>
#include <stddef.h>

/* The struct that holds `member` at address ptr. */
#define sl_container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* A node that is in no list points to itself (after sl_list_node_create) or is zeroed. */
struct sl_list_node {
    struct sl_list_node *prev;
    struct sl_list_node *next;
};

/* A ring through the head; the list must not move while it has items. */
struct sl_list {
    struct sl_list_node head;
};

static inline void
sl_list_create(struct sl_list *list)
{
    list->head.prev = &list->head;
    list->head.next = &list->head;
}

static inline void
sl_list_node_create(struct sl_list_node *node)
{
    node->prev = node;
    node->next = node;
}

static inline bool
sl_list_is_empty(const struct sl_list *list)
{
    return list->head.next == &list->head;
}

/* True when the node is in some list. */
static inline bool
sl_list_is_linked(const struct sl_list_node *node)
{
    return node->next != NULL && node->next != node;
}

/* Puts a node that is in no list before another one. */
static inline void
sl_list_insert_before(struct sl_list_node *at, struct sl_list_node *node)
{
    node->prev = at->prev;
    node->next = at;
    at->prev->next = node;
    at->prev = node;
}

static inline void
sl_list_push_back(struct sl_list *list, struct sl_list_node *node)
{
    sl_list_insert_before(&list->head, node);
}

static inline void
sl_list_push_front(struct sl_list *list, struct sl_list_node *node)
{
    sl_list_insert_before(list->head.next, node);
}

/* Takes a node out of its list; one that is in no list stays so. */
static inline void
sl_list_remove(struct sl_list_node *node)
{
    if (sl_list_is_linked(node)) {
        node->prev->next = node->next;
        node->next->prev = node->prev;
    }
    sl_list_node_create(node);
}

/* The first or last node, or NULL. */
static inline struct sl_list_node *
sl_list_first(const struct sl_list *list)
{
    return sl_list_is_empty(list) ? NULL : list->head.next;
}

static inline struct sl_list_node *
sl_list_last(const struct sl_list *list)
{
    return sl_list_is_empty(list) ? NULL : list->head.prev;
}

/* Takes the first node out and gives it, or NULL. */
static inline struct sl_list_node *
sl_list_pop_front(struct sl_list *list)
{
    struct sl_list_node *node = sl_list_first(list);
    if (node != NULL) {
        sl_list_remove(node);
    }
    return node;
}

/* Visits the nodes in order; the body may remove the present one. */
#define sl_list_each(list, it)                                                                     \
    for (struct sl_list_node *it = (list)->head.next, *it##_next = it->next; it != &(list)->head;  \
         it = it##_next, it##_next = it->next)
