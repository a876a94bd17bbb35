"""Random blocks made such as circuits have them: combinations that ``subset.rules`` refuses are turned into others."""

from __future__ import annotations

from collections.abc import Mapping

from qgpu.isa import subset


def mended(fields: Mapping[str, int | str]) -> dict[str, int | str]:
    """The fields (by name of choice) with as little changed as the rules ask for; the choice stays random where it
    was."""
    f = dict(fields)
    op, alu = f.get("m_op", "first"), f.get("alu_b", "add")
    wide, atomic = f.get("store") == "b64", f.get("atomic", "none")
    if wide and (f.get("d_o") or atomic in ("inc", "dec") or (atomic == "cas" and f.get("rb") == _first(f))):
        f["store"] = "b32"
    if atomic != "none" and f.get("store") in ("b8", "b16"):
        f["store"] = "b32"
    if f.get("d_o"):
        f["rc"] = f["d_o"]
    if f.get("alu_a", "add") not in subset.REVISED["alu_a"]:
        f["alu_a"] = "prmt" if len(str(f["alu_a"])) % 2 else "slct"
    if alu not in subset.QUICK:
        alu = f["alu_b"] = "andn" if len(str(alu)) % 2 else "rsub"
    if op in subset.PRODUCTS and alu not in subset.AFTER_PRODUCT:
        f["alu_b"] = "sub" if str(alu).startswith("m") else "rsub"
    elif op != "first" and op not in subset.PRODUCTS:
        if f.get("m2_sel", "zero") not in subset.AMOUNTS:
            f["m2_sel"] = "I"
        if alu in subset.BOUNDS:
            f["alu_b"] = "xor"
    if op != "first" and f.get("p_write") and f.get("p_src") == "b":
        f["p_src"] = "a"
    if f.get("load", "none") != "none" and f.get("alu_a", "add") not in subset.QUICK:
        f["alu_a"] = "add"
    return f


def _first(fields: Mapping[str, int | str]) -> int | str:
    """The block's first destination."""
    return fields.get("d_e", 0) or fields.get("d_b", 0)
