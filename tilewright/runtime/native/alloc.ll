; Workspace memory of kernels: tw_alloc(bytes) -> 64-aligned address, or null; tw_free(address).
;
; Freed blocks wait for the next call in a few cells per size class (a class is a power of two), each taken and
; filled by one atomic exchange: no lock that a fork could leave taken, no per-thread state that an unloaded
; library would leave behind. A header of 64 bytes in front of a block holds its class. At most 1 GiB waits.

@tw_cells = internal global [48 x [4 x ptr]] zeroinitializer, align 64
@tw_waiting = internal global i64 0, align 64

define $LINKAGE ptr @tw_alloc(i64 %bytes) nounwind {
entry:
  %out = alloca ptr, align 8
  %least = call i64 @llvm.umax.i64(i64 %bytes, i64 64)
  %below = sub i64 %least, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %below, i1 false)
  %class = sub i64 64, %zeros
  %size = shl i64 1, %class
  %cacheable = icmp ult i64 %class, 48
  br i1 %cacheable, label %look, label %fresh
look:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %cell = getelementptr [48 x [4 x ptr]], ptr @tw_cells, i64 0, i64 %class, i64 %k
  %peek = load atomic ptr, ptr %cell monotonic, align 8
  %empty = icmp eq ptr %peek, null
  br i1 %empty, label %next, label %take
take:
  %block = atomicrmw xchg ptr %cell, ptr null acquire, align 8
  %gone = icmp eq ptr %block, null
  br i1 %gone, label %next, label %found
next:
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, 4
  br i1 %more, label %look, label %fresh
found:
  %w = atomicrmw sub ptr @tw_waiting, i64 %size monotonic, align 8
  ret ptr %block
fresh:
  store ptr null, ptr %out, align 8
  %small = icmp ult i64 %class, 30
  %wanted = select i1 %small, i64 %size, i64 %bytes
  %whole = call i64 @llvm.uadd.sat.i64(i64 %wanted, i64 64)
  %status = call i32 @posix_memalign(ptr %out, i64 64, i64 %whole)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %exhausted, label %header
header:
  %base = load ptr, ptr %out, align 8
  store i64 %class, ptr %base, align 8
  %user = getelementptr i8, ptr %base, i64 64
  ret ptr %user
exhausted:
  ret ptr null
}

define $LINKAGE void @tw_free(ptr %block) nounwind {
entry:
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %some
some:
  %base = getelementptr i8, ptr %block, i64 -64
  %class = load i64, ptr %base, align 8
  %size = shl i64 1, %class
  %cacheable = icmp ult i64 %class, 30
  br i1 %cacheable, label %room, label %release
room:
  %waiting = load atomic i64, ptr @tw_waiting monotonic, align 8
  %then = add i64 %waiting, %size
  %full = icmp ugt i64 %then, 1073741824
  br i1 %full, label %release, label %look
look:
  %k = phi i64 [ 0, %room ], [ %k.next, %next ]
  %cell = getelementptr [48 x [4 x ptr]], ptr @tw_cells, i64 0, i64 %class, i64 %k
  %pair = cmpxchg ptr %cell, ptr null, ptr %block release monotonic, align 8
  %put = extractvalue { ptr, i1 } %pair, 1
  br i1 %put, label %kept, label %next
next:
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, 4
  br i1 %more, label %look, label %release
kept:
  %w = atomicrmw add ptr @tw_waiting, i64 %size monotonic, align 8
  ret void
release:
  call void @free(ptr %base)
  ret void
done:
  ret void
}

declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.uadd.sat.i64(i64, i64)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
declare void @abort()                                   ; by pool.ll
