#pragma once
/* What the processes of a cluster are started with. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/roles.abi.h"
