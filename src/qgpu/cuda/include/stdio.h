// What of the C library a .cu file may name in its host part; printf, which kernels have too, is in the device header.
#pragma once
#ifndef __CUDACC_RTC__  // NVRTC has no host part
#define stdout ((void*)1)
#define stderr ((void*)2)
extern "C" {
int fprintf(void*, const char*, ...);
int puts(const char*);
int putchar(int);
}
#endif
