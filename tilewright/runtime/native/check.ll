; The argument checker that every packed wrapper calls.
;
; tw_check_args(args, n, table, slots): compare the n packed arguments with the table (see signature_table.py for its
; layout), write the value of every slot. Result 0, or -1 with the error raised in tvm-ffi and nothing else touched.
; Error paths are in refuse.ll: they are cold and never return to the checks.

%any    = type { i32, i32, i64 }                                              ; TVMFFIAny
%tensor = type { ptr, i32, i32, i32, i32, ptr, ptr, i64 }                     ; DLTensor: data, device type and id,
                                                                              ; ndim, dtype, shape, strides, byte_offset
%header = type { i32, i32, i32, i32, i32, i32, i32, i32, i32, i32 }           ; magic, size, params, buffers, scalars,
                                                                              ; symbols, name, text, slots, expressions
%param  = type { i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32 } ; scalar?, slot, name, dtype, ndim, shape,
                                                                              ; strides, alignment, device, flags, dtype text
%dim    = type { i32, i32, i64, i64 }                                         ; kind, text, value, limit

define $LINKAGE i32 @tw_check_args(ptr %args, i32 %n, ptr %table, ptr %slots) nounwind "frame-pointer"="none" {
entry:
  %params = field i32, %header %table, 2
  %right = icmp eq i32 %n, %params
  br i1 %right, label %counted, label %count.bad
count.bad:
  %r0 = call i32 @tw_refuse_count(ptr %table, i32 %n)
  ret i32 -1
counted:
  %first = getelementptr i8, ptr %table, i64 40
  %scalars = field i32, %header %table, 4
  %has.scalars = icmp ne i32 %scalars, 0
  br i1 %has.scalars, label %scalar.loop, label %buffers

; scalars first: extents may refer to them
scalar.loop:
  %i = phi i32 [ 0, %counted ], [ %i.next, %scalar.step ]
  %more = icmp ult i32 %i, %n
  br i1 %more, label %scalar.body, label %buffers
scalar.body:
  %ix = zext i32 %i to i64
  %p = getelementptr %param, ptr %first, i64 %ix
  %kind = load i32, ptr %p, align 4
  %is.scalar = icmp eq i32 %kind, 1
  br i1 %is.scalar, label %scalar.check, label %scalar.step
scalar.check:
  %a = getelementptr %any, ptr %args, i64 %ix
  %rs = call i32 @tw_check_scalar(ptr %a, ptr %p, ptr %table, ptr %slots)
  %fine = icmp eq i32 %rs, 0
  br i1 %fine, label %scalar.step, label %fail
scalar.step:
  %i.next = add i32 %i, 1
  br label %scalar.loop

buffers:
  br label %buffer.loop
buffer.loop:
  %j = phi i32 [ 0, %buffers ], [ %j.next, %buffer.step ]
  %jmore = icmp ult i32 %j, %n
  br i1 %jmore, label %buffer.body, label %last
buffer.body:
  %jx = zext i32 %j to i64
  %q = getelementptr %param, ptr %first, i64 %jx
  %qkind = load i32, ptr %q, align 4
  %is.buffer = icmp eq i32 %qkind, 0
  br i1 %is.buffer, label %buffer.check, label %buffer.step
buffer.check:
  %b = getelementptr %any, ptr %args, i64 %jx
  %rb = call i32 @tw_check_tensor(ptr %b, ptr %q, ptr %table, ptr %slots)
  %bfine = icmp eq i32 %rb, 0
  br i1 %bfine, label %buffer.step, label %fail
buffer.step:
  %j.next = add i32 %j, 1
  br label %buffer.loop

; extents that are expressions last: all symbols are bound by now
last:
  %exprs = field i32, %header %table, 9
  %has.exprs = icmp ne i32 %exprs, 0
  br i1 %has.exprs, label %expr.all, label %ok
expr.all:
  %re = call i32 @tw_check_expressions(ptr %args, i32 %n, ptr %table, ptr %slots)
  %efine = icmp eq i32 %re, 0
  br i1 %efine, label %ok, label %fail
ok:
  %ro = call i32 @tw_check_overlap(ptr %args, i32 %n, ptr %table, ptr %slots)
  ret i32 %ro
fail:
  ret i32 -1
}

; The DLTensor of an argument, or null: a DLTensor* (type 7) or a Tensor object (type 70, DLTensor at +24).
define internal ptr @tw_tensor_of(ptr %a) alwaysinline nounwind {
  %type = load i32, ptr %a, align 8
  %value = field ptr, %any %a, 2
  %inside = getelementptr i8, ptr %value, i64 24
  %is.object = icmp eq i32 %type, 70
  %is.pointer = icmp eq i32 %type, 7
  %t0 = select i1 %is.pointer, ptr %value, ptr null
  %t1 = select i1 %is.object, ptr %inside, ptr %t0
  ret ptr %t1
}

