#pragma once

struct lua_State;

/*
 * Makes `require 'streamlua.interrupt'` work in a state: how the REPL stops a running chunk on
 * Ctrl-C, also one in a tight loop. See interrupt.c for its functions.
 */
void sl_interrupt_install(struct lua_State *L);
