"""What a compiled kernel does with secrets, read from the code that the optimiser made of it.

A value is secret if it is loaded from memory that is not declared public, or follows from one that
is. A kernel takes the same time whatever the secrets are if none of them decides a branch, is part
of an address, or is an operand of an instruction or a call whose time may depend on it. The
analysis follows calls and is conservative. The last step, to machine code, may make branches of
choices that had none; `machine_branches` compares with code for which it was forbidden to. What no
code shows is whether numbers are subnormal: `subnormals` asks the processor.
"""

import ctypes
import json
import platform
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba

# What becomes plain instructions of fixed time on the processors that numba compiles for.
_FIXED = (
    *("abs", "copysign", "ctpop", "fabs", "floor", "ceil", "trunc", "rint", "roundeven"),
    *("nearbyint", "fma", "fmuladd", "fshl", "fshr", "minnum", "maxnum", "minimum", "maximum"),
    *("smin", "smax", "umin", "umax", "vector.reduce", "is.fpclass"),
    *("assume", "lifetime", "experimental.noalias", "dbg"),
)
_INTRINSIC = re.compile(r"llvm\.(?:" + "|".join(map(re.escape, _FIXED)) + r")\b")
_COPIES = re.compile(r"llvm\.mem(?:set|cpy|move)\b")  # their length must be public
_POINTERS = {"getelementptr", "bitcast", "phi", "select", "freeze", "addrspacecast"}


class Unsteady(AssertionError):
    """Secrets may decide how long a kernel takes."""


def optimised(kernel: Any, arguments: tuple[Any, ...]) -> tuple[str, str]:
    """Compile ``kernel`` for ``arguments``; return its name and its optimised code."""
    typeof: Any = numba.typeof
    compiled: Any = numba.njit(nogil=True)(kernel.py_func)  # the cache keeps no such code
    compiled.compile(tuple(map(typeof, arguments)))
    (signature,) = compiled.signatures
    name = compiled.overloads[signature].fndesc.llvm_func_name
    return name, compiled.inspect_llvm(signature)


def check_steady(name: str, code: str, *, public: Collection[str] = ()) -> int:
    """Raise `Unsteady` if the time that a kernel takes may depend on secrets.

    ``public`` names arrays that hold no secrets; sizes and plain numbers never are secret. Returns
    how many values are.
    """
    module = llvm.parse_assembly(code)
    analysis = _Analysis(module)
    arrays = {f"arg.{each}.4" for each in public}  # the fourth part of an array is its memory
    function = module.get_function(name)
    memory = tuple(each.name in arrays for each in function.arguments)
    analysis.enter(function, (False,) * len(memory), memory)
    if analysis.faults:
        raise Unsteady("\n".join(analysis.faults))
    return analysis.secret


_EMIT = """
import json, re, sys
import llvmlite.binding as llvm

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
jump = re.compile(r"^\\s+(?:j(?!mp)[a-z]+|b\\.[a-z]+|cbn?z|tbn?z)\\s", re.MULTILINE)
codes = json.loads(sys.stdin.read())


def jumps():
    counts = []
    for code in codes:
        module = llvm.parse_assembly(code)
        target = llvm.Target.from_triple(module.triple).create_target_machine(
            cpu=llvm.get_host_cpu_name(),
            features=llvm.get_host_cpu_features().flatten(),
            opt=3,
            codemodel="jitdefault",
            jit=True,
        )
        counts.append(len(jump.findall(target.emit_assembly(module))))
    return counts


usual = jumps()
for option in sys.argv[1:]:
    llvm.set_option("", option)
print(json.dumps([usual, jumps()]))
"""


