; The messages of the argument checker: function, argument, what came, what was expected.
; A message grows in a %message by @tw_say (texts) and @tw_count (numbers); @tw_raise hands it to @tw_report.

%message = type { i64, [4096 x i8] }                     ; length, characters

@tw_own_errors = $VARIABLE global i32 0                  ; 1: in a process of Tilewright, which knows its own kinds

define internal void @tw_say(ptr %m, ptr %format, ptr %text) cold noinline optnone nounwind {
  %len = load i64, ptr %m, align 8
  %chars = getelementptr %message, ptr %m, i64 0, i32 1
  %at = getelementptr i8, ptr %chars, i64 %len
  %room = sub i64 4096, %len
  %w = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %at, i64 %room, ptr %format, ptr %text)
  call void @tw_advance(ptr %m, i32 %w)
  ret void
}

define internal void @tw_count(ptr %m, ptr %format, i64 %a, i64 %b) cold noinline optnone nounwind {
  %len = load i64, ptr %m, align 8
  %chars = getelementptr %message, ptr %m, i64 0, i32 1
  %at = getelementptr i8, ptr %chars, i64 %len
  %room = sub i64 4096, %len
  %w = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %at, i64 %room, ptr %format, i64 %a, i64 %b)
  call void @tw_advance(ptr %m, i32 %w)
  ret void
}

define internal void @tw_advance(ptr %m, i32 %written) cold noinline optnone nounwind {
  %len = load i64, ptr %m, align 8
  %w = call i32 @llvm.smax.i32(i32 %written, i32 0)
  %wx = zext i32 %w to i64
  %sum = add i64 %len, %wx
  %r = call i64 @llvm.umin.i64(i64 %sum, i64 4095)
  store i64 %r, ptr %m, align 8
  ret void
}

; The text at the offset that the table holds in the word at %at.
define internal ptr @tw_text(ptr %table, ptr %at) cold noinline optnone nounwind {
  %off = load i32, ptr %at, align 4
  %offx = zext i32 %off to i64
  %r = getelementptr i8, ptr %table, i64 %offx
  ret ptr %r
}

; "matmul: "
define internal void @tw_begin(ptr %m, ptr %table) cold noinline optnone nounwind {
  store i64 0, ptr %m, align 8
  %name.at = getelementptr %header, ptr %table, i64 0, i32 6
  %name = call ptr @tw_text(ptr %table, ptr %name.at)
  call void @tw_say(ptr %m, ptr $"%s: ", ptr %name)
  ret void
}

; "matmul: argument B"
define internal void @tw_begin_argument(ptr %m, ptr %p, ptr %table) cold noinline optnone nounwind {
  call void @tw_begin(ptr %m, ptr %table)
  %name.at = getelementptr %param, ptr %p, i64 0, i32 2
  %name = call ptr @tw_text(ptr %table, ptr %name.at)
  call void @tw_say(ptr %m, ptr $"argument %s", ptr %name)
  ret void
}

; "float32", "bool", "int8x4"
define internal void @tw_say_dtype(ptr %m, i32 %word) cold noinline optnone nounwind {
entry:
  %code = and i32 %word, 255
  %codex = zext i32 %code to i64
  %high = lshr i32 %word, 8
  %bits = and i32 %high, 255
  %bitsx = zext i32 %bits to i64
  %lanes = lshr i32 %word, 16
  %lanesx = zext i32 %lanes to i64
  switch i32 %code, label %other [ i32 0, label %int
                                   i32 1, label %uint
                                   i32 2, label %float
                                   i32 4, label %bfloat
                                   i32 6, label %bool
                                   i32 10, label %e4m3fn
                                   i32 12, label %e5m2 ]
int:
  call void @tw_count(ptr %m, ptr $"int%ld", i64 %bitsx, i64 0)
  br label %vector
uint:
  call void @tw_count(ptr %m, ptr $"uint%ld", i64 %bitsx, i64 0)
  br label %vector
float:
  call void @tw_count(ptr %m, ptr $"float%ld", i64 %bitsx, i64 0)
  br label %vector
bfloat:
  call void @tw_count(ptr %m, ptr $"bfloat%ld", i64 %bitsx, i64 0)
  br label %vector
bool:
  call void @tw_say(ptr %m, ptr $"bool", ptr null)
  br label %vector
e4m3fn:
  call void @tw_say(ptr %m, ptr $"float8_e4m3fn", ptr null)
  br label %vector
e5m2:
  call void @tw_say(ptr %m, ptr $"float8_e5m2", ptr null)
  br label %vector
other:
  call void @tw_count(ptr %m, ptr $"(dtype code %ld, %ld bits)", i64 %codex, i64 %bitsx)
  br label %vector
vector:
  %many = icmp ugt i32 %lanes, 1
  br i1 %many, label %put.lanes, label %done
put.lanes:
  call void @tw_count(ptr %m, ptr $"x%ld", i64 %lanesx, i64 0)
  br label %done
done:
  ret void
}

