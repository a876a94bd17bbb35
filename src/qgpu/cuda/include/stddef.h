// size_t and its kin.
#pragma once
#ifndef __CUDACC_RTC__  // NVRTC has them already
typedef __PTRDIFF_TYPE__ ptrdiff_t;
#ifndef NULL
#define NULL __null
#endif
#endif
#define offsetof(type, member) __builtin_offsetof(type, member)
