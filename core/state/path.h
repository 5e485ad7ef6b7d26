#pragma once
/* Paths of nodes: "/", or components of printable ASCII, each behind a slash. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Bytes of a path without its NUL; what a root and a GUID add still fits a buffer of 1,024. */
    SL_STATE_PATH_MAX = 700,
    SL_STATE_COMPONENT_MAX = 250,
    /* Digits that a sequential node's name ends in. */
    SL_STATE_SEQUENCE_DIGITS = 10,
    /* Characters of a GUID as text. */
    SL_STATE_GUID_TEXT = 32,
};

/*
 * Checks a path: starts with a slash, does not end in one (but for "/"), no empty component, none
 * that is "." or "..", only bytes 0x21..0x7e. Returns 0, or SL_EINVAL with the reason.
 */
int sl_state_path_check(const char *path);

/* The path of the parent ("/" for a top node), owned by the caller; "/" itself has none: NULL. */
char *sl_state_path_parent_dup(const char *path);

/* The last component; points into path. */
const char *sl_state_path_name(const char *path);

/* "parent/name", owned by the caller; "/" as parent adds no second slash. */
char *sl_state_path_join_dup(const char *parent, const char *name);

/* True when path is `above` or lies below it. */
bool sl_state_path_is_below(const char *path, const char *above);

/* The number a sequential node's name ends in, or -1. */
int64_t sl_state_path_sequence(const char *name);

/*
 * The path of a sequential create with a writer's mark, owned by the caller:
 * "/locks/x/lock-" becomes "/locks/x/_c_<guid>-lock-". So a create whose answer was lost can be
 * found again.
 */
char *sl_state_path_protect_dup(const char *path, const char *guid);

/* True when a name carries the mark of this GUID. */
bool sl_state_path_has_guid(const char *name, const char *guid);
