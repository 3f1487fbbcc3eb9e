// The main function of the tests under Catch2 2; Catch2 3 brings its own.
#define CATCH_CONFIG_MAIN
#include "support/catch.h"
