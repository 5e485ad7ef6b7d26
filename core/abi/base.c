#include "abi/abi.h"
#include "base/err.h"
#include "state/zookeeper.h"

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

const char *
sl_zookeeper_version(void)
{
    return sl_zookeeper_client_version();
}

int32_t
sl_error_code(void)
{
    return sl_err_last()->code;
}

const char *
sl_error_name(int32_t code)
{
    return sl_err_name(code);
}

const char *
sl_error_text(int32_t code)
{
    return sl_err_text(code);
}

int32_t
sl_error_from_name(const char *name)
{
    return name != NULL ? sl_err_code(name) : 0;
}

const char *
sl_error_message(void)
{
    return sl_err_last()->msg;
}

int32_t
sl_error_errno(void)
{
    return sl_err_last()->sys_errno;
}

const char *
sl_error_file(void)
{
    const char *file = sl_err_last()->file;
    return file != NULL ? file : "";
}

int32_t
sl_error_line(void)
{
    return sl_err_last()->line;
}

int32_t
sl_error_cause_count(void)
{
    return sl_err_last()->cause_count;
}

const char *
sl_error_cause(int32_t index)
{
    const struct sl_err *err = sl_err_last();
    return index >= 0 && index < err->cause_count ? err->causes[index].msg : "";
}

void
sl_error_clear(void)
{
    sl_err_clear();
}
