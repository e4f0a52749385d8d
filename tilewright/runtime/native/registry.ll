; One pool per process: the first library that needs one publishes the table of its functions as the tvm-ffi global
; function "tilewright.threads.v1", the others call through it.

%task = type { ptr, ptr, ptr }                           ; of a parallel loop: function, its env, the place of the caller's message

@tw_impl = internal global ptr null, align 8
@tw_table = internal constant [3 x ptr] [ptr @tw_pool_parallel, ptr @tw_pool_set, ptr @tw_pool_get], align 8

define $LINKAGE void @tw_parallel(ptr %fn, ptr %env, i64 %count) nounwind {
entry:
  %table = call ptr @tw_threads()
  %parallel = load ptr, ptr %table, align 8
  %place = call ptr @tw_place()
  %none = icmp eq ptr %place, null
  br i1 %none, label %plain, label %carry
plain:
  tail call void %parallel(ptr %fn, ptr %env, i64 %count)
  ret void
carry:                                                   ; what fails in another thread fails this call
  %task = alloca %task, align 8
  %env.at = getelementptr %task, ptr %task, i64 0, i32 1
  %place.at = getelementptr %task, ptr %task, i64 0, i32 2
  store ptr %fn, ptr %task, align 8
  store ptr %env, ptr %env.at, align 8
  store ptr %place, ptr %place.at, align 8
  call void %parallel(ptr @tw_part, ptr %task, i64 %count)
  ret void
}

define internal void @tw_part(i64 %begin, i64 %end, ptr %task) nounwind {
  %fn = field ptr, %task %task, 0
  %env = field ptr, %task %task, 1
  %place = field ptr, %task %task, 2
  %before = call ptr @tw_change_place(ptr %place)
  call void %fn(i64 %begin, i64 %end, ptr %env)
  %after = call ptr @tw_change_place(ptr %before)
  ret void
}

define $LINKAGE void @tw_set_num_threads(i32 %n) nounwind {
  %table = call ptr @tw_threads()
  %set.at = getelementptr ptr, ptr %table, i64 1
  %set = load ptr, ptr %set.at, align 8
  call void %set(i32 %n)
  ret void
}

define $LINKAGE i32 @tw_num_threads() nounwind {
  %table = call ptr @tw_threads()
  %get.at = getelementptr ptr, ptr %table, i64 2
  %get = load ptr, ptr %get.at, align 8
  %r = call i32 %get()
  ret i32 %r
}

define internal ptr @tw_threads() alwaysinline nounwind {
entry:
  %known = load atomic ptr, ptr @tw_impl acquire, align 8
  %none = icmp eq ptr %known, null
  br i1 %none, label %find, label %found
find:
  %r = call ptr @tw_resolve()
  ret ptr %r
found:
  ret ptr %known
}

; The published table; ours, published now, when there is none. In a process without tvm-ffi it stays ours alone.
define internal ptr @tw_resolve() cold noinline optnone nounwind {
entry:
  %name = alloca { ptr, i64 }, align 8
  %handle = alloca ptr, align 8
  %result = alloca %any, align 8
  %length = getelementptr { ptr, i64 }, ptr %name, i64 0, i32 1
  store ptr $"tilewright.threads.v1", ptr %name, align 8
  store i64 21, ptr %length, align 8
  store ptr null, ptr %handle, align 8
  %has.ffi = icmp ne ptr @TVMFFIFunctionGetGlobal, null
  br i1 %has.ffi, label %look, label %ours
look:
  %g = call i32 @TVMFFIFunctionGetGlobal(ptr %name, ptr %handle)
  %f = load ptr, ptr %handle, align 8
  %missing = icmp eq ptr %f, null
  br i1 %missing, label %publish, label %ask
publish:
  %c = call i32 @TVMFFIFunctionCreate(ptr null, ptr @tw_tell_table, ptr null, ptr %handle)
  %created = load ptr, ptr %handle, align 8
  %s = call i32 @TVMFFIFunctionSetGlobal(ptr %name, ptr %created, i32 0)
  %d = call i32 @TVMFFIObjectDecRef(ptr %created)
  store ptr null, ptr %handle, align 8
  %lost = icmp ne i32 %s, 0
  br i1 %lost, label %again, label %ours
ours:
  call void @tw_pin()
  br label %keep.ours
again:                                                   ; another thread published first: forget the error, ask
  call void @TVMFFIErrorMoveFromRaised(ptr %handle)
  %error = load ptr, ptr %handle, align 8
  %noerror = icmp eq ptr %error, null
  br i1 %noerror, label %reask, label %drop
drop:
  %de = call i32 @TVMFFIObjectDecRef(ptr %error)
  br label %reask
reask:
  store ptr null, ptr %handle, align 8
  %g2 = call i32 @TVMFFIFunctionGetGlobal(ptr %name, ptr %handle)
  br label %ask
ask:
  %published = load ptr, ptr %handle, align 8
  store %any zeroinitializer, ptr %result, align 8
  %call = call i32 @TVMFFIFunctionCall(ptr %published, ptr null, i32 0, ptr %result)
  %d2 = call i32 @TVMFFIObjectDecRef(ptr %published)
  %value = field ptr, %any %result, 2
  %bad = icmp ne i32 %call, 0
  br i1 %bad, label %keep.ours, label %keep
keep.ours:
  br label %keep
keep:
  %table = phi ptr [ %value, %ask ], [ @tw_table, %keep.ours ]
  store atomic ptr %table, ptr @tw_impl release, align 8
  ret ptr %table
}

; The packed function behind "tilewright.threads.v1": the address of the table as an opaque pointer (type 4).
define internal i32 @tw_tell_table(ptr %self, ptr %args, i32 %n, ptr %ret) nounwind {
  store i32 4, ptr %ret, align 8
  %pad = getelementptr %any, ptr %ret, i64 0, i32 1
  store i32 0, ptr %pad, align 4
  %value = getelementptr %any, ptr %ret, i64 0, i32 2
  store ptr @tw_table, ptr %value, align 8
  ret i32 0
}

; Keep the shared library of this code loaded for good: its threads run in it. (Under the JIT dladdr finds nothing.)
define internal void @tw_pin() cold noinline optnone nounwind {
entry:
  %info = alloca [4 x ptr], align 8
  %found = call i32 @dladdr(ptr @tw_table, ptr %info)
  %is.library = icmp ne i32 %found, 0
  br i1 %is.library, label %open, label %done
open:
  %path = load ptr, ptr %info, align 8
  %h = call ptr @dlopen(ptr %path, i32 $PIN_FLAGS)
  br label %done
done:
  ret void
}

declare $FFI i32 @TVMFFIFunctionGetGlobal(ptr, ptr)
declare $FFI i32 @TVMFFIFunctionCreate(ptr, ptr, ptr, ptr)
declare $FFI i32 @TVMFFIFunctionSetGlobal(ptr, ptr, i32)
declare $FFI i32 @TVMFFIFunctionCall(ptr, ptr, i32, ptr)
declare $FFI i32 @TVMFFIObjectDecRef(ptr)
declare $FFI void @TVMFFIErrorMoveFromRaised(ptr)
declare i32 @dladdr(ptr, ptr)
declare ptr @dlopen(ptr, i32)
