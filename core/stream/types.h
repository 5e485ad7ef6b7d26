#pragma once
/* The shapes of the hot path for C; see types.abi.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stream/types.abi.h"
