// What of the C library a .cu file may name in its host part, and memcpy and memset, which clang expands by itself.
#pragma once
#ifndef __CUDACC_RTC__  // NVRTC has no host part
extern "C" {
__attribute__((host, device)) void* memcpy(void*, const void*, size_t);
__attribute__((host, device)) void* memset(void*, int, size_t);
int memcmp(const void*, const void*, size_t);
int strcmp(const char*, const char*);
size_t strlen(const char*);
}
#endif
