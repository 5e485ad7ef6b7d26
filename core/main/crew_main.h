#pragma once

/* Tells the engine how the threads of crews run Lua: with states whose Lua tree is that of home. */
void sl_crew_main_install(const char *home);