def machine_branches(codes: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return how many branches the machine code of each has, and has without any made of choices.

    In a process of its own: the compiler's options stay set.
    """
    options = ["-disable-cgp-select2branch", "-disable-select-optimize"]
    if platform.machine() == "x86_64":
        options.append("-x86-cmov-converter=false")
    said = subprocess.run(
        [sys.executable, "-c", _EMIT, *options],
        input=json.dumps(codes),
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
    )
    usual, forbidden = json.loads(said.stdout)
    return usual, forbidden


_UNDERFLOW, _DENORMAL, _AT = 0x10, 0x02, 28  # bits of the MXCSR register, its place in a fenv_t


def subnormals(work: Callable[[], object]) -> bool:
    """Return whether ``work`` met or made a subnormal number; for x86-64 with glibc, one thread."""
    library = ctypes.CDLL("libm.so.6")
    state = ctypes.create_string_buffer(64)
    work()  # once before: compiling is not what is asked about
    library.fesetenv(ctypes.c_void_p(-1))  # the usual state, no flag set
    work()
    library.fegetenv(state)
    (flags,) = struct.unpack_from("<I", state, _AT)
    return bool(flags & (_UNDERFLOW | _DENORMAL))


def _key(value: Any) -> int:
    """Return what tells values apart; those of the library are made anew at every look."""
    return ctypes.addressof(value._ptr[0])


class _Analysis:
    """Finds out what is secret, function by function, and what is done with it."""

    def __init__(self, module: Any) -> None:
        self._functions = {each.name: each for each in module.functions if not each.is_declaration}
        self._returns: dict[tuple[str, tuple[bool, ...], tuple[bool, ...]], bool] = {}
        self.faults: dict[str, None] = {}
        self.secret = 0

    def enter(
        self, function: Any, secret: tuple[bool, ...], public_memory: tuple[bool, ...]
    ) -> bool:
        """Look through a function; return whether what it returns is secret."""
        visit = (function.name, secret, public_memory)
        if visit not in self._returns:
            self._returns[visit] = True  # of a function that calls itself
            body = _Body(self, function, secret, public_memory)
            self._returns[visit] = body.returns_secret()
            for fault in body.faults():
                self.faults[fault] = None
            self.secret += len(body.secrets)
        return self._returns[visit]

    def called(self, instruction: Any) -> Any:
        """Return the function of the same module that is called, if it is one."""
        if instruction.opcode not in ("call", "invoke"):
            return None
        name = list(instruction.operands)[-1].name
        return None if name.startswith("NRT_") else self._functions.get(name)


class _Body:
    """One function, called with certain arguments."""

    def __init__(
        self,
        whole: _Analysis,
        function: Any,
        secret: tuple[bool, ...],
        public_memory: tuple[bool, ...],
    ) -> None:
        self._whole = whole
        arguments = [_key(each) for each in function.arguments]
        self.secrets = {key for key, told in zip(arguments, secret, strict=True) if told}
        self._public = {key for key, told in zip(arguments, public_memory, strict=True) if told}
        self.code = [each for block in function.blocks for each in block.instructions]
        self._made = {_key(each): each for each in self.code}
        # Memory on the stack is public until a secret may have been put into it.
        self._public |= {_key(each) for each in self.code if each.opcode == "alloca"}
        before = (-1, -1)
        while before != (before := (len(self.secrets), len(self._public))):
            for each in self.code:
                self._spread(each)

    def returns_secret(self) -> bool:
        """Return whether the function's value is secret."""
        ends = (each for each in self.code if each.opcode == "ret")
        return any(self._is_secret(operand) for each in ends for operand in each.operands)

    def _is_secret(self, value: Any) -> bool:
        return _key(value) in self.secrets

    def _spread(self, instruction: Any) -> None:
        """Note what becomes secret by an instruction."""
        operands = list(instruction.operands)
        told = any(map(self._is_secret, operands))
        if instruction.opcode == "load":
            is_pointer = str(instruction.type) == "ptr"  # of an array that was made in here
            told = told or not (is_pointer or self._is_public(operands[0]))
        if instruction.opcode == "store" and told:
            self._public -= self._roots(operands[1])
        if (function := self._whole.called(instruction)) is not None:
            given = operands[:-1]
            inside = tuple(map(self._is_public, given))
            told = self._whole.enter(function, tuple(map(self._is_secret, given)), inside)
            data = [each.name.endswith(".4") for each in function.arguments]  # arrays' memory
            if any(map(self._is_secret, given)) or not all(
                public for public, is_data in zip(inside, data, strict=True) if is_data
            ):
                stack = (key for each in given for key in self._roots(each))
                self._public -= {key for key in stack if key in self._made}
        if told:
            self.secrets.add(_key(instruction))

    def _is_public(self, pointer: Any) -> bool:
        roots = self._roots(pointer)
        return bool(roots) and roots <= self._public

    def _roots(self, pointer: Any) -> set[int]:
        """Return what a pointer may have been made from."""
        roots, left, passed = set[int](), [_key(pointer)], set[int]()
        while left:
            key = left.pop()
            made = self._made.get(key)
            if key in passed:
                continue
            passed.add(key)
            if made is None or made.opcode not in _POINTERS:
                roots.add(key)
                continue
            operands = list(made.operands)
            if made.opcode == "getelementptr":
                operands = operands[:1]
            left += [_key(each) for each in operands[made.opcode == "select" :]]
        return roots

    def faults(self) -> Iterator[str]:
        """Yield what must not be done with a secret."""
        for each in self.code:
            operands = list(each.operands)
            told = list(map(self._is_secret, operands))
            if any(told) and (what := self._fault(each, operands, told)):
                yield f"{what} depends on secrets: {str(each).strip()}"

    def _fault(self, instruction: Any, operands: list[Any], told: list[bool]) -> str:
        match instruction.opcode:
            case "br" | "switch" | "indirectbr":
                return "a branch"
            case "load":
                return "an address"
            case "store":
                return "an address" if told[1] else ""
            case "sdiv" | "udiv" | "srem" | "urem":  # by a constant: a multiplication
                return "" if operands[1].is_constant else "a division"
            case "fdiv" | "frem":
                return "a division"
            case "call" | "invoke":
                name = operands[-1].name
                if self._whole.called(instruction) is not None or _INTRINSIC.match(name):
                    return ""
                if _COPIES.match(name) and not told[0] and not told[2]:
                    return ""
                return "a call"
            case _:
                return ""
