#pragma once
/*
 * Threads that run Lua.  The compiler of LuaJIT 2.1.0-beta3 on x86-64 may swap the two results of
 * a compiled `next` (pairs) with a 32-bit instruction, and one of them is the address of a place on
 * the C stack: where the stack lies above 4 GiB its upper half is lost and the program reads at a
 * wild address (ra_destpair in lj_asm.c, repaired upstream later).  On a stack below 4 GiB nothing
 * is lost.
 */

#include <pthread.h>
#include <stddef.h>

/* A running thread; owned by whoever started it. */
struct sl_thread {
    pthread_t id;
    /* Lowest byte of the mapping that holds its stack, NULL when the system chose one. */
    void *mapping;
    size_t mapping_bytes;
};

/*
 * Starts a thread whose stack lies below 4 GiB where the system can give one, and anywhere else
 * where it can not.  Returns 0 or an errno, as pthread_create does.
 */
int sl_thread_start(struct sl_thread *self, void *(*main)(void *), void *argument);

/* Waits for its end and gives its stack back; what `main` returned is lost. */
void sl_thread_join(struct sl_thread *self);
