; What differs by operating system: marking the process, counting the processors, moving between them (Linux).

; 1, in a page at *alive that the kernel zeroes in a forked child. Where it does not know how to (before Linux 4.14)
; *alive stays null and the result is the process id.
define internal i32 @tw_mark_process(ptr %pool, ptr %alive.at) nounwind {
entry:
  %page = call ptr @mmap(ptr null, i64 4096, i32 3, i32 34, i32 -1, i64 0)
  %bits = ptrtoint ptr %page to i64
  %failed = icmp eq i64 %bits, -1
  br i1 %failed, label %none, label %advise
advise:
  %status = call i32 @madvise(ptr %page, i64 4096, i32 18)            ; MADV_WIPEONFORK
  %known = icmp eq i32 %status, 0
  br i1 %known, label %mark, label %none
mark:
  store i32 1, ptr %page, align 4
  store ptr %page, ptr %alive.at, align 8
  ret i32 1
none:
  %id = call i32 @getpid()
  ret i32 %id
}

; TILEWRIGHT_NUM_THREADS, else the processors of the affinity mask, at most the quota of the control group.
define internal i32 @tw_default_threads() cold noinline optnone nounwind {
entry:
  %mask = alloca [128 x i64], align 8
  %quota = alloca i64, align 8
  %period = alloca i64, align 8
  %text = call ptr @getenv(ptr $"TILEWRIGHT_NUM_THREADS")
  %unset = icmp eq ptr %text, null
  br i1 %unset, label %affinity, label %asked
asked:
  %number = call i32 @atoi(ptr %text)
  %positive = icmp sgt i32 %number, 0
  br i1 %positive, label %given, label %affinity
given:
  %bounded = call i32 @llvm.smin.i32(i32 %number, i32 1024)
  ret i32 %bounded
affinity:
  call void @llvm.memset.p0.i64(ptr align 8 %mask, i8 0, i64 1024, i1 false)
  %status = call i32 @sched_getaffinity(i32 0, i64 1024, ptr %mask)
  br label %count
count:
  %i = phi i64 [ 0, %affinity ], [ %i.next, %count ]
  %sum = phi i64 [ 0, %affinity ], [ %sum.next, %count ]
  %word.at = getelementptr i64, ptr %mask, i64 %i
  %word = load i64, ptr %word.at, align 8
  %ones = call i64 @llvm.ctpop.i64(i64 %word)
  %sum.next = add i64 %sum, %ones
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, 128
  br i1 %more, label %count, label %group
group:
  %processors = call i64 @llvm.smax.i64(i64 %sum.next, i64 1)
  store i64 0, ptr %quota, align 8
  store i64 0, ptr %period, align 8
  %told = load atomic i32, ptr @tw_quota monotonic, align 4
  %toldx = zext i32 %told to i64
  %is.told = icmp sgt i32 %told, 0
  br i1 %is.told, label %limit, label %read
read:
  %file = call ptr @fopen(ptr $"/sys/fs/cgroup/cpu.max", ptr $"re")
  %absent = icmp eq ptr %file, null
  br i1 %absent, label %limit, label %scan
scan:
  %fields = call i32 (ptr, ptr, ...) @fscanf(ptr %file, ptr $"%ld %ld", ptr %quota, ptr %period)
  %closed = call i32 @fclose(ptr %file)
  %both = icmp eq i32 %fields, 2
  %q = load i64, ptr %quota, align 8
  %p = load i64, ptr %period, align 8
  %sane = icmp sgt i64 %p, 0
  %usable = and i1 %both, %sane
  %divisor = select i1 %usable, i64 %p, i64 1
  %round = sub i64 %divisor, 1
  %up = add i64 %q, %round
  %whole = sdiv i64 %up, %divisor
  %cpus = select i1 %usable, i64 %whole, i64 0
  br label %limit
limit:
  %allowed = phi i64 [ %toldx, %group ], [ 0, %read ], [ %cpus, %scan ]
  %has.limit = icmp sgt i64 %allowed, 0
  %smaller = call i64 @llvm.smin.i64(i64 %allowed, i64 %processors)
  %chosen = select i1 %has.limit, i64 %smaller, i64 %processors
  %capped = call i64 @llvm.smin.i64(i64 %chosen, i64 1024)
  %r = trunc i64 %capped to i32
  ret i32 %r
}

; The processor on which this thread runs; negative where that is not known.
define internal i32 @tw_processor() nounwind {
  %r = call i32 @sched_getcpu()
  ret i32 %r
}

; Move this thread away from a processor, where it may run on others; it may come back later.
define internal void @tw_leave(i32 %processor) cold noinline optnone nounwind {
entry:
  %allowed = alloca [128 x i64], align 8
  %others = alloca [128 x i64], align 8
  %here = call i32 @sched_getcpu()
  %same = icmp eq i32 %here, %processor
  %known = icmp ult i32 %here, 8192
  %both = and i1 %same, %known
  br i1 %both, label %ask, label %done
ask:
  call void @llvm.memset.p0.i64(ptr align 8 %allowed, i8 0, i64 1024, i1 false)
  %failed = call i32 @sched_getaffinity(i32 0, i64 1024, ptr %allowed)
  %unknown = icmp slt i32 %failed, 0
  br i1 %unknown, label %done, label %move
move:
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %others, ptr align 8 %allowed, i64 1024, i1 false)
  %wide = zext i32 %here to i64
  %index = lshr i64 %wide, 6
  %shift = and i64 %wide, 63
  %bit = shl i64 1, %shift
  %keep = xor i64 %bit, -1
  %word.at = getelementptr i64, ptr %others, i64 %index
  %word = load i64, ptr %word.at, align 8
  %without = and i64 %word, %keep
  store i64 %without, ptr %word.at, align 8
  %refused = call i32 @sched_setaffinity(i32 0, i64 1024, ptr %others)      ; where there are none
  %stays = icmp ne i32 %refused, 0
  br i1 %stays, label %done, label %free
free:
  %f = call i32 @sched_setaffinity(i32 0, i64 1024, ptr %allowed)
  br label %done
done:
  ret void
}

@tw_quota = $VARIABLE global i32 0                       ; processors that the control group grants, when known

declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @madvise(ptr, i64, i32)
declare ptr @getenv(ptr)
declare i32 @atoi(ptr)
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i32 @sched_getcpu()
declare ptr @fopen(ptr, ptr)
declare i32 @fscanf(ptr, ptr, ...)
declare i32 @fclose(ptr)
declare i64 @llvm.ctpop.i64(i64)
