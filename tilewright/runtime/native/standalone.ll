; What an exported file has for programs that are not tvm-ffi's: the text of the last error, the number of threads.

@tw_error_key = internal global i64 0, align 8            ; of the thread's text, plus 1; 0: not made yet
@tw_no_memory = internal global [4096 x i8] zeroinitializer, align 16

; The text of this thread's last error, "" before the first. Where several libraries are in one namespace all of them
; write to what the first one's function returns. (A key, since LLVM's JIT, which loads objects, has no thread_local.)
define weak ptr @tilewright_last_error() noinline optnone nounwind {
entry:
  %up = call i64 @tw_key(ptr @tw_error_key, ptr @free)
  %none = icmp eq i64 %up, 0
  br i1 %none, label %nothing, label %look
look:
  %key = sub i64 %up, 1
  %text = call ptr @pthread_getspecific(i64 %key)
  %fresh = icmp eq ptr %text, null
  br i1 %fresh, label %allocate, label %found
allocate:
  %memory = call ptr @calloc(i64 1, i64 4096)
  %exhausted = icmp eq ptr %memory, null
  br i1 %exhausted, label %nothing, label %keep
keep:
  %s = call i32 @pthread_setspecific(i64 %key, ptr %memory)
  ret ptr %memory
found:
  ret ptr %text
nothing:
  ret ptr @tw_no_memory
}

define weak void @tilewright_set_num_threads(i32 %n) noinline nounwind {
  call void @tw_set_num_threads(i32 %n)
  ret void
}

; Where an error goes: into the text, and into tvm-ffi where the process has it.
define weak hidden void @tw_report(ptr %kind, ptr %text) cold noinline optnone nounwind {
entry:
  %to = call ptr @tilewright_last_error()
  %w = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %to, i64 4096, ptr $"%s", ptr %text)
  %has.ffi = icmp ne ptr @TVMFFIErrorSetRaisedFromCStr, null
  br i1 %has.ffi, label %raise, label %done
raise:
  call void @TVMFFIErrorSetRaisedFromCStr(ptr %kind, ptr %text)
  br label %done
done:
  ret void
}

; Refuse an extent below 0 that a C program gave; -1.
define weak hidden i32 @tw_refuse_negative(ptr %function, ptr %extent, i64 %value) cold noinline optnone nounwind {
  %text = alloca [512 x i8], align 16
  %w = call i32 (ptr, i64, ptr, ...) @snprintf(ptr %text, i64 512, ptr $"%s: %s is %ld, an extent is at least 0", ptr %function, ptr %extent, i64 %value)
  call void @tw_report(ptr $"ValueError", ptr %text)
  ret i32 -1
}

declare extern_weak void @TVMFFIErrorSetRaisedFromCStr(ptr, ptr)
declare ptr @calloc(i64, i64)
