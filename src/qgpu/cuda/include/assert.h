// assert for kernels: a failed assertion traps, which ends the launch with a fault at the line of the assertion.
#pragma once
#ifdef NDEBUG
#define assert(condition) ((void)0)
#elif defined(__CUDACC_RTC__)
#define assert(condition) ((condition) ? (void)0 : __trap())
#else
#define assert(condition) ((condition) ? (void)0 : __builtin_trap())
#endif
