// What of the C library a .cu file may name in its host part; calling it in a kernel is refused by name.
#pragma once
#define stdout ((void*)1)
#define stderr ((void*)2)
extern "C" {
int printf(const char*, ...);
int fprintf(void*, const char*, ...);
int puts(const char*);
int putchar(int);
}
