"""Expressions: trees against Python's own grammar, and every refusal with its caret."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgpu.driver.expression import Applied, Binary, Negative, Number, Rows, parse
from qgpu.errors import EvalError


def negative(tree):
    """A sign in front of a number is part of it, here and in Python."""
    return -tree if isinstance(tree, int) else ("-", tree)


def plain(node):
    """A tree as nested tuples, without places."""
    match node:
        case Number(value=value):
            return value
        case Rows(items=items):
            return ["rows", *map(plain, items)]
        case Negative(operand=operand):
            return negative(plain(operand))
        case Binary(operator=operator, left=left, right=right):
            return (plain(left), operator, plain(right))
        case Applied(name=name, arguments=arguments):
            return [name, *map(plain, arguments)]


SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.MatMult: "@", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
         ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}  # fmt: skip


def pythons(node):
    """The same from Python's parser, whose precedences ours should be."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=items):
            return ["rows", *map(pythons, items)]
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return pythons(operand)
        case ast.UnaryOp(operand=operand):
            return negative(pythons(operand))
        case ast.BinOp(left=left, op=operator, right=right):
            return (pythons(left), SIGNS[type(operator)], pythons(right))
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return (pythons(left), SIGNS[type(operator)], pythons(right))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return [name, *map(pythons, arguments)]


LEAVES = st.integers(0, 2**31 - 1).map(str)


def deeper(children):
    between = st.sampled_from(["+", "-", "*", "@", " - ", " @", "//", "%", " ** ", "**"])
    pairs = st.tuples(children, between, children).map("".join)
    lists = st.lists(children, min_size=1, max_size=3).map(lambda items: f"[{', '.join(items)}]")
    signs = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    compared = st.tuples(children, signs, children).map("(({0[0]}){0[1]}({0[2]}))".format)
    applied = st.lists(children, min_size=1, max_size=3).map(lambda items: f"max({', '.join(items)})")
    signed = (children.map(f"{sign}{{}}".format) for sign in ("-", "+ "))
    return st.one_of(pairs, lists, compared, applied, children.map("({})".format), *signed)


@given(st.recursive(LEAVES, deeper, max_leaves=12))
def test_trees_are_pythons(text):
    assert plain(parse(text)) == pythons(ast.parse(text, mode="eval").body)


def test_places_point_into_the_text():
    text = " [1, 2]  @ (3 + -4)"
    tree = parse(text)
    assert isinstance(tree, Binary)
    assert text[slice(*tree.left.span)] == "[1, 2]"
    assert text[tree.at] == "@"
    assert text[slice(*tree.right.right.span)] == "-4"


def test_the_lowest_integer_can_be_written():
    assert plain(parse("-2147483648")) == -(2**31)


@pytest.mark.parametrize(
    ("text", "caret", "message"),
    [
        ("2147483648", "^^^^^^^^^^", "this does not fit in 32 bits (-2147483648..2147483647)"),
        ("1 + -2147483649", "    ^^^^^^^^^^^", "this does not fit in 32 bits"),
        ("1 +", "   ^", "the expression ends where a number"),
        ("(1 + 2", "^", "this '(' is never closed"),
        ("1 + [2, 3", "    ^", "this '[' is never closed"),
        ("[1, 2)", "     ^", "')' is not expected here: ']' or an operator is"),
        ("1 2", "  ^", "'2' is not expected here: an operator"),
        ("1 + * 2", "    ^", "'*' is not expected here"),
        ("[]", "^^", "a vector has at least one element"),
        ("[1,]", "   ^", "']' is not expected here"),
        ("1.5 + 2", "^^^", "floating point is not there yet"),
        ("1 + 2x", "    ^^", "this is not an integer"),
        ("6 / 2", "  ^", "'/' is no part of an expression: use // for the quotient rounded down"),
        ("6 = 2", "  ^", "'=' is no part of an expression: use == to compare"),
        ("abs 1", "^^^", "'abs' is a function: give it arguments, abs(...)"),
        ("1 + abs()", "    ^^^^^", "a function has at least one argument"),
        ("max(1, 2", "   ^", "this '(' is never closed"),
        ("1 < 2 < 3", "      ^", "comparisons do not chain"),
        ("2 ** * 3", "     ^", "'*' is not expected here"),
        ("1 +\n2 3", "  ^", "'3' is not expected here"),
    ],
)
def test_refusals_point_at_the_place(text, caret, message):
    with pytest.raises(EvalError) as error:
        parse(text)
    first, line, marks = str(error.value).split("\n")
    assert first.startswith(message)
    assert line[2:] in text.split("\n")
    assert marks[2:] == caret


@pytest.mark.parametrize("text", ["", "  \n"])
def test_nothing_is_no_expression(text):
    with pytest.raises(EvalError, match="the expression is empty"):
        parse(text)


@pytest.mark.parametrize(
    "text", ["[" * 5000, "(" * 5000 + "1" + ")" * 5000, "-" * 5000 + "1", "1**" * 5000 + "1", "abs(" * 5000 + "1"]
)
def test_depth_is_bounded(text):
    with pytest.raises(EvalError, match="more than 100"):
        parse(text)
