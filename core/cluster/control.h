#pragma once
/* Plain structs that clients, topology masters and Lua share. The bare header uses those of
 * packing, so it comes last. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// clang-format off
#include "packing/packing.h"
#include "cluster/control.abi.h"
// clang-format on
