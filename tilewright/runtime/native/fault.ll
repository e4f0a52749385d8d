; Where a kernel leaves the message of an error: tw_fault(own) is the place of the call that this thread works for, or
; `own`, a place of the kernel's, where the kernel was called with none.
;
; Calls of one function run side by side, so each has a place of its own, on the stack of `tw_run`. The thread knows it by
; a key, since LLVM's JIT has no thread_local; in a parallel loop the threads of the pool know that of the caller
; (`tw_parallel`), and what is called back finds none (`tw_call_packed`).

%fault = type { ptr, [1024 x i8] }                        ; the message, and room for one that has numbers in it

@tw_fault_key = internal global i64 0, align 8            ; plus 1; 0: not made yet

define $LINKAGE ptr @tw_fault(ptr %own) noinline nounwind {
  %here = call ptr @tw_place()
  %none = icmp eq ptr %here, null
  %r = select i1 %none, ptr %own, ptr %here
  ret ptr %r
}

; The place of this thread, or null.
define internal ptr @tw_place() nounwind {
entry:
  %known = load atomic i64, ptr @tw_fault_key acquire, align 8
  %none = icmp eq i64 %known, 0
  br i1 %none, label %nothing, label %look
look:
  %key = sub i64 %known, 1
  %place = call ptr @pthread_getspecific(i64 %key)
  ret ptr %place
nothing:
  ret ptr null
}

; Let %place, or none for null, be that of this thread; the one before. Without a key left nothing changes.
define internal ptr @tw_change_place(ptr %place) nounwind {
entry:
  %before = call ptr @tw_place()
  %same = icmp eq ptr %before, %place
  br i1 %same, label %done, label %change
change:
  %known = call i64 @tw_key(ptr @tw_fault_key, ptr null)
  %none = icmp eq i64 %known, 0
  br i1 %none, label %done, label %set
set:
  %key = sub i64 %known, 1
  %s = call i32 @pthread_setspecific(i64 %key, ptr %place)
  br label %done
done:
  ret ptr %before
}

; The key that %at holds, plus 1, made at the first call; 0 where the process has no more.
define internal i64 @tw_key(ptr %at, ptr %destructor) nounwind {
entry:
  %out = alloca i64, align 8
  %known = load atomic i64, ptr %at acquire, align 8
  %none = icmp eq i64 %known, 0
  br i1 %none, label %make, label %found
make:
  store i64 0, ptr %out, align 8
  %failed = call i32 @pthread_key_create(ptr %out, ptr %destructor)
  %bad = icmp ne i32 %failed, 0
  br i1 %bad, label %nothing, label %publish
publish:
  %new = load i64, ptr %out, align 8
  %new.up = add i64 %new, 1
  %pair = cmpxchg ptr %at, i64 0, i64 %new.up acq_rel acquire, align 8
  %first = extractvalue { i64, i1 } %pair, 1
  br i1 %first, label %mine, label %late
late:
  %d = call i32 @pthread_key_delete(i64 %new)
  %other = extractvalue { i64, i1 } %pair, 0
  ret i64 %other
mine:
  ret i64 %new.up
found:
  ret i64 %known
nothing:
  ret i64 0
}

declare i32 @pthread_key_create(ptr, ptr)
declare i32 @pthread_key_delete(i64)
declare ptr @pthread_getspecific(i64)
declare i32 @pthread_setspecific(i64, ptr)
