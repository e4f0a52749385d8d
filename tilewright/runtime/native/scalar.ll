; Scalar arguments, and the extents that are expressions of symbols.

; An int, bool or float argument in the dtype of its parameter, written to its slot.
; An int parameter takes int and bool (in range), a bool takes bool, 0 and 1, a float takes float, int and bool.
; A uint64 from 2^63 on comes as a pointer with these bits: no address has the highest one.
define internal i32 @tw_check_scalar(ptr %a, ptr %p, ptr %table, ptr %slots) nounwind {
entry:
  %type = load i32, ptr %a, align 8
  %value = field i64, %any %a, 2
  %dtype = field i32, %param %p, 3
  %code = and i32 %dtype, 255
  %bits.high = lshr i32 %dtype, 8
  %bits = and i32 %bits.high, 255
  %bitsx = zext i32 %bits to i64
  %slot = field i32, %param %p, 1
  %slotx = zext i32 %slot to i64
  %out = getelementptr i64, ptr %slots, i64 %slotx
  %is.float = icmp eq i32 %type, 3
  %is.int = icmp eq i32 %type, 1
  %is.bool = icmp eq i32 %type, 2
  %integral = or i1 %is.int, %is.bool
  switch i32 %code, label %bad [ i32 0, label %signed
                                 i32 1, label %unsigned
                                 i32 6, label %bool
                                 i32 2, label %float
                                 i32 4, label %float ]
bad:
  %r0 = call i32 @tw_refuse_type(ptr %a, ptr %p, ptr %table)
  ret i32 -1

signed:
  br i1 %integral, label %signed.range, label %bad
signed.range:                                            ; fits when sign extension of its low bits gives it back
  %shift = sub i64 64, %bitsx
  %up = shl i64 %value, %shift
  %down = ashr i64 %up, %shift
  %sfits = icmp eq i64 %down, %value
  br i1 %sfits, label %keep, label %range
unsigned:
  br i1 %integral, label %unsigned.range, label %pointer
pointer:
  %is.pointer = icmp eq i32 %type, 4
  %no.address = icmp slt i64 %value, 0
  %large = and i1 %is.pointer, %no.address
  %wide = icmp eq i32 %bits, 64
  %word = and i1 %large, %wide
  br i1 %word, label %keep, label %bad
unsigned.range:
  %ushift = sub i64 64, %bitsx
  %uup = shl i64 %value, %ushift
  %udown = lshr i64 %uup, %ushift
  %ubits = icmp eq i64 %udown, %value
  %positive = icmp sge i64 %value, 0
  %ufits = and i1 %ubits, %positive
  br i1 %ufits, label %keep, label %range
bool:
  br i1 %integral, label %bool.range, label %bad
bool.range:
  %bfits = icmp ult i64 %value, 2
  br i1 %bfits, label %keep, label %range
keep:
  store i64 %value, ptr %out, align 8
  ret i32 0
range:
  %r1 = call i32 @tw_refuse_range(ptr %p, ptr %table, i64 %value)
  ret i32 -1

float:
  %numeric = or i1 %integral, %is.float
  br i1 %numeric, label %float.value, label %bad
float.value:
  %as.double = bitcast i64 %value to double
  %from.int = sitofp i64 %value to double
  %double = select i1 %is.float, double %as.double, double %from.int
  switch i32 %bits, label %bad [ i32 64, label %f64
                                 i32 32, label %f32
                                 i32 16, label %f16 ]
f64:
  store double %double, ptr %out, align 8
  ret i32 0
f32:
  %single = fptrunc double %double to float
  %single.bits = bitcast float %single to i32
  %single.wide = zext i32 %single.bits to i64
  store i64 %single.wide, ptr %out, align 8
  ret i32 0
f16:
  %odd = call i32 @tw_odd_single_of(double %double)
  %is.half = icmp eq i32 %code, 2
  %half = call i32 @tw_half_of(i32 %odd)
  %brain = call i32 @tw_bfloat_of(i32 %odd)
  %small = select i1 %is.half, i32 %half, i32 %brain
  %small.wide = zext i32 %small to i64
  store i64 %small.wide, ptr %out, align 8
  ret i32 0
}