; "2000, 500": the extents (which = 0), the strides (1) or the strides of a compact tensor of this shape (2)
define internal void @tw_say_numbers(ptr %m, ptr %t, i32 %which) cold noinline optnone nounwind {
entry:
  %ndim = field i32, %tensor %t, 3
  %garbage = icmp ugt i32 %ndim, 64                      ; nothing is known to lie behind the address of the shape
  %shown = select i1 %garbage, i32 0, i32 %ndim
  %n = zext i32 %shown to i64
  %shape = field ptr, %tensor %t, 5
  %compact = alloca %tensor, align 8
  %copy = load %tensor, ptr %t, align 8
  %bare = insertvalue %tensor %copy, ptr null, 6
  store %tensor %bare, ptr %compact, align 8
  %is.compact = icmp eq i32 %which, 2
  %source = select i1 %is.compact, ptr %compact, ptr %t
  %extents = icmp eq i32 %which, 0
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %put ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %separate, label %done
separate:
  %leading = icmp eq i64 %i, 0
  %sep = select i1 %leading, ptr $"", ptr $", "
  call void @tw_say(ptr %m, ptr $"%s", ptr %sep)
  br i1 %extents, label %extent, label %stride
stride:
  %s = call i64 @tw_stride_of(ptr %source, i64 %i)
  br label %put
extent:
  %e.at = getelementptr i64, ptr %shape, i64 %i
  %e = load i64, ptr %e.at, align 8
  br label %put
put:
  %v = phi i64 [ %s, %stride ], [ %e, %extent ]
  call void @tw_count(ptr %m, ptr $"%ld", i64 %v, i64 0)
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}

; "cpu(0)"
define internal void @tw_say_device(ptr %m, i32 %type, i32 %id) cold noinline optnone nounwind {
entry:
  %typex = zext i32 %type to i64
  %idx = zext i32 %id to i64
  switch i32 %type, label %other [ i32 1, label %cpu
                                   i32 2, label %cuda
                                   i32 3, label %host ]
cpu:
  call void @tw_count(ptr %m, ptr $"cpu(%ld)", i64 %idx, i64 0)
  ret void
cuda:
  call void @tw_count(ptr %m, ptr $"cuda(%ld)", i64 %idx, i64 0)
  ret void
host:
  call void @tw_count(ptr %m, ptr $"cuda_host(%ld)", i64 %idx, i64 0)
  ret void
other:
  call void @tw_count(ptr %m, ptr $"device type %ld(%ld)", i64 %typex, i64 %idx)
  ret void
}

; The signature on a line of its own, and the tensor that came, when there is one.
define internal void @tw_say_both(ptr %m, ptr %t, ptr %p, ptr %table) cold noinline optnone nounwind {
entry:
  %text.at = getelementptr %header, ptr %table, i64 0, i32 7
  %text = call ptr @tw_text(ptr %table, ptr %text.at)
  call void @tw_say(ptr %m, ptr $"\n\nexpected: %s", ptr %text)
  %none = icmp eq ptr %t, null
  br i1 %none, label %done, label %tensor
tensor:
  %name.at = getelementptr %param, ptr %p, i64 0, i32 2
  %name = call ptr @tw_text(ptr %table, ptr %name.at)
  call void @tw_say(ptr %m, ptr $"\ngot: %s: ", ptr %name)
  %dtype = field i32, %tensor %t, 4
  call void @tw_say_dtype(ptr %m, i32 %dtype)
  call void @tw_say(ptr %m, ptr $"[", ptr null)
  call void @tw_say_numbers(ptr %m, ptr %t, i32 0)
  call void @tw_say(ptr %m, ptr $"]", ptr null)
  br label %done
done:
  ret void
}

