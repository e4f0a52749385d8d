; Packed functions: how kernels are called as such, and how kernels call others.

; Runs a kernel for a packed call: 0 with the result in *ret, or -1 after tw_report of an error. The arguments are checked
; by the signature; %run gets their slots and 64 bits for the result. Where %fault, a place of the kernel's, is not null it
; may leave a message in tw_fault(%fault), or that address itself where an error is raised already. %result is the type index of the result; 4 for a uint64, which comes
; as a pointer where it is large.
define $LINKAGE i32 @tw_run(ptr %args, i32 %n, ptr %ret, ptr %signature, ptr %run, ptr %fault, i64 %slots, i32 %result) nounwind {
entry:
  %bits = alloca i64, align 8
  %own = alloca %fault, align 8
  %values = alloca i64, i64 %slots, align 8
  store i64 0, ptr %bits, align 8
  %bad = call i32 @tw_check_args(ptr %args, i32 %n, ptr %signature, ptr %values)
  %ok = icmp eq i32 %bad, 0
  br i1 %ok, label %go, label %failed
go:
  %may.fail = icmp ne ptr %fault, null
  br i1 %may.fail, label %guarded, label %plain
plain:
  call void %run(ptr %values, ptr %bits)
  br label %done
guarded:
  store ptr null, ptr %own, align 8
  %before = call ptr @tw_change_place(ptr %own)
  %place = call ptr @tw_fault(ptr %fault)
  call void %run(ptr %values, ptr %bits)
  %after = call ptr @tw_change_place(ptr %before)
  %text = atomicrmw xchg ptr %place, ptr null monotonic, align 8
  %clean = icmp eq ptr %text, null
  br i1 %clean, label %done, label %faulted
faulted:
  %raised = icmp eq ptr %text, %place
  br i1 %raised, label %failed, label %report
report:
  %room = getelementptr i8, ptr %place, i64 8
  %written = icmp eq ptr %text, %room
  br i1 %written, label %whole, label %raise
whole:
  call void @tw_end_whole(ptr %text, i64 1024)
  br label %raise
raise:
  call void @tw_report(ptr $"tilewright.CallError", ptr %text)
  br label %failed
failed:
  ret i32 -1
done:
  %value = load i64, ptr %bits, align 8
  %large = icmp slt i64 %value, 0
  %unsigned = select i1 %large, i32 4, i32 1
  %is.unsigned = icmp eq i32 %result, 4
  %type = select i1 %is.unsigned, i32 %unsigned, i32 %result
  %type.wide = zext i32 %type to i64
  store i64 %type.wide, ptr %ret, align 8
  %ret.v = getelementptr i8, ptr %ret, i64 8
  store i64 %value, ptr %ret.v, align 8
  ret i32 0
}

