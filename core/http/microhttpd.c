#include "http/microhttpd.h"

#include <dlfcn.h>
#include <pthread.h>

#include "base/err.h"

#define LIBRARY "libmicrohttpd.so.12"

static struct sl_microhttpd functions;
static const char *missing;

static void
load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        missing = LIBRARY;
        return;
    }
#define LOAD(name)                                                                                 \
    functions.name = (__typeof__(functions.name))dlsym(library, "MHD_" #name);                     \
    if (functions.name == NULL) {                                                                  \
        missing = "MHD_" #name " of " LIBRARY;                                                     \
    }
    SL_MICROHTTPD_MAP(LOAD)
#undef LOAD
}

const struct sl_microhttpd *
sl_microhttpd(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    if (missing != NULL) {
        sl_err_set(SL_EUNAVAIL, "%s is not installed (Debian: libmicrohttpd12)", missing);
        return NULL;
    }
    return &functions;
}