define internal i32 @tw_raise(ptr %m, i1 %is.type) cold noinline optnone nounwind {
  %whole = getelementptr %message, ptr %m, i64 0, i32 1
  call void @tw_end_whole(ptr %whole, i64 4096)
  %own = load i32, ptr @tw_own_errors, align 4
  %known = icmp ne i32 %own, 0
  %v = select i1 %known, ptr $"tilewright.CallValueError", ptr $"ValueError"
  %t = select i1 %known, ptr $"tilewright.CallTypeError", ptr $"TypeError"
  %kind = select i1 %is.type, ptr %t, ptr %v
  %chars = getelementptr %message, ptr %m, i64 0, i32 1
  call void @tw_report(ptr %kind, ptr %chars)
  ret i32 -1
}

; Where a text fills its room, which may have cut it, take away the bytes of UTF-8 at its end that are no whole character.
define internal void @tw_end_whole(ptr %text, i64 %room) cold noinline optnone nounwind {
entry:
  %length = call i64 @strlen(ptr %text)
  %up = add i64 %length, 1
  %full = icmp eq i64 %up, %room
  br i1 %full, label %back, label %done
back:                                                    ; to the last byte that is none of 10xxxxxx
  %i = phi i64 [ %length, %entry ], [ %i.next, %back ]
  %i.next = sub i64 %i, 1
  %byte.at = getelementptr i8, ptr %text, i64 %i.next
  %byte = load i8, ptr %byte.at, align 1
  %high = and i8 %byte, -64
  %inside = icmp eq i8 %high, -128
  %some = icmp ne i64 %i.next, 0
  %on = and i1 %inside, %some
  br i1 %on, label %back, label %judge
judge:
  %plain = icmp sge i8 %byte, 0
  br i1 %plain, label %done, label %cut
cut:
  store i8 0, ptr %byte.at, align 1
  br label %done
done:
  ret void
}

define internal i32 @tw_refuse_count(ptr %table, i32 %n) cold noinline optnone nounwind {
  %m = alloca %message, align 8
  call void @tw_begin(ptr %m, ptr %table)
  %want = field i32, %header %table, 2
  %wantx = zext i32 %want to i64
  %nx = zext i32 %n to i64
  call void @tw_count(ptr %m, ptr $"num_args is %ld, expected %ld", i64 %nx, i64 %wantx)
  call void @tw_say_both(ptr %m, ptr null, ptr null, ptr %table)
  %r = call i32 @tw_raise(ptr %m, i1 true)
  ret i32 %r
}

; "is None, expected a tensor of float32"; for a scalar "is a float, expected int32"
define internal i32 @tw_refuse_type(ptr %a, ptr %p, ptr %table) cold noinline optnone nounwind {
entry:
  %m = alloca %message, align 8
  call void @tw_begin_argument(ptr %m, ptr %p, ptr %table)
  %type = load i32, ptr %a, align 8
  switch i32 %type, label %say [ i32 0, label %none
                                 i32 1, label %int
                                 i32 2, label %bool
                                 i32 3, label %float
                                 i32 7, label %tensor
                                 i32 70, label %tensor
                                 i32 8, label %string
                                 i32 11, label %string
                                 i32 65, label %string
                                 i32 68, label %function
                                 i32 71, label %list
                                 i32 75, label %list
                                 i32 72, label %map
                                 i32 76, label %map
                                 i32 78, label %big ]
none:
  br label %say
int:
  br label %say
bool:
  br label %say
float:
  br label %say
tensor:
  br label %say
string:
  br label %say
function:
  br label %say
list:
  br label %say
map:
  br label %say
big:
  br label %say
say:
  %what = phi ptr [ $"an object that is neither a tensor nor a number", %entry ], [ $"None", %none ],
                  [ $"an int", %int ], [ $"a bool", %bool ], [ $"a float", %float ], [ $"a tensor", %tensor ],
                  [ $"a string", %string ], [ $"a function", %function ], [ $"a list or tuple", %list ],
                  [ $"a dict", %map ], [ $"an int beyond those of int64", %big ]
  call void @tw_say(ptr %m, ptr $" is %s, expected ", ptr %what)
  %kind = load i32, ptr %p, align 4
  %scalar = icmp eq i32 %kind, 1
  %format = select i1 %scalar, ptr $"a number of type %s", ptr $"a tensor of %s"
  %dtype.at = getelementptr %param, ptr %p, i64 0, i32 10
  %dtype = call ptr @tw_text(ptr %table, ptr %dtype.at)
  call void @tw_say(ptr %m, ptr %format, ptr %dtype)
  call void @tw_say_both(ptr %m, ptr null, ptr %p, ptr %table)
  %r = call i32 @tw_raise(ptr %m, i1 true)
  ret i32 %r
}

