// What of the C library a .cu file may name in its host part; calling it in a kernel is refused by name.
#pragma once
#ifndef __CUDACC_RTC__  // NVRTC has no host part
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
extern "C" {
void* malloc(size_t);
void* calloc(size_t, size_t);
void free(void*);
[[noreturn]] void exit(int);
int atoi(const char*);
int rand();
void srand(unsigned);
}
#endif
