#pragma once
/*
 * libmicrohttpd, loaded when a process serves HTTP and not before: the other processes, of which
 * there are many, do without it and the libraries that it needs.
 */

#include <microhttpd.h>

/* The functions of the library that are used, by their names without MHD_. */
#define SL_MICROHTTPD_MAP(XX)                                                                      \
    XX(start_daemon)                                                                               \
    XX(stop_daemon)                                                                                \
    XX(get_daemon_info)                                                                            \
    XX(get_connection_info)                                                                        \
    XX(lookup_connection_value)                                                                    \
    XX(create_response_from_buffer)                                                                \
    XX(add_response_header)                                                                        \
    XX(queue_response)                                                                             \
    XX(destroy_response)

struct sl_microhttpd {
#define SL__MEMBER(name) __typeof__(MHD_##name) *name;
    SL_MICROHTTPD_MAP(SL__MEMBER)
#undef SL__MEMBER
};

/* The library, loaded once; NULL with SL_EUNAVAIL when it is not there. Any thread. */
const struct sl_microhttpd *sl_microhttpd(void);