; rank, dtype or device
define internal i32 @tw_refuse_kind(ptr %t, ptr %p, ptr %table) cold noinline optnone nounwind {
entry:
  %m = alloca %message, align 8
  call void @tw_begin_argument(ptr %m, ptr %p, ptr %table)
  %ndim = field i32, %tensor %t, 3
  %want = field i32, %param %p, 4
  %dtype = field i32, %tensor %t, 4
  %wdtype = field i32, %param %p, 3
  %by.rank = icmp ne i32 %ndim, %want
  br i1 %by.rank, label %rank, label %not.rank
rank:
  %ndimx = sext i32 %ndim to i64
  %wantx = zext i32 %want to i64
  call void @tw_count(ptr %m, ptr $".ndim is %ld, expected %ld", i64 %ndimx, i64 %wantx)
  br label %finish
not.rank:
  %by.dtype = icmp ne i32 %dtype, %wdtype
  br i1 %by.dtype, label %dtypes, label %device
dtypes:
  call void @tw_say(ptr %m, ptr $".dtype is ", ptr null)
  call void @tw_say_dtype(ptr %m, i32 %dtype)
  call void @tw_say(ptr %m, ptr $", expected ", ptr null)
  call void @tw_say_dtype(ptr %m, i32 %wdtype)
  br label %finish
device:
  %dev = field i32, %tensor %t, 1
  %id = field i32, %tensor %t, 2
  %wdev = field i32, %param %p, 8
  call void @tw_say(ptr %m, ptr $".device is ", ptr null)
  call void @tw_say_device(ptr %m, i32 %dev, i32 %id)
  call void @tw_say(ptr %m, ptr $", expected ", ptr null)
  call void @tw_say_device(ptr %m, i32 %wdev, i32 0)
  br label %finish
finish:
  %is.type = phi i1 [ false, %rank ], [ true, %dtypes ], [ false, %device ]
  call void @tw_say_both(ptr %m, ptr %t, ptr %p, ptr %table)
  %r = call i32 @tw_raise(ptr %m, i1 %is.type)
  ret i32 %r
}

; "argument B.shape[0] is 2000, expected 500 (constraint B.shape[0] == 500)"; which: 0 an extent, 1 a stride
define internal i32 @tw_refuse_dim(ptr %t, ptr %p, ptr %table, ptr %slots, ptr %rec, i32 %index, i64 %got,
                                   i32 %which) cold noinline optnone nounwind {
entry:
  %m = alloca %message, align 8
  call void @tw_begin_argument(ptr %m, ptr %p, ptr %table)
  %is.stride = icmp eq i32 %which, 1
  %format = select i1 %is.stride, ptr $".strides[%ld] is %ld, ", ptr $".shape[%ld] is %ld, "
  %indexx = zext i32 %index to i64
  call void @tw_count(ptr %m, ptr %format, i64 %indexx, i64 %got)
  %value = field i64, %dim %rec, 2
  %kind = load i32, ptr %rec, align 8
  switch i32 %kind, label %fixed [ i32 1, label %limit
                                   i32 2, label %equal
                                   i32 3, label %expression ]
limit:
  %limit.value = field i64, %dim %rec, 3
  %below = icmp slt i64 %got, 0
  %least = sub i64 0, %limit.value
  %bound = select i1 %below, i64 %least, i64 %limit.value
  %bound.text = select i1 %below, ptr $"expected at least %ld", ptr $"expected at most %ld"
  call void @tw_count(ptr %m, ptr %bound.text, i64 %bound, i64 0)
  br label %constraint
equal:
  %slot = getelementptr i64, ptr %slots, i64 %value
  %other = load i64, ptr %slot, align 8
  br label %fixed
expression:
  %program = getelementptr i8, ptr %table, i64 %value
  %computed = call i64 @tw_evaluate(ptr %program, ptr %slots)
  br label %fixed
fixed:
  %want = phi i64 [ %value, %entry ], [ %other, %equal ], [ %computed, %expression ]
  call void @tw_count(ptr %m, ptr $"expected %ld", i64 %want, i64 0)
  br label %constraint
constraint:
  %text.at = getelementptr %dim, ptr %rec, i64 0, i32 1
  %text = call ptr @tw_text(ptr %table, ptr %text.at)
  call void @tw_say(ptr %m, ptr $" (constraint %s)", ptr %text)
  call void @tw_say_both(ptr %m, ptr %t, ptr %p, ptr %table)
  %r = call i32 @tw_raise(ptr %m, i1 false)
  ret i32 %r
}

