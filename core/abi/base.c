#include "abi/abi.h"

int32_t
sl_abi_version(void)
{
    return SL_ABI_VERSION;
}

const char *
sl_version(void)
{
    return SL_VERSION;
}
