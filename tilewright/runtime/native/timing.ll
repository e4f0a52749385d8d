; __tvm_ffi_tw_time(function, number, arguments...): nanoseconds that `number` calls took, as an int.
; The loop is native, so that a kernel of a microsecond is not drowned in Python's own.

define $LINKAGE i32 @__tvm_ffi_tw_time(ptr %self, ptr %args, i32 %n, ptr %ret) nounwind {
entry:
  %before = alloca { i64, i64 }, align 8
  %after = alloca { i64, i64 }, align 8
  %result = alloca %any, align 8
  %function = field ptr, %any %args, 2
  %number.at = getelementptr %any, ptr %args, i64 1, i32 2
  %number = load i64, ptr %number.at, align 8
  %rest = getelementptr %any, ptr %args, i64 2
  %count = sub i32 %n, 2
  %c0 = call i32 @clock_gettime(i32 $CLOCK_MONOTONIC, ptr %before)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop.back ]
  %more = icmp slt i64 %i, %number
  br i1 %more, label %call, label %done
call:
  store %any zeroinitializer, ptr %result, align 8
  %status = call i32 @TVMFFIFunctionCall(ptr %function, ptr %rest, i32 %count, ptr %result)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %fail, label %run
run:
  %i.next = add i64 %i, 1
  %type = load i32, ptr %result, align 8
  %object = icmp sge i32 %type, 64
  br i1 %object, label %drop, label %loop.back
drop:
  %held = field ptr, %any %result, 2
  %d = call i32 @TVMFFIObjectDecRef(ptr %held)
  br label %loop.back
loop.back:
  br label %loop
fail:
  ret i32 %status
done:
  %c1 = call i32 @clock_gettime(i32 $CLOCK_MONOTONIC, ptr %after)
  %s0 = load i64, ptr %before, align 8
  %s1 = load i64, ptr %after, align 8
  %n0.at = getelementptr { i64, i64 }, ptr %before, i64 0, i32 1
  %n1.at = getelementptr { i64, i64 }, ptr %after, i64 0, i32 1
  %n0 = load i64, ptr %n0.at, align 8
  %n1 = load i64, ptr %n1.at, align 8
  %s = sub i64 %s1, %s0
  %nanoseconds = sub i64 %n1, %n0
  %scaled = mul i64 %s, 1000000000
  %total = add i64 %scaled, %nanoseconds
  store i32 1, ptr %ret, align 8
  %pad = getelementptr %any, ptr %ret, i64 0, i32 1
  store i32 0, ptr %pad, align 4
  %value = getelementptr %any, ptr %ret, i64 0, i32 2
  store i64 %total, ptr %value, align 8
  ret i32 0
}

declare i32 @clock_gettime(i32, ptr)
