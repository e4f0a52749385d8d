; Kernels are compiled on the promise that what they write overlaps no other argument, except one that is read at the
; very place that is written ("pointwise"). The check of it, on compact tensors; those with declared strides may be
; interleaved and are left to the caller.

define internal i32 @tw_check_overlap(ptr %args, i32 %n, ptr %table, ptr %slots) nounwind {
entry:
  %first = getelementptr i8, ptr %table, i64 40
  %count = zext i32 %n to i64
  br label %outer
outer:
  %j = phi i64 [ 0, %entry ], [ %j.next, %outer.step ]
  %jmore = icmp ult i64 %j, %count
  br i1 %jmore, label %outer.kind, label %fine
outer.kind:
  %p = getelementptr %param, ptr %first, i64 %j
  %flags = field i32, %param %p, 9
  %bit = and i32 %flags, 2
  %written = icmp ne i32 %bit, 0                         ; exclusive
  %jcompact = call i1 @tw_is_compact_buffer(ptr %p)
  %jlook = and i1 %written, %jcompact
  br i1 %jlook, label %outer.range, label %outer.step
outer.range:
  %ja = getelementptr %any, ptr %args, i64 %j
  %jt = call ptr @tw_tensor_of(ptr %ja)
  %jlow = call i64 @tw_start_of(ptr %p, ptr %slots)
  %jbytes = call i64 @tw_bytes_of(ptr %jt)
  %jhigh = add i64 %jlow, %jbytes
  br label %inner
inner:
  %i = phi i64 [ 0, %outer.range ], [ %i.next, %inner.step ]
  %imore = icmp ult i64 %i, %count
  br i1 %imore, label %inner.kind, label %outer.step
inner.kind:
  %q = getelementptr %param, ptr %first, i64 %i
  %icompact = call i1 @tw_is_compact_buffer(ptr %q)
  %other = icmp ne i64 %i, %j
  %ilook = and i1 %other, %icompact
  br i1 %ilook, label %inner.range, label %inner.step
inner.range:
  %ia = getelementptr %any, ptr %args, i64 %i
  %it = call ptr @tw_tensor_of(ptr %ia)
  %ilow = call i64 @tw_start_of(ptr %q, ptr %slots)
  %ibytes = call i64 @tw_bytes_of(ptr %it)
  %ihigh = add i64 %ilow, %ibytes
  %before = icmp ult i64 %ilow, %jhigh
  %after = icmp ult i64 %jlow, %ihigh
  %some.i = icmp ne i64 %ibytes, 0
  %some.j = icmp ne i64 %jbytes, 0
  %meet = and i1 %before, %after
  %some = and i1 %some.i, %some.j
  %clash = and i1 %meet, %some
  br i1 %clash, label %inner.same, label %inner.step
inner.same:
  %qflags = field i32, %param %q, 9
  %qbit = and i32 %qflags, 4
  %pointwise = icmp ne i32 %qbit, 0
  %same.low = icmp eq i64 %ilow, %jlow
  %same.high = icmp eq i64 %ihigh, %jhigh
  %same.place = and i1 %same.low, %same.high
  %allowed = and i1 %same.place, %pointwise
  br i1 %allowed, label %inner.step, label %bad
inner.step:
  %i.next = add i64 %i, 1
  br label %inner
outer.step:
  %j.next = add i64 %j, 1
  br label %outer
bad:
  %r = call i32 @tw_refuse_overlap(ptr %jt, ptr %p, ptr %q, ptr %table)
  ret i32 -1
fine:
  ret i32 0
}

; True for a tensor parameter without declared strides.
define internal i1 @tw_is_compact_buffer(ptr %p) alwaysinline nounwind {
  %kind = load i32, ptr %p, align 4
  %strides = field i32, %param %p, 6
  %both = or i32 %kind, %strides
  %r = icmp eq i32 %both, 0
  ret i1 %r
}

; The address that the checks have put into the parameter's slot.
define internal i64 @tw_start_of(ptr %p, ptr %slots) alwaysinline nounwind {
  %slot = field i32, %param %p, 1
  %slotx = zext i32 %slot to i64
  %at = getelementptr i64, ptr %slots, i64 %slotx
  %r = load i64, ptr %at, align 8
  ret i64 %r
}

; Bytes of a compact tensor.
define internal i64 @tw_bytes_of(ptr %t) nounwind {
entry:
  %dtype = field i32, %tensor %t, 4
  %shifted = lshr i32 %dtype, 8
  %bits = and i32 %shifted, 255
  %lanes = lshr i32 %dtype, 16
  %all = mul i32 %bits, %lanes
  %up = add i32 %all, 7
  %item = lshr i32 %up, 3
  %itemx = zext i32 %item to i64
  %ndim = field i32, %tensor %t, 3
  %n = zext i32 %ndim to i64
  %shape = field ptr, %tensor %t, 5
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %total = phi i64 [ %itemx, %entry ], [ %total.next, %next ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %next, label %done
next:
  %e.at = getelementptr i64, ptr %shape, i64 %i
  %e = load i64, ptr %e.at, align 8
  %total.next = mul i64 %total, %e
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret i64 %total
}

; "matmul: argument C overlaps argument A in memory"
define internal i32 @tw_refuse_overlap(ptr %t, ptr %p, ptr %q, ptr %table) cold noinline optnone nounwind {
  %m = alloca %message, align 8
  call void @tw_begin_argument(ptr %m, ptr %p, ptr %table)
  %name.at = getelementptr %param, ptr %q, i64 0, i32 2
  %name = call ptr @tw_text(ptr %table, ptr %name.at)
  call void @tw_say(ptr %m, ptr $" overlaps argument %s in memory, expected memory of its own: it is written", ptr %name)
  call void @tw_say_both(ptr %m, ptr %t, ptr %p, ptr %table)
  call void @tw_say(ptr %m, ptr $"\n\nhint: pass an array of its own for the result", ptr null)
  %r = call i32 @tw_raise(ptr %m, i1 false)
  ret i32 %r
}
