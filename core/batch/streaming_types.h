#pragma once
/* The structs and enums of micro-batches that Lua sees too. */

#include <stddef.h>
#include <stdint.h>

#include "batch/streaming.abi.h"
