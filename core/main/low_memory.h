#pragma once
/*
 * Keeps the memory of Lua below 4 GiB while there is room.
 *
 * The compiler of LuaJIT 2.1.0-beta3 on x86-64 may swap the two results of a compiled `next` (and
 * so of pairs) with a 32-bit exchange; the upper half of an address is lost and the program reads
 * at a wild one (ra_destpair in lj_asm.c, repaired upstream later). Whether a loop is hit depends
 * on how registers fall. The address is that of a place in a table or on the C stack: below 4 GiB
 * nothing is lost. base/thread.h does the same for the stack.
 *
 * LuaJIT maps the memory of its allocator by mmap64 and grows it by mremap. This file defines both
 * for the whole program, which no other library calls; sanitized builds, where Lua uses malloc, do
 * not have it.
 */
