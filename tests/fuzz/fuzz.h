/*
 * Fuzz drivers: what the fuzzer calls, and how a driver reports a fault.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the program, so that the fuzzer keeps the input. */
static inline void require(bool ok)
{
	if (!ok)
		abort();
}

#endif
