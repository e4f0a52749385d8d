; tw_hold_threads(set_terminate): from now on a thread that would end the process waits instead.
;
; Before Python 3.14 a thread that asks for the interpreter's lock while the interpreter ends gets pthread_exit, which
; unwinds its frames. Called back from a kernel, it has C++ frames among them that let nothing through: unwinding ends in
; std::terminate. Here such a thread waits, as it does from Python 3.14 on; the calling thread still terminates.

@tw_terminate = internal global ptr null, align 8
@tw_ending_thread = internal global i64 0, align 8

define $LINKAGE void @tw_hold_threads(ptr %set_terminate) nounwind {
  %self = call i64 @pthread_self()
  store atomic i64 %self, ptr @tw_ending_thread monotonic, align 8
  %before = call ptr %set_terminate(ptr @tw_hold)
  store atomic ptr %before, ptr @tw_terminate monotonic, align 8
  ret void
}

define internal void @tw_hold() cold noinline {
entry:
  %self = call i64 @pthread_self()
  %ending = load atomic i64, ptr @tw_ending_thread monotonic, align 8
  %own = icmp eq i64 %self, %ending
  br i1 %own, label %terminate, label %wait
terminate:
  %before = load atomic ptr, ptr @tw_terminate monotonic, align 8
  call void %before()
  unreachable
wait:
  %signal = call i32 @pause()
  br label %wait
}

declare i64 @pthread_self()
declare i32 @pause()