; The bits of float32 next to a double, towards zero, the last one set where that is not exact (rounded to odd): rounded
; once more to fewer bits, it gives what the double would (Boldo and Melquiond, "Emulation of FMA and correctly rounded
; sums"). A NaN stays one.
define internal i32 @tw_odd_single_of(double %x) nounwind {
  %nearest = fptrunc double %x to float
  %word = bitcast float %nearest to i32
  %back = fpext float %nearest to double
  %back.size = call double @llvm.fabs.f64(double %back)
  %size = call double @llvm.fabs.f64(double %x)
  %beyond = fcmp ogt double %back.size, %size
  %less = sub i32 %word, 1
  %towards.zero = select i1 %beyond, i32 %less, i32 %word
  %odd = or i32 %towards.zero, 1
  %inexact = fcmp one double %back, %x
  %r = select i1 %inexact, i32 %odd, i32 %word
  ret i32 %r
}

declare double @llvm.fabs.f64(double)

; float32 bits to bfloat16 bits, to nearest even; a NaN stays one. In integers: no library call on any CPU.
define internal i32 @tw_bfloat_of(i32 %word) nounwind {
  %magnitude = and i32 %word, 2147483647
  %is.nan = icmp ugt i32 %magnitude, 2139095040
  %high = lshr i32 %word, 16
  %odd = and i32 %high, 1
  %bias = add i32 %odd, 32767
  %rounded = add i32 %word, %bias
  %plain = lshr i32 %rounded, 16
  %quiet = or i32 %high, 64
  %r = select i1 %is.nan, i32 %quiet, i32 %plain
  ret i32 %r
}

; float32 bits to float16 bits, to nearest even: scaled by 2^-112 as a float the exponents agree, and denormals
; of float16 come out of one addition that aligns the significand (Giesen, "float->half conversions").
define internal i32 @tw_half_of(i32 %word) nounwind {
entry:
  %sign = and i32 %word, -2147483648
  %magnitude = xor i32 %word, %sign
  %sign.high = lshr i32 %sign, 16
  %huge = icmp uge i32 %magnitude, 1199570944            ; 65536
  br i1 %huge, label %overflow, label %finite
overflow:
  %is.nan = icmp ugt i32 %magnitude, 2139095040
  %special = select i1 %is.nan, i32 32256, i32 31744
  br label %done
finite:
  %tiny = icmp ult i32 %magnitude, 947912704             ; 2^-14
  br i1 %tiny, label %denormal, label %normal
denormal:
  %m.float = bitcast i32 %magnitude to float
  %aligned = fadd float %m.float, 5.0e-01
  %aligned.bits = bitcast float %aligned to i32
  %den = sub i32 %aligned.bits, 1056964608               ; the bits of 0.5
  br label %done
normal:
  %odd.high = lshr i32 %magnitude, 13
  %odd = and i32 %odd.high, 1
  %rebias = add i32 %magnitude, -939520001               ; (15 - 127) << 23, plus 4095
  %round = add i32 %rebias, %odd
  %norm = lshr i32 %round, 13
  br label %done
done:
  %r = phi i32 [ %special, %overflow ], [ %den, %denormal ], [ %norm, %normal ]
  %signed = or i32 %r, %sign.high
  ret i32 %signed
}

; Value of a postfix program: its length, then (opcode, operand) pairs of i64.
define internal i64 @tw_evaluate(ptr %program, ptr %slots) noinline nounwind {
entry:
  %stack = alloca [18 x i64], align 8
  %count = load i64, ptr %program, align 8
  %code = getelementptr i8, ptr %program, i64 8
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %step ]
  %depth = phi i64 [ 0, %entry ], [ %depth.next, %step ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %fetch, label %done
fetch:
  %op.at = getelementptr { i64, i64 }, ptr %code, i64 %i
  %op = load i64, ptr %op.at, align 8
  %arg.at = getelementptr i8, ptr %op.at, i64 8
  %arg = load i64, ptr %arg.at, align 8
  %pushes = icmp ult i64 %op, 2
  br i1 %pushes, label %push, label %combine
push:
  %is.slot = icmp eq i64 %op, 1
  br i1 %is.slot, label %push.slot, label %push.value
push.slot:
  %slot.at = getelementptr i64, ptr %slots, i64 %arg
  %slot.value = load i64, ptr %slot.at, align 8
  br label %push.value
push.value:
  %pushed = phi i64 [ %arg, %push ], [ %slot.value, %push.slot ]
  %depth.up = add i64 %depth, 1
  br label %step
combine:
  %a.index = sub i64 %depth, 2
  %b.index = sub i64 %depth, 1
  %a.at = getelementptr i64, ptr %stack, i64 %a.index
  %b.at = getelementptr i64, ptr %stack, i64 %b.index
  %a = load i64, ptr %a.at, align 8
  %b = load i64, ptr %b.at, align 8
  %sum = add i64 %a, %b
  %difference = sub i64 %a, %b
  %product = mul i64 %a, %b
  %zero = icmp eq i64 %b, 0                              ; x // 0 can match no extent: any value will do
  %minus = icmp eq i64 %b, -1
  %unsafe = or i1 %zero, %minus
  %safe = select i1 %unsafe, i64 1, i64 %b
  %q0 = sdiv i64 %a, %safe
  %back = mul i64 %q0, %safe
  %r0 = sub i64 %a, %back
  %r.nonzero = icmp ne i64 %r0, 0
  %r.sign = xor i64 %r0, %safe
  %r.negative = icmp slt i64 %r.sign, 0
  %adjust = and i1 %r.nonzero, %r.negative
  %adjustx = zext i1 %adjust to i64
  %q1 = sub i64 %q0, %adjustx
  %negated = sub i64 0, %a
  %quotient = select i1 %minus, i64 %negated, i64 %q1
  %qb = mul i64 %quotient, %b
  %remainder = sub i64 %a, %qb
  %a.less = icmp slt i64 %a, %b
  %smaller = select i1 %a.less, i64 %a, i64 %b
  %larger = select i1 %a.less, i64 %b, i64 %a
  switch i64 %op, label %combined [ i64 3, label %sub
                                    i64 4, label %mul
                                    i64 5, label %div
                                    i64 6, label %mod
                                    i64 7, label %min
                                    i64 8, label %max ]
sub:
  br label %combined
mul:
  br label %combined
div:
  br label %combined
mod:
  br label %combined
min:
  br label %combined
max:
  br label %combined
combined:
  %value = phi i64 [ %sum, %combine ], [ %difference, %sub ], [ %product, %mul ], [ %quotient, %div ],
                   [ %remainder, %mod ], [ %smaller, %min ], [ %larger, %max ]
  %depth.down = sub i64 %depth, 1
  br label %step
step:
  %result = phi i64 [ %pushed, %push.value ], [ %value, %combined ]
  %depth.next = phi i64 [ %depth.up, %push.value ], [ %depth.down, %combined ]
  %top.index = sub i64 %depth.next, 1
  %top = getelementptr i64, ptr %stack, i64 %top.index
  store i64 %result, ptr %top, align 8
  %i.next = add i64 %i, 1
  br label %loop
done:
  %answer = load i64, ptr %stack, align 8
  ret i64 %answer
}

; The extents and strides that are expressions, after every symbol is bound.
define internal i32 @tw_check_expressions(ptr %args, i32 %n, ptr %table, ptr %slots) nounwind {
entry:
  %first = getelementptr i8, ptr %table, i64 40
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp ult i32 %i, %n
  br i1 %more, label %one, label %done
one:
  %ix = zext i32 %i to i64
  %p = getelementptr %param, ptr %first, i64 %ix
  %a = getelementptr %any, ptr %args, i64 %ix
  %kind = load i32, ptr %p, align 4
  %scalar = icmp eq i32 %kind, 1
  br i1 %scalar, label %next, label %tensor
tensor:
  %r = call i32 @tw_check_expressions_of(ptr %a, ptr %p, ptr %table, ptr %slots)
  %fine = icmp eq i32 %r, 0
  br i1 %fine, label %next, label %fail
next:
  %i.next = add i32 %i, 1
  br label %loop
done:
  ret i32 0
fail:
  ret i32 -1
}

define internal i32 @tw_check_expressions_of(ptr %a, ptr %p, ptr %table, ptr %slots) nounwind {
entry:
  %t = call ptr @tw_tensor_of(ptr %a)
  %ndim = field i32, %param %p, 4
  %shape = field ptr, %tensor %t, 5
  %r.off = field i32, %param %p, 5
  %s.off = field i32, %param %p, 6
  %strided = icmp ne i32 %s.off, 0
  %twice = shl i32 %ndim, 1
  %total = select i1 %strided, i32 %twice, i32 %ndim     ; the extents, then the strides
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp ult i32 %i, %total
  br i1 %more, label %one, label %done
one:
  %is.stride = icmp uge i32 %i, %ndim
  %less = sub i32 %i, %ndim
  %d = select i1 %is.stride, i32 %less, i32 %i
  %off = select i1 %is.stride, i32 %s.off, i32 %r.off
  %offx = zext i32 %off to i64
  %dx = zext i32 %d to i64
  %records = getelementptr i8, ptr %table, i64 %offx
  %rec = getelementptr %dim, ptr %records, i64 %dx
  %kind = load i32, ptr %rec, align 8
  %is.expr = icmp eq i32 %kind, 3
  br i1 %is.expr, label %compare, label %next
compare:
  %value = field i64, %dim %rec, 2
  %program = getelementptr i8, ptr %table, i64 %value
  %want = call i64 @tw_evaluate(ptr %program, ptr %slots)
  br i1 %is.stride, label %stride, label %extent
stride:
  %got.s = call i64 @tw_stride_of(ptr %t, i64 %dx)
  br label %test
extent:
  %e.at = getelementptr i64, ptr %shape, i64 %dx
  %got.e = load i64, ptr %e.at, align 8
  br label %test
test:
  %got = phi i64 [ %got.s, %stride ], [ %got.e, %extent ]
  %equal = icmp eq i64 %got, %want
  br i1 %equal, label %next, label %doubt
doubt:
  %idle = call i1 @tw_is_idle(ptr %t, i64 %dx)
  %forgiven = and i1 %is.stride, %idle
  br i1 %forgiven, label %next, label %bad
bad:
  %which = zext i1 %is.stride to i32
  %q = call i32 @tw_refuse_dim(ptr %t, ptr %p, ptr %table, ptr %slots, ptr %rec, i32 %d, i64 %got, i32 %which)
  ret i32 -1
next:
  %i.next = add i32 %i, 1
  br label %loop
done:
  ret i32 0
}