define internal i32 @tw_check_tensor(ptr %a, ptr %p, ptr %table, ptr %slots) nounwind {
entry:
  %t = call ptr @tw_tensor_of(ptr %a)
  %none = icmp eq ptr %t, null
  br i1 %none, label %bad.type, label %rank
bad.type:
  %r1 = call i32 @tw_refuse_type(ptr %a, ptr %p, ptr %table)
  ret i32 -1
rank:
  %ndim = field i32, %tensor %t, 3
  %want.ndim = field i32, %param %p, 4
  %dtype = field i32, %tensor %t, 4
  %want.dtype = field i32, %param %p, 3
  %dev = field i32, %tensor %t, 1
  %want.dev = field i32, %param %p, 8
  %d0 = xor i32 %ndim, %want.ndim
  %d1 = xor i32 %dtype, %want.dtype
  %d2 = xor i32 %dev, %want.dev
  %d01 = or i32 %d0, %d1
  %d = or i32 %d01, %d2
  %same = icmp eq i32 %d, 0
  br i1 %same, label %extents, label %bad.kind
bad.kind:
  %r2 = call i32 @tw_refuse_kind(ptr %t, ptr %p, ptr %table)
  ret i32 -1

extents:
  %shape = field ptr, %tensor %t, 5
  %records.off = field i32, %param %p, 5
  %records.offx = zext i32 %records.off to i64
  %records = getelementptr i8, ptr %table, i64 %records.offx
  %n = zext i32 %ndim to i64
  br label %extent.loop
extent.loop:
  %i = phi i64 [ 0, %extents ], [ %i.next, %extent.ok ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %extent, label %strides
extent:
  %got.at = getelementptr i64, ptr %shape, i64 %i
  %got = load i64, ptr %got.at, align 8
  %rec = getelementptr %dim, ptr %records, i64 %i
  %re = call i32 @tw_check_dim(i64 %got, ptr %rec, ptr %slots)
  %good = icmp eq i32 %re, 0
  br i1 %good, label %extent.ok, label %bad.extent
extent.ok:
  %i.next = add i64 %i, 1
  br label %extent.loop
bad.extent:
  %ix = trunc i64 %i to i32
  %r3 = call i32 @tw_refuse_dim(ptr %t, ptr %p, ptr %table, ptr %slots, ptr %rec, i32 %ix, i64 %got, i32 0)
  ret i32 -1

strides:
  %given = field ptr, %tensor %t, 6
  %srecords.off = field i32, %param %p, 6
  %symbolic = icmp ne i32 %srecords.off, 0
  br i1 %symbolic, label %stride.all, label %compact
compact:
  %implicit = icmp eq ptr %given, null
  br i1 %implicit, label %address, label %compact.loop
compact.loop:                                            ; from the last dimension to the first
  %k = phi i64 [ %n, %compact ], [ %k.next, %compact.ok ]
  %expected = phi i64 [ 1, %compact ], [ %expected.next, %compact.ok ]
  %left = icmp ne i64 %k, 0
  br i1 %left, label %compact.dim, label %address
compact.dim:
  %k.next = sub i64 %k, 1
  %cs.at = getelementptr i64, ptr %given, i64 %k.next
  %cs = load i64, ptr %cs.at, align 8
  %ce.at = getelementptr i64, ptr %shape, i64 %k.next
  %ce = load i64, ptr %ce.at, align 8
  %is.one = icmp eq i64 %ce, 1                           ; the stride of a unit dimension means nothing
  %fits = icmp eq i64 %cs, %expected
  %either = or i1 %is.one, %fits
  %expected.next = mul i64 %expected, %ce
  br i1 %either, label %compact.ok, label %compact.bad
compact.ok:
  br label %compact.loop
compact.bad:
  %empty = call i1 @tw_is_empty(ptr %t)
  br i1 %empty, label %address, label %compact.refuse
compact.refuse:
  %r4 = call i32 @tw_refuse_strides(ptr %t, ptr %p, ptr %table)
  ret i32 -1

stride.all:
  %rstr = call i32 @tw_check_strides(ptr %t, ptr %p, ptr %table, ptr %slots)
  %strides.fine = icmp eq i32 %rstr, 0
  br i1 %strides.fine, label %address, label %stride.bad
stride.bad:
  ret i32 -1

address:
  %data = load ptr, ptr %t, align 8
  %offset = field i64, %tensor %t, 7
  %base = ptrtoint ptr %data to i64
  %start = add i64 %base, %offset
  %align = field i32, %param %p, 7
  %alignx = zext i32 %align to i64
  %mask = sub i64 %alignx, 1
  %rest = and i64 %start, %mask
  %aligned = icmp eq i64 %rest, 0
  %lower = call i64 @llvm.smin.i64(i64 %base, i64 %start)
  %not.null = icmp sgt i64 %lower, 0                     ; no address has the highest bit
  %sound = and i1 %aligned, %not.null
  br i1 %sound, label %store, label %bad.address
bad.address:                                             ; an empty tensor may point anywhere
  %nothing = call i1 @tw_is_empty(ptr %t)
  br i1 %nothing, label %store, label %refuse.address
refuse.address:
  %r5 = call i32 @tw_refuse_address(ptr %t, ptr %p, ptr %table, i64 %start)
  ret i32 -1
store:
  %slot = field i32, %param %p, 1
  %slotx = zext i32 %slot to i64
  %out = getelementptr i64, ptr %slots, i64 %slotx
  store i64 %start, ptr %out, align 8
  ret i32 0
}

; One extent or stride: 0 where it fits its record (binding a symbol), else 1. Expressions are left for later.
define internal i32 @tw_check_dim(i64 %got, ptr %rec, ptr %slots) alwaysinline nounwind {
entry:
  %kind = load i32, ptr %rec, align 8
  %value = field i64, %dim %rec, 2
  switch i32 %kind, label %ok [ i32 0, label %const
                                i32 1, label %bind
                                i32 2, label %equal ]
const:
  %c = icmp ne i64 %got, %value
  %rc = zext i1 %c to i32
  ret i32 %rc
bind:
  %limit = field i64, %dim %rec, 3
  %slot = getelementptr i64, ptr %slots, i64 %value
  store i64 %got, ptr %slot, align 8
  %up = add i64 %got, %limit                             ; a stride may be negative: from -limit to limit
  %width = shl i64 %limit, 1
  %big = icmp ugt i64 %up, %width
  %rb = zext i1 %big to i32
  ret i32 %rb
equal:
  %other.at = getelementptr i64, ptr %slots, i64 %value
  %other = load i64, ptr %other.at, align 8
  %e = icmp ne i64 %got, %other
  %req = zext i1 %e to i32
  ret i32 %req
ok:
  ret i32 0
}

; True when an extent is 0.
define internal i1 @tw_is_empty(ptr %t) cold noinline optnone nounwind {
entry:
  %ndim = field i32, %tensor %t, 3
  %n = zext i32 %ndim to i64
  %shape = field ptr, %tensor %t, 5
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %next, label %no
next:
  %e.at = getelementptr i64, ptr %shape, i64 %i
  %e = load i64, ptr %e.at, align 8
  %i.next = add i64 %i, 1
  %zero = icmp eq i64 %e, 0
  br i1 %zero, label %yes, label %loop
yes:
  ret i1 true
no:
  ret i1 false
}

; True when nothing is reached by stride i: there is one element along the dimension, or none at all.
define internal i1 @tw_is_idle(ptr %t, i64 %i) cold noinline optnone nounwind {
  %shape = field ptr, %tensor %t, 5
  %e.at = getelementptr i64, ptr %shape, i64 %i
  %e = load i64, ptr %e.at, align 8
  %one = icmp eq i64 %e, 1
  %empty = call i1 @tw_is_empty(ptr %t)
  %r = or i1 %one, %empty
  ret i1 %r
}

; Stride i in elements; a tensor without strides is compact.
define internal i64 @tw_stride_of(ptr %t, i64 %i) noinline nounwind {
entry:
  %given = field ptr, %tensor %t, 6
  %implicit = icmp eq ptr %given, null
  br i1 %implicit, label %product, label %direct
direct:
  %s.at = getelementptr i64, ptr %given, i64 %i
  %s = load i64, ptr %s.at, align 8
  ret i64 %s
product:
  %ndim = field i32, %tensor %t, 3
  %n = zext i32 %ndim to i64
  %shape = field ptr, %tensor %t, 5
  br label %loop
loop:
  %k = phi i64 [ %n, %product ], [ %k.next, %next ]
  %total = phi i64 [ 1, %product ], [ %total.next, %next ]
  %k.next = sub i64 %k, 1
  %more = icmp ugt i64 %k.next, %i
  br i1 %more, label %next, label %done
next:
  %e.at = getelementptr i64, ptr %shape, i64 %k.next
  %e = load i64, ptr %e.at, align 8
  %total.next = mul i64 %total, %e
  br label %loop
done:
  ret i64 %total
}

define internal i32 @tw_check_strides(ptr %t, ptr %p, ptr %table, ptr %slots) nounwind {
entry:
  %ndim = field i32, %tensor %t, 3
  %records.off = field i32, %param %p, 6
  %offx = zext i32 %records.off to i64
  %records = getelementptr i8, ptr %table, i64 %offx
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %ok ]
  %more = icmp ult i32 %i, %ndim
  br i1 %more, label %one, label %done
one:
  %ix = zext i32 %i to i64
  %got = call i64 @tw_stride_of(ptr %t, i64 %ix)
  %rec = getelementptr %dim, ptr %records, i64 %ix
  %r = call i32 @tw_check_dim(i64 %got, ptr %rec, ptr %slots)
  %good = icmp eq i32 %r, 0
  br i1 %good, label %ok, label %doubt
ok:
  %i.next = add i32 %i, 1
  br label %loop
doubt:
  %kind = load i32, ptr %rec, align 8
  %binds = icmp eq i32 %kind, 1
  %idle = call i1 @tw_is_idle(ptr %t, i64 %ix)
  %forgiven = select i1 %binds, i1 false, i1 %idle
  br i1 %forgiven, label %ok, label %bad
bad:
  %q = call i32 @tw_refuse_dim(ptr %t, ptr %p, ptr %table, ptr %slots, ptr %rec, i32 %i, i64 %got, i32 1)
  ret i32 -1
done:
  ret i32 0
}
