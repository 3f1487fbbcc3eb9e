// 168 registers at entry: 384 threads.
#include "attention/sm_90a/test/entry.h"

SGTC_ATTENTION_TEST_KERNEL(d64)
SGTC_ATTENTION_TEST_KERNEL(d128)
