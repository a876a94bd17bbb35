// Floating-point functions of CUDA C: part of device.cuh. The machine has none, so that they are only declared: whoever
// calls one is told so, by its name and line, and not that there is no such name. The front end knows them by the prefix.
#pragma once
#define __QGPU_NAMED__(name) __asm__("__qgpu_float_" name)

#define __QGPU_FLOAT__(name) \
  extern "C" __attribute__((host, device)) double name(double) __QGPU_NAMED__(#name); \
  extern "C" __attribute__((host, device)) float name##f(float) __QGPU_NAMED__(#name "f");
__QGPU_FLOAT__(sqrt)
__QGPU_FLOAT__(sin)
__QGPU_FLOAT__(cos)
__QGPU_FLOAT__(tan)
__QGPU_FLOAT__(exp)
__QGPU_FLOAT__(exp2)
__QGPU_FLOAT__(log)
__QGPU_FLOAT__(log2)
__QGPU_FLOAT__(log10)
__QGPU_FLOAT__(fabs)
__QGPU_FLOAT__(floor)
__QGPU_FLOAT__(ceil)
__QGPU_FLOAT__(round)
__QGPU_FLOAT__(trunc)
__QGPU_FLOAT__(rsqrt)
__QGPU_FLOAT__(cbrt)
__QGPU_FLOAT__(tanh)
__QGPU_FLOAT__(sinh)
__QGPU_FLOAT__(cosh)
__QGPU_FLOAT__(asin)
__QGPU_FLOAT__(acos)
__QGPU_FLOAT__(atan)
__QGPU_FLOAT__(erf)
#undef __QGPU_FLOAT__
#define __QGPU_FLOAT__(name) \
  extern "C" __attribute__((host, device)) double name(double, double) __QGPU_NAMED__(#name); \
  extern "C" __attribute__((host, device)) float name##f(float, float) __QGPU_NAMED__(#name "f");
__QGPU_FLOAT__(pow)
__QGPU_FLOAT__(fmin)
__QGPU_FLOAT__(fmax)
__QGPU_FLOAT__(fmod)
__QGPU_FLOAT__(atan2)
__QGPU_FLOAT__(hypot)
#undef __QGPU_FLOAT__
#define __QGPU_FLOAT__(name) extern "C" __attribute__((device)) float name(float) __QGPU_NAMED__(#name);
__QGPU_FLOAT__(__expf)
__QGPU_FLOAT__(__exp10f)
__QGPU_FLOAT__(__logf)
__QGPU_FLOAT__(__log2f)
__QGPU_FLOAT__(__log10f)
__QGPU_FLOAT__(__sinf)
__QGPU_FLOAT__(__cosf)
__QGPU_FLOAT__(__tanf)
__QGPU_FLOAT__(__saturatef)
__QGPU_FLOAT__(__frcp_rn)
__QGPU_FLOAT__(__fsqrt_rn)
#undef __QGPU_FLOAT__
#define __QGPU_FLOAT__(name) extern "C" __attribute__((device)) float name(float, float) __QGPU_NAMED__(#name);
__QGPU_FLOAT__(__powf)
__QGPU_FLOAT__(__fdividef)
__QGPU_FLOAT__(__fadd_rn)
__QGPU_FLOAT__(__fsub_rn)
__QGPU_FLOAT__(__fmul_rn)
__QGPU_FLOAT__(__fdiv_rn)
#undef __QGPU_FLOAT__
extern "C" {
__attribute__((host, device)) double fma(double, double, double) __QGPU_NAMED__("fma");
__attribute__((host, device)) float fmaf(float, float, float) __QGPU_NAMED__("fmaf");
__attribute__((device)) float __fmaf_rn(float, float, float) __QGPU_NAMED__("__fmaf_rn");
__attribute__((device)) float __int_as_float(int) __QGPU_NAMED__("__int_as_float");
__attribute__((device)) int __float_as_int(float) __QGPU_NAMED__("__float_as_int");
__attribute__((device)) float __int2float_rn(int) __QGPU_NAMED__("__int2float_rn");
__attribute__((device)) int __float2int_rn(float) __QGPU_NAMED__("__float2int_rn");
__attribute__((device)) int __float2int_rz(float) __QGPU_NAMED__("__float2int_rz");
}
__QGPU_BOTH__ constexpr float min(float a, float b) { return b < a ? b : a; }
__QGPU_BOTH__ constexpr float max(float a, float b) { return a < b ? b : a; }
__QGPU_BOTH__ constexpr double min(double a, double b) { return b < a ? b : a; }
__QGPU_BOTH__ constexpr double max(double a, double b) { return a < b ? b : a; }
__QGPU_BOTH__ float abs(float a) { return __builtin_fabsf(a); }
__QGPU_BOTH__ double abs(double a) { return __builtin_fabs(a); }
__QGPU__ float atomicAdd(float* p, float v) { return __nvvm_atom_add_gen_f(p, v); }
#undef __QGPU_NAMED__
