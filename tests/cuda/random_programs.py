"""Random C programs that mean the same on a host and on the device, and a host compiler to say what they mean.

Arithmetic is unsigned except where a cast makes it signed, shifts are masked and divisors are never zero, so that
nothing is undefined: the host's result is an oracle that shares no code with the front end.
"""

import ctypes
import random
import subprocess
from pathlib import Path

from qgpu.cuda.compile import find_compiler

HOST = """
#define __global__
#define __device__
#define __noinline__ __attribute__((noinline))
static inline unsigned __popc(unsigned x) { return __builtin_popcount(x); }
static inline unsigned __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
static inline unsigned __ffs(unsigned x) { return __builtin_ffs(x); }
static inline unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
static inline int __mulhi(int a, int b) { return ((long long)a * b) >> 32; }
static inline unsigned __umulhi(unsigned a, unsigned b) { return ((unsigned long long)a * b) >> 32; }
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) {
  return (((unsigned long long)hi << 32 | lo) << (s & 31)) >> 32;
}
static inline int min(int a, int b) { return a < b ? a : b; }
static inline unsigned umax(unsigned a, unsigned b) { return a < b ? b : a; }
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  unsigned long long pool = (unsigned long long)y << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; i++) result |= (unsigned)(pool >> (8 * (s >> 4 * i & 7)) & 255) << 8 * i;
  return result;
}
"""

BINARY = [
    "({a} + {b})", "({a} - {b})", "({a} * {b})", "({a} & {b})", "({a} | {b})", "({a} ^ {b})",
    "({a} << ({b} & 31))", "({a} >> ({b} & 31))", "((u32)((int){a} >> ({b} & 31)))",
    "({a} / ({b} | 1))", "({a} % ({b} | 1))",
    "((u32)((int){a} / (int)(({b} & 0xfff) + 2)))", "((u32)((int){a} % (int)(({b} & 0xfff) + 2)))",
    "((u32)__mulhi({a}, {b}))", "__umulhi({a}, {b})", "(u32)min((int){a}, (int){b})", "umax({a}, {b})",
    "((u32)((u64){a} * {b} >> 13))", "((u32)(((u64){a} << 32 | {b}) / 1000003ull))",
    "((u32)(((u64){a} << 7) + (long long)(int){b} >> 5))",
    "__byte_perm({a}, {b}, 0x3715)", "__funnelshift_l({a}, {b}, {a} >> 3)",
    "(({a} < {b}) ? {a} : {b} + 1)", "(u32)((int){a} <= (int){b})", "(u32)({a} == {b} || {a} > 77)",
    "helper({a}, {b})", "table[({a} ^ {b}) & 7]",
]  # fmt: skip
UNARY = [
    "(~{a})", "(-{a})", "__popc({a})", "__clz({a})", "__brev({a})", "((u32)(u8){a})", "((u32)(i8){a})",
    "((u32)(i16){a})", "((u32)(u16)({a} * 3u))", "(({a} >> 5) & 63)", "(u32)__ffs({a})", "(u32)!{a}",
]  # fmt: skip


class Program:
    """``source`` is a kernel ``k(const unsigned* in, unsigned* out)``: 4 words in, 4 words out, for thread i."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        body = self.block(3, 1)
        self.source = (
            "typedef unsigned u32; typedef unsigned long long u64; typedef unsigned char u8; typedef signed char i8;\n"
            "typedef unsigned short u16; typedef short i16;\n"
            "__device__ __noinline__ u32 helper(u32 x, u32 y) { return x > y ? x * 5 - y : (x ^ y) + 3; }\n"
            "__device__ void step(const u32* in, u32* out) {\n"
            "  u32 a = in[0], b = in[1], c = in[2], d = in[3], table[8];\n"
            "  for (int i = 0; i < 8; i++) table[i] = a * i + b;\n"
            f"{body}  out[0] = a; out[1] = b; out[2] = c; out[3] = d;\n}}\n"
        )

    @property
    def device(self) -> str:
        return self.source + (
            "__global__ void k(const u32* in, u32* out) {\n"
            "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  step(in + 4 * i, out + 4 * i);\n}\n"
        )

    def expression(self, depth: int) -> str:
        kind = self.random.random()
        if depth == 0 or kind < 0.15:
            number = self.random.choice(["7u", "0u", "1u", "0x80000000u", "255u", f"{self.random.getrandbits(32)}u"])
            return self.random.choice(["a", "b", "c", "d", "a", "b", number])
        if kind < 0.35:
            return self.random.choice(UNARY).format(a=self.expression(depth - 1))
        return self.random.choice(BINARY).format(a=self.expression(depth - 1), b=self.expression(depth - 1))

    def block(self, statements: int, depth: int) -> str:
        indent = "  " * depth
        lines = []
        for number in range(statements):
            kind = self.random.random()
            name = self.random.choice("abcd")
            if depth < 4 and kind < 0.25:
                lines.append(f"{indent}if ({self.expression(2)} & 1) {{\n{self.block(2, depth + 1)}{indent}}}")
                if self.random.random() < 0.5:
                    lines[-1] += f" else {{\n{self.block(2, depth + 1)}{indent}}}"
            elif depth < 3 and kind < 0.45:
                counter = f"i{depth}_{number}"
                leave = f"{indent}  if ({self.expression(1)} % 5 == 0) {self.random.choice(['break', 'continue'])};\n"
                lines.append(
                    f"{indent}for (u32 {counter} = 0; {counter} < ({name} & 7); {counter}++) {{\n"
                    f"{self.block(2, depth + 1)}{leave}{indent}  {name} += {counter};\n{indent}}}"
                )
            elif kind < 0.55:
                lines.append(f"{indent}table[{self.expression(1)} & 7] = {self.expression(2)};")
            else:
                lines.append(f"{indent}{name} = {self.expression(3)};")
        return "\n".join(lines) + "\n"

    def on_host(self, directory: Path) -> "ctypes._FuncPointer":
        """The program compiled for this host: f(in, out) on four words each."""
        source, library = directory / "step.cpp", directory / "step.so"
        source.write_text(f'{HOST}{self.source}extern "C" void f(const u32* in, u32* out) {{ step(in, out); }}\n')
        zig = find_compiler().command[0]
        subprocess.run(
            [zig, "c++", "-shared", "-nostdlib", "-O1", "-fwrapv", "-fPIC", "-fno-sanitize=all", "-w",
             str(source), "-o", str(library)],
            check=True, cwd=directory,
            env={"ZIG_GLOBAL_CACHE_DIR": str(directory), "ZIG_LOCAL_CACHE_DIR": str(directory), "PATH": ""},
        )  # fmt: skip
        return ctypes.CDLL(str(library)).f
