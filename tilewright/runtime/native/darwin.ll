; What differs by operating system: marking the process, counting the processors (macOS).

@tw_quota = $VARIABLE global i32 0                       ; processors that a limit grants, when known

; The process id, which changes in a forked child.
define internal i32 @tw_mark_process(ptr %pool, ptr %alive.at) nounwind {
  %id = call i32 @getpid()
  ret i32 %id
}

; The processor on which this thread runs: it is not known.
define internal i32 @tw_processor() nounwind {
  ret i32 -1
}

; Move this thread away from a processor: nothing does that here.
define internal void @tw_leave(i32 %processor) nounwind {
  ret void
}

; TILEWRIGHT_NUM_THREADS, else the processors that are online.
define internal i32 @tw_default_threads() cold noinline optnone nounwind {
entry:
  %text = call ptr @getenv(ptr $"TILEWRIGHT_NUM_THREADS")
  %unset = icmp eq ptr %text, null
  br i1 %unset, label %online, label %asked
asked:
  %number = call i32 @atoi(ptr %text)
  %positive = icmp sgt i32 %number, 0
  br i1 %positive, label %given, label %online
given:
  %bounded = call i32 @llvm.smin.i32(i32 %number, i32 1024)
  ret i32 %bounded
online:
  %count = call i64 @sysconf(i32 58)                     ; _SC_NPROCESSORS_ONLN
  %least = call i64 @llvm.smax.i64(i64 %count, i64 1)
  %capped = call i64 @llvm.smin.i64(i64 %least, i64 1024)
  %r = trunc i64 %capped to i32
  ret i32 %r
}

declare ptr @getenv(ptr)
declare i32 @atoi(ptr)
declare i64 @sysconf(i32)
