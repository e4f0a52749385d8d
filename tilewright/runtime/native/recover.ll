; tw_recover(function, a, b, c, d, result): 0 once *result = function(a, b, c, d), or the signal that ended the call.
;
; For calls into LLVM, which aborts where one of its assertions does not hold. The signals below have a handler of ours
; for the time of the call; in the calling thread it goes back to here. What the function held then is lost: its memory
; stays allocated, its locks stay taken. One call at a time: the caller holds a lock. A signal of another thread gets
; the handler it had before.

@tw_recover_signals = internal constant [4 x i32] [i32 4, i32 6, i32 8, i32 11]      ; SIGILL, SIGABRT, SIGFPE, SIGSEGV
@tw_recover_actions = internal global [4 x [256 x i8]] zeroinitializer, align 16     ; struct sigaction of each, before
@tw_recover_place = internal global [1024 x i8] zeroinitializer, align 16            ; sigjmp_buf
@tw_recover_thread = internal global i64 0, align 8

define $LINKAGE i32 @tw_recover(ptr %function, ptr %a, ptr %b, ptr %c, ptr %d, ptr %result) noinline {
entry:
  %self = call i64 @pthread_self()
  store volatile i64 %self, ptr @tw_recover_thread, align 8
  %signal = call i32 @$SIGSETJMP(ptr @tw_recover_place, i32 1) returns_twice
  %first = icmp eq i32 %signal, 0
  br i1 %first, label %call, label %done
call:
  call void @tw_recover_install()
  %value = call ptr %function(ptr %a, ptr %b, ptr %c, ptr %d)
  store ptr %value, ptr %result, align 8
  br label %done
done:
  call void @tw_recover_restore()
  ret i32 %signal
}

define internal void @tw_recover_install() noinline nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %number.at = getelementptr [4 x i32], ptr @tw_recover_signals, i64 0, i64 %i
  %number = load i32, ptr %number.at, align 4
  %action = getelementptr [4 x [256 x i8]], ptr @tw_recover_actions, i64 0, i64 %i
  %kept = call i32 @sigaction(i32 %number, ptr null, ptr %action)
  %before = call ptr @signal(i32 %number, ptr @tw_recover_handler)
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, 4
  br i1 %more, label %loop, label %done
done:
  ret void
}

define internal void @tw_recover_restore() noinline nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %number.at = getelementptr [4 x i32], ptr @tw_recover_signals, i64 0, i64 %i
  %number = load i32, ptr %number.at, align 4
  %action = getelementptr [4 x [256 x i8]], ptr @tw_recover_actions, i64 0, i64 %i
  %status = call i32 @sigaction(i32 %number, ptr %action, ptr null)
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, 4
  br i1 %more, label %loop, label %done
done:
  ret void
}

define internal void @tw_recover_handler(i32 %signal) noinline {
entry:
  %self = call i64 @pthread_self()
  %thread = load volatile i64, ptr @tw_recover_thread, align 8
  %own = icmp eq i64 %self, %thread
  br i1 %own, label %back, label %other
back:
  call void @siglongjmp(ptr @tw_recover_place, i32 %signal) noreturn
  unreachable
other:
  call void @tw_recover_restore()
  %raised = call i32 @raise(i32 %signal)                 ; blocked here: it comes once this handler has returned
  ret void
}

declare i32 @$SIGSETJMP(ptr, i32) returns_twice
declare void @siglongjmp(ptr, i32) noreturn
declare i32 @sigaction(i32, ptr, ptr)
declare ptr @signal(i32, ptr)
declare i32 @raise(i32)
