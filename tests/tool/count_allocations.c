// Preloaded into a program, counts its allocations and prints the count at its end.
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);

static atomic_long allocations;

void* malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}

void* realloc(void* memory, size_t size) {
  ++allocations;
  return __libc_realloc(memory, size);
}

__attribute__((destructor)) static void print_count(void) {
  fprintf(stderr, "allocations %ld\n", atomic_load(&allocations));
}
