// 96 registers at entry: 640 threads.
#include "attention/sm_90a/test/entry.h"

SGTC_ATTENTION_TEST_KERNEL(d64_wide)