; The result of the function `name` as 64 bits: by `wanted` an int32 (32), an int64 (64), a float64 (2), a bool (1),
; or whatever it is, but no object (0). %kinds has a letter for each argument: the letter at the place of the type index
; in the alphabet (A: an int, B: a bool, C: a float, D: a pointer, H: a string), u for a uint64, t for a tensor; %words
; has their values, of a tensor the address, dtype, number of dimensions, bytes to copy (0: none), extents and strides.
; Where *fault is set nothing is called. Where the function is missing, fails, or gives no number but one is wanted,
; the result is 0 and *fault one of the three texts; where %failed is "" it is %fault itself: an error is raised already.
define $LINKAGE i64 @tw_call_packed(ptr %fault, ptr %name, i64 %length, ptr %kinds, ptr %words, ptr %missing, ptr %failed, ptr %unusable, i32 %wanted) noinline nounwind {
entry:
  %found = alloca ptr, align 8
  %bytes = alloca { ptr, i64 }, align 8
  %result = alloca { i32, i32, i64 }, align 8
  %earlier = load atomic ptr, ptr %fault monotonic, align 8
  %clean = icmp eq ptr %earlier, null
  br i1 %clean, label %look, label %nothing
look:
  %has.ffi = icmp ne ptr @TVMFFIFunctionGetGlobal, null
  br i1 %has.ffi, label %ask, label %lost
ask:
  store ptr null, ptr %found, align 8
  store ptr %name, ptr %bytes, align 8
  %bytes.n = getelementptr i8, ptr %bytes, i64 8
  store i64 %length, ptr %bytes.n, align 8
  %g = call i32 @TVMFFIFunctionGetGlobal(ptr %bytes, ptr %found)
  %function = load ptr, ptr %found, align 8
  %none = icmp eq ptr %function, null
  br i1 %none, label %lost, label %begin
lost:
  %l = cmpxchg ptr %fault, ptr null, ptr %missing monotonic monotonic, align 8
  br label %nothing
begin:
  %count = call i64 @strlen(ptr %kinds)
  %args = alloca { i32, i32, i64 }, i64 %count, align 8
  br label %each
each:
  %k = phi i64 [ 0, %begin ], [ %k.next, %put ]
  %w = phi ptr [ %words, %begin ], [ %w.next, %put ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %one, label %call
one:
  %kind.p = getelementptr i8, ptr %kinds, i64 %k
  %kind = load i8, ptr %kind.p, align 1
  %word = load i64, ptr %w, align 8
  %w.plain = getelementptr i8, ptr %w, i64 8
  %is.tensor = icmp eq i8 %kind, 116
  br i1 %is.tensor, label %tensor, label %plain
plain:
  %kind.wide = zext i8 %kind to i64
  %letter = sub i64 %kind.wide, 64
  %is.unsigned = icmp eq i8 %kind, 117
  %large = icmp slt i64 %word, 0
  %unsigned = select i1 %large, i64 4, i64 1
  %type.plain = select i1 %is.unsigned, i64 %unsigned, i64 %letter
  br label %put
tensor:                                          ; a DLManagedTensor on the heap: Python cannot use a bare DLTensor
  %dtype.p = getelementptr i64, ptr %w, i64 1
  %dtype = load i64, ptr %dtype.p, align 8
  %rank.p = getelementptr i64, ptr %w, i64 2
  %rank = load i64, ptr %rank.p, align 8
  %size.p = getelementptr i64, ptr %w, i64 3
  %size = load i64, ptr %size.p, align 8
  %from = getelementptr i64, ptr %w, i64 4
  %dims.n = shl i64 %rank, 4
  %head = add i64 %dims.n, 64
  %total = add i64 %head, %size
  %block = call ptr @malloc(i64 %total)
  %dims = getelementptr i8, ptr %block, i64 64
  call void @llvm.memcpy.p0.p0.i64(ptr %dims, ptr %from, i64 %dims.n, i1 false)
  %own = getelementptr i8, ptr %block, i64 %head
  %given = inttoptr i64 %word to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %given, i64 %size, i1 false)
  %copied = icmp ne i64 %size, 0
  %data = select i1 %copied, ptr %own, ptr %given
  %strides = getelementptr i64, ptr %dims, i64 %rank
  %rank.32 = trunc i64 %rank to i32
  %dtype.32 = trunc i64 %dtype to i32
  %f0 = insertvalue { ptr, i32, i32, i32, i32, ptr, ptr, i64, ptr, ptr } { ptr null, i32 1, i32 0, i32 0, i32 0, ptr null, ptr null, i64 0, ptr null, ptr @tw_delete_tensor }, ptr %data, 0
  %f1 = insertvalue { ptr, i32, i32, i32, i32, ptr, ptr, i64, ptr, ptr } %f0, i32 %rank.32, 3
  %f2 = insertvalue { ptr, i32, i32, i32, i32, ptr, ptr, i64, ptr, ptr } %f1, i32 %dtype.32, 4
  %f3 = insertvalue { ptr, i32, i32, i32, i32, ptr, ptr, i64, ptr, ptr } %f2, ptr %dims, 5
  %f4 = insertvalue { ptr, i32, i32, i32, i32, ptr, ptr, i64, ptr, ptr } %f3, ptr %strides, 6
  store { ptr, i32, i32, i32, i32, ptr, ptr, i64, ptr, ptr } %f4, ptr %block, align 8
  store ptr null, ptr %found, align 8
  %t = call i32 @TVMFFITensorFromDLPack(ptr %block, i32 0, i32 0, ptr %found)
  %object = load i64, ptr %found, align 8
  %w.tensor = getelementptr i8, ptr %from, i64 %dims.n
  br label %put
put:
  %type = phi i64 [ %type.plain, %plain ], [ 70, %tensor ]
  %value = phi i64 [ %word, %plain ], [ %object, %tensor ]
  %w.next = phi ptr [ %w.plain, %plain ], [ %w.tensor, %tensor ]
  %slot = getelementptr { i32, i32, i64 }, ptr %args, i64 %k
  store i64 %type, ptr %slot, align 8
  %slot.v = getelementptr i8, ptr %slot, i64 8
  store i64 %value, ptr %slot.v, align 8
  %k.next = add i64 %k, 1
  br label %each
call:
  store { i32, i32, i64 } zeroinitializer, ptr %result, align 8
  %count.32 = trunc i64 %count to i32
  %place = call ptr @tw_change_place(ptr null)           ; kernels that are called in there have their own
  %status = call i32 @TVMFFIFunctionCall(ptr %function, ptr %args, i32 %count.32, ptr %result)
  %nowhere = call ptr @tw_change_place(ptr %place)
  %d = call i32 @TVMFFIObjectDecRef(ptr %function)
  br label %release
release:
  %r = phi i64 [ 0, %call ], [ %r.next, %kept ]
  %r.more = icmp ult i64 %r, %count
  br i1 %r.more, label %held, label %done
held:
  %h = getelementptr { i32, i32, i64 }, ptr %args, i64 %r
  %h.type = load i64, ptr %h, align 8
  %is.made = icmp eq i64 %h.type, 70
  br i1 %is.made, label %drop, label %kept
drop:
  %h.p = getelementptr i8, ptr %h, i64 8
  %h.object = load ptr, ptr %h.p, align 8
  %hd = call i32 @TVMFFIObjectDecRef(ptr %h.object)
  br label %kept
kept:
  %r.next = add i64 %r, 1
  br label %release
done:
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %returned, label %raised
raised:
  %first = load i8, ptr %failed, align 1
  %silent = icmp eq i8 %first, 0
  %text = select i1 %silent, ptr %fault, ptr %failed
  %x = cmpxchg ptr %fault, ptr null, ptr %text monotonic monotonic, align 8
  br label %nothing
returned:
  %out = load i32, ptr %result, align 8
  %out.p = getelementptr i8, ptr %result, i64 8
  %raw = load i64, ptr %out.p, align 8
  %is.object = icmp sge i32 %out, 64
  br i1 %is.object, label %dropped, label %judge
dropped:
  %out.object = inttoptr i64 %raw to ptr
  %od = call i32 @TVMFFIObjectDecRef(ptr %out.object)
  br label %judge
judge:
  %bits = phi i64 [ %raw, %returned ], [ 0, %dropped ]
  %below = sub i32 %out, 1
  %is.number = icmp ult i32 %below, 3
  %any = icmp eq i32 %wanted, 0
  %fits = or i1 %is.number, %any
  br i1 %fits, label %convert, label %refused
refused:
  %u = cmpxchg ptr %fault, ptr null, ptr %unusable monotonic monotonic, align 8
  br label %nothing
convert:
  %is.float = icmp eq i32 %out, 3
  %float = bitcast i64 %bits to double
  %cut.32 = call i32 @llvm.fptosi.sat.i32.f64(double %float)
  %cut = sext i32 %cut.32 to i64
  %cut.64 = call i64 @llvm.fptosi.sat.i64.f64(double %float)
  %whole = sitofp i64 %bits to double
  %whole.bits = bitcast double %whole to i64
  %as.float = select i1 %is.float, i64 %bits, i64 %whole.bits
  %float.set = fcmp une double %float, 0.0
  %int.set = icmp ne i64 %bits, 0
  %set = select i1 %is.float, i1 %float.set, i1 %int.set
  %as.bool = zext i1 %set to i64
  switch i32 %wanted, label %plain.out [ i32 32, label %int.out
                                         i32 64, label %long.out
                                         i32 2, label %float.out
                                         i32 1, label %bool.out ]
plain.out:
  ret i64 %bits
int.out:
  %as.int = select i1 %is.float, i64 %cut, i64 %bits
  ret i64 %as.int
long.out:
  %as.long = select i1 %is.float, i64 %cut.64, i64 %bits
  ret i64 %as.long
float.out:
  ret i64 %as.float
bool.out:
  ret i64 %as.bool
nothing:
  ret i64 0
}

define internal void @tw_delete_tensor(ptr %tensor) nounwind {
  call void @free(ptr %tensor)
  ret void
}

declare i64 @strlen(ptr)
declare ptr @malloc(i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @llvm.fptosi.sat.i32.f64(double)
declare i64 @llvm.fptosi.sat.i64.f64(double)
declare $FFI i32 @TVMFFITensorFromDLPack(ptr, i32, i32, ptr)

@tw_call_packed_pointer = $LINKAGE alias i64 (ptr, ptr, i64, ptr, ptr, ptr, ptr, ptr, i32), ptr @tw_call_packed