define internal i32 @tw_refuse_strides(ptr %t, ptr %p, ptr %table) cold noinline optnone nounwind {
  %m = alloca %message, align 8
  call void @tw_begin_argument(ptr %m, ptr %p, ptr %table)
  call void @tw_say(ptr %m, ptr $" is not contiguous: strides (", ptr null)
  call void @tw_say_numbers(ptr %m, ptr %t, i32 1)
  call void @tw_say(ptr %m, ptr $"), expected (", ptr null)
  call void @tw_say_numbers(ptr %m, ptr %t, i32 2)
  call void @tw_say(ptr %m, ptr $") in elements", ptr null)
  call void @tw_say_both(ptr %m, ptr %t, ptr %p, ptr %table)
  call void @tw_say(ptr %m, ptr $"\n\nhint: pass a compact row-major copy, e.g. numpy.ascontiguousarray", ptr null)
  %r = call i32 @tw_raise(ptr %m, i1 false)
  ret i32 %r
}

; a null address, or one that is not aligned
define internal i32 @tw_refuse_address(ptr %t, ptr %p, ptr %table, i64 %address) cold noinline optnone nounwind {
entry:
  %m = alloca %message, align 8
  call void @tw_begin_argument(ptr %m, ptr %p, ptr %table)
  %align = field i32, %param %p, 7
  %alignx = zext i32 %align to i64
  %data = load ptr, ptr %t, align 8
  %null = icmp eq ptr %data, null
  br i1 %null, label %is.null, label %is.odd
is.null:
  call void @tw_say(ptr %m, ptr $".data is null, expected the address of its elements", ptr null)
  br label %finish
is.odd:
  call void @tw_count(ptr %m, ptr $".data is at address %#lx, expected a multiple of %ld bytes", i64 %address, i64 %alignx)
  br label %finish
finish:
  call void @tw_say_both(ptr %m, ptr %t, ptr %p, ptr %table)
  %r = call i32 @tw_raise(ptr %m, i1 false)
  ret i32 %r
}

define internal i32 @tw_refuse_range(ptr %p, ptr %table, i64 %value) cold noinline optnone nounwind {
  %m = alloca %message, align 8
  call void @tw_begin_argument(ptr %m, ptr %p, ptr %table)
  %dtype.at = getelementptr %param, ptr %p, i64 0, i32 10
  %dtype = call ptr @tw_text(ptr %table, ptr %dtype.at)
  call void @tw_count(ptr %m, ptr $" is %ld, ", i64 %value, i64 0)
  call void @tw_say(ptr %m, ptr $"expected a value that fits %s", ptr %dtype)
  call void @tw_say_both(ptr %m, ptr null, ptr %p, ptr %table)
  %r = call i32 @tw_raise(ptr %m, i1 false)
  ret i32 %r
}

declare i32 @llvm.smax.i32(i32, i32)
declare i64 @llvm.umin.i64(i64, i64)
declare i32 @snprintf(ptr, i64, ptr, ...)
