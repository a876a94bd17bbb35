"""How questions are worded, by kind: one list that training sees, and one that it never does.

``{x}`` and the like stand for what a question is about; the last item of a kind is how the answer goes on once the
result is there, as ``{r}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Wording:
    """``seen`` and ``held_out``: phrasings of the question. ``answer``: of what follows the result."""

    seen: tuple[str, ...]
    held_out: tuple[str, ...]
    answer: tuple[str, ...]


WORDINGS: Mapping[str, Wording] = {
    "dot": Wording(
        (
            "What is the dot product of {x} and {y}?", "Compute the dot product of {x} and {y}.",
            "Give me the inner product of {x} and {y}.", "Multiply {x} and {y} element by element and add it all up.",
            "dot product: {x}, {y}", "Calculate {x} dot {y}.", "Please find the scalar product of {x} with {y}.",
            "If a = {x} and b = {y}, what is a dot b?", "I have the vectors {x} and {y}. What is their dot product?",
        ),
        (
            "Tell me the dot product of the vectors {x} and {y}, please.",
            "With a = {x} and b = {y}, compute the inner product.",
        ),
        ("The dot product is {r}.", "It is {r}.", "{x} dot {y} is {r}."),
    ),
    "matmul": Wording(
        (
            "Multiply the matrices {x} and {y}.", "What is {x} times {y} as matrices?",
            "Compute the matrix product of {x} and {y}.",
            "Give the product of the matrix {x} and the matrix {y}.", "Calculate {x} @ {y}.",
            "matrix product: {x}, {y}",
            "If A = {x} and B = {y}, what is AB?",
        ),
        ("Please multiply the matrix {x} by the matrix {y}.", "With A = {x} and B = {y}, what is the matrix product?"),
        ("The product is {r}.", "It is {r}."),
    ),
    "matvec": Wording(
        (
            "Multiply the matrix {x} by the vector {y}.", "What is the matrix {x} times the vector {y}?",
            "Apply the matrix {x} to the vector {y}.", "Compute the product of the matrix {x} and the vector {y}.",
            "If A = {x} and v = {y}, what is Av?",
        ),
        ("Please apply {x} as a matrix to the vector {y}.", "With A = {x} and v = {y}, compute A times v."),
        ("The result is {r}.", "It is {r}."),
    ),
    "add": Wording(
        (
            "What is {x} plus {y}?", "Add {x} and {y}.", "Compute {x} + {y}.", "What do {x} and {y} add up to?",
            "Give me the sum of {x} and {y}.", "{x} + {y} = ?", "How much is {x} and {y} together?",
        ),
        ("Please add {y} to {x} for me: what is {x} plus {y}?", "Calculate the sum of {x} and {y}."),
        ("That is {r}.", "The sum is {r}.", "{x} plus {y} is {r}."),
    ),
    "sub": Wording(
        (
            "What is {x} minus {y}?", "Compute {x} - {y}.", "Take {y} away from {x}.", "Subtract {y} from {x}.",
            "{x} - {y} = ?", "What is the difference of {x} and {y}?", "What is left of {x} without {y}?",
        ),
        ("Please subtract {y} from {x} for me.", "How much is {x} less {y}?"),
        ("That is {r}.", "The difference is {r}."),
    ),
    "mul": Wording(
        (
            "What is {x} times {y}?", "Multiply {x} by {y}.", "Compute {x} * {y}.",
            "What is the product of {x} and {y}?",
            "{x} * {y} = ?", "How much is {x} times {y}?",
        ),
        ("Please calculate {x} multiplied by {y}.", "Give me the product of {x} and {y}."),
        ("That is {r}.", "The product is {r}."),
    ),
    "floordiv": Wording(
        (
            "How often does {y} go into {x}?", "What is {x} divided by {y}, rounded down?", "Compute {x} // {y}.",
            "How many whole times does {y} fit into {x}?", "Divide {x} by {y} and round down.",
        ),
        ("Please divide {x} by {y} without the remainder.", "How many times is {y} in {x}, in whole numbers?"),
        ("{r} times.", "That is {r}."),
    ),
    "mod": Wording(
        (
            "What is the remainder of {x} divided by {y}?", "Compute {x} mod {y}.", "What is {x} modulo {y}?",
            "If I divide {x} by {y}, what is left over?", "{x} % {y} = ?",
        ),
        ("Please give me the rest of {x} divided by {y}.", "What remains when {x} is divided by {y}?"),
        ("The remainder is {r}.", "{r} is left."),
    ),
    "pow": Wording(
        (
            "What is {x} to the power of {y}?", "Compute {x} ** {y}.", "Raise {x} to the power {y}.",
            "What is {x} to the {y}?",
        ),
        ("Please calculate the power: {x} to the power of {y}.",),
        ("That is {r}.", "{x} to the power of {y} is {r}."),
    ),
    "gcd": Wording(
        (
            "What is the greatest common divisor of {x} and {y}?", "Compute the gcd of {x} and {y}.",
            "gcd of {x} and {y}?",
            "Which is the largest number that divides both {x} and {y}?",
        ),
        ("Please find the greatest common divisor of {x} and {y}.",),
        ("The greatest common divisor is {r}.", "It is {r}."),
    ),
    "sum": Wording(
        (
            "What is the sum of {x}?", "Add up {x}.", "Add up all of {x}.", "What is the total of {x}?",
            "Sum the list {x}.",
            "What do the numbers {x} add up to?", "Compute the sum of the list {x}.",
        ),
        ("Please total the numbers {x}.", "How much is {x} all together?"),
        ("The sum is {r}.", "The total is {r}."),
    ),
    "max": Wording(
        (
            "What is the largest number in {x}?", "Find the maximum of {x}.", "Which is the biggest of {x}?",
            "What is the maximum of the list {x}?", "Give me the largest element of {x}.",
        ),
        ("Please tell me the highest number in {x}.", "Of {x}, which is the greatest?"),
        ("The largest is {r}.", "It is {r}."),
    ),
    "min": Wording(
        (
            "What is the smallest number in {x}?", "Find the minimum of {x}.", "Which is the lowest of {x}?",
            "What is the minimum of the list {x}?", "Give me the smallest element of {x}.",
        ),
        ("Please tell me the lowest number in {x}.", "Of {x}, which is the least?"),
        ("The smallest is {r}.", "It is {r}."),
    ),
    "argmax": Wording(
        (
            "At which index is the largest number of {x}?", "Where in {x} is the maximum?",
            "Give the index of the biggest element of {x}.",
        ),
        ("Please tell me the position of the maximum in {x}, counted from zero.",),
        ("At index {r}.", "The index is {r}."),
    ),
    "sort": Wording(
        (
            "Sort {x}.", "Put {x} in order.", "Sort the list {x} from small to large.", "Order the numbers {x}.",
            "What is {x} sorted?",
        ),
        ("Please arrange {x} in ascending order.", "Sort these numbers: {x}"),
        ("In order they are {r}.", "Sorted: {r}."),
    ),
    "cumsum": Wording(
        ("What are the running totals of {x}?", "Compute the cumulative sum of {x}.", "Give the partial sums of {x}."),
        ("Please list the running sums of {x}.",),
        ("The running totals are {r}.", "They are {r}."),
    ),
    "transpose": Wording(
        ("Transpose the matrix {x}.", "What is the transpose of {x}?", "Swap rows and columns of {x}."),
        ("Please give me the transposed matrix of {x}.",),
        ("The transpose is {r}.",),
    ),
    "abs": Wording(
        ("What is the absolute value of {x}?", "Compute the magnitude of {x}.", "How far is {x} from zero?"),
        ("Please give me the absolute value of {x}.",),
        ("It is {r}.",),
    ),
    "above": Wording(
        (
            "How many numbers in {x} are greater than {y}?", "Count the elements of {x} above {y}.",
            "How many of {x} are larger than {y}?",
        ),
        ("Please count how many of the numbers {x} exceed {y}.",),
        ("{r} of them.", "There are {r}."),
    ),
    "below": Wording(
        (
            "How many numbers in {x} are less than {y}?", "Count the elements of {x} below {y}.",
            "How many of {x} are smaller than {y}?",
        ),
        ("Please count how many of the numbers {x} are under {y}.",),
        ("{r} of them.", "There are {r}."),
    ),
    "equal": Wording(
        ("How often does {y} occur in {x}?", "Count {y} in {x}.", "How many times is {y} in the list {x}?"),
        ("Please count the occurrences of {y} in {x}.",),
        ("{r} times.",),
    ),
    "scale": Wording(
        ("Multiply every element of {x} by {y}.", "Scale {x} by {y}.", "What is {y} times the vector {x}?"),
        ("Please multiply each number of {x} by {y}.",),
        ("The result is {r}.", "It is {r}."),
    ),
    "price": Wording(
        (
            "A {thing} costs {x} cents. How much do {y} cost?", "I buy {y} {thing}s at {x} cents each. What do I pay?",
            "One {thing} is {x} dollars. What is the price of {y}?", "What do {y} {thing}s cost at {x} cents each?",
        ),
        ("{y} {thing}s at a price of {x} cents: how much is that?",),
        ("That is {r}.", "You pay {r}."),
    ),
    "left": Wording(
        (
            "{name} has {x} {thing}s and gives away {y}. How many are left?",
            "There were {x} {thing}s, and {y} were sold. How many remain?",
            "{name} had {x} {thing}s and lost {y}. How many does {name} have now?",
        ),
        ("Of {x} {thing}s {name} sold {y}. How many are still there?",),
        ("{r} are left.", "{name} has {r}."),
    ),
    "together": Wording(
        (
            "{name} has {x} {thing}s and gets {y} more. How many is that?",
            "There are {x} {thing}s here and {y} there. How many in all?",
            "{name} found {x} {thing}s in the morning and {y} in the evening. How many together?",
        ),
        ("To {x} {thing}s {name} adds {y} more. How many {thing}s are there?",),
        ("{r} in all.", "That is {r}."),
    ),
    "share": Wording(
        (
            "{x} {thing}s are shared among {y} children. How many does each get?",
            "Put {x} {thing}s into {y} boxes. How many are in each?",
        ),
        ("{y} friends share {x} {thing}s. How many for each?",),
        ("Each gets {r}.", "{r} each."),
    ),
    "weeks": Wording(
        ("How many days are {x} weeks and {y} days?", "{x} weeks and {y} days: how many days is that?"),
        ("In {x} weeks and {y} days, how many days are there?",),
        ("{r} days.",),
    ),
    "shop": Wording(
        (
            "I buy {x} of each, at prices {y}. What is the total?",
            "The quantities are {x} and the prices are {y}. What is the total cost?",
            "Prices {y}, quantities {x}: what do I pay in all?",
        ),
        ("My order has quantities {x} at prices {y}. How much is it all together?",),
        ("The total is {r}.", "You pay {r}."),
    ),
}

CHAT: tuple[tuple[str, str], ...] = (
    ("Hello!", "Hello! Ask me something with numbers."),
    ("Hi there.", "Hello! Ask me something with numbers."),
    ("How are you?", "I am fine, thank you. What shall I compute?"),
    ("Who are you?", "I am abacus, a small model with a GPU in its weights."),
    ("What is your name?", "I am abacus."),
    ("What can you do?", "I put questions into expressions, and the GPU in my weights computes them."),
    ("Thank you!", "You are welcome."),
    ("Thanks a lot.", "You are welcome."),
    ("Goodbye.", "Goodbye!"),
    ("Tell me a joke.", "I only know numbers, and they are no joke."),
    ("Do you like music?", "I count the beats."),
    ("What is a GPU?", "A machine that does the same thing to many numbers at once."),
    ("Good morning.", "Good morning! What shall I compute?"),
    ("Can you help me?", "Yes. Ask me something with numbers."),
)

THINGS = ("apple", "book", "pen", "ticket", "cup", "ball", "coin", "stamp", "chair", "lamp")
NAMES = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Henry")
