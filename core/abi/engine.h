#pragma once
/*
 * What the executable tells the library at its start: how an executor's thread is run.  The library
 * makes threads but no Lua states; the executable, which embeds Lua, does.
 */

#include "batch/crew.h"
#include "stream/worker.h"

/* Called once before the first worker starts; NULL (a stock luajit) refuses to start threads. */
void sl_engine_set_executor_main(sl_executor_main_fn main);

/* The same for a member of a crew, before the first crew starts. */
void sl_engine_set_crew_main(sl_crew_main_fn main);
