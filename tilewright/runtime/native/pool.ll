; The thread pool: tw_parallel(fn, env, count) runs fn(begin, end, env) over [0, count) in chunks, on all threads.
;
; [0, count) is cut into one part per thread, in order, so that a thread meets the same rows again in the next loop.
; A thread takes its own part chunk by chunk and then helps with the others': each part has its own counter, on its own
; cache line, from which any thread takes the next chunk by an atomic addition.
;
; A region is open while its generation stands in %open. The caller publishes the region, works through the chunks
; itself, closes the region and waits for the workers that are inside; a worker that wakes late finds it closed and
; costs nothing. A worker enters by counting itself in %active *before* it looks at %open, the caller closes %open
; *before* it looks at %active (both sequentially consistent), so none is missed.
; While a region is open every other one (nested, or of another thread of the process) runs serially in its caller:
; nobody ever waits for a lock. Idle workers spin, then yield, then sleep. The kernel may start or wake one on the
; processor of the caller, where it would wait for the caller's time to be up: it moves to another one (`tw_leave`) when
; it wakes, and when it has nothing to do.
; After fork() the child finds the page at %alive zeroed (without such a page: another process id) and makes itself
; a new pool.

%part = type { i64, i64, [6 x i64] }                      ; next iteration, end
%pool = type { i32, [15 x i32],                           ; 0 busy: a region is running
               i32, [15 x i32],                           ; 2 active: workers inside the region
               i64, ptr, ptr, i64, i32, [7 x i32],        ; 4 open, 5 fn, 6 env, 7 chunk, 8 parts, 9 the caller's processor
               i64, i32, i32, i32, i32, ptr, [4 x i64],   ; 10 generation, 11 threads, 12 workers, 13 sleepers,
                                                          ; 14 process, 15 alive, 16 -
               [128 x i8], [128 x i8], [3584 x i8],       ; 17 mutex, 18 condition, 19 -
               [1024 x %part] }                           ; 20 parts, from byte 4096 on

@tw_pool = internal global ptr null, align 8

; fn(begin, end, env) for the chunks that are left, those of part `me` first.
define internal void @tw_chunks(ptr %pool, i32 %me) nounwind {
entry:
  %fn = field ptr, %pool %pool, 5
  %env = field ptr, %pool %pool, 6
  %chunk = field i64, %pool %pool, 7
  %parts.at = getelementptr %pool, ptr %pool, i64 0, i32 8
  %parts = load atomic i32, ptr %parts.at monotonic, align 8
  br label %part
part:
  %left = phi i32 [ %parts, %entry ], [ %left.next, %advance ]
  %which = phi i32 [ %me, %entry ], [ %which.next, %advance ]
  %index = zext i32 %which to i64
  %next.at = getelementptr %pool, ptr %pool, i64 0, i32 20, i64 %index, i32 0
  %end.at = getelementptr %pool, ptr %pool, i64 0, i32 20, i64 %index, i32 1
  %limit = load i64, ptr %end.at, align 8
  br label %look
look:                                                     ; a look first: additions to a finished part cost a cache line
  %seen = load atomic i64, ptr %next.at monotonic, align 8
  %some = icmp slt i64 %seen, %limit
  br i1 %some, label %take, label %advance
take:
  %begin = atomicrmw add ptr %next.at, i64 %chunk monotonic, align 8
  %mine = icmp slt i64 %begin, %limit
  br i1 %mine, label %run, label %advance
run:
  %after = add i64 %begin, %chunk
  %end = call i64 @llvm.smin.i64(i64 %after, i64 %limit)
  call void %fn(i64 %begin, i64 %end, ptr %env)
  br label %look
advance:
  %left.next = sub i32 %left, 1
  %up = add i32 %which, 1
  %wraps = icmp uge i32 %up, %parts
  %which.next = select i1 %wraps, i32 0, i32 %up
  %more = icmp sgt i32 %left.next, 0
  br i1 %more, label %part, label %done
done:
  ret void
}

; Cut [0, count) into `parts` parts of nearly one size.
define internal void @tw_cut(ptr %pool, i64 %count, i64 %size, i32 %parts) nounwind {
entry:
  %partsx = zext i32 %parts to i64
  %covered = mul i64 %size, %partsx
  %rest = sub i64 %count, %covered                       ; the first `rest` parts get one iteration more
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %begin = phi i64 [ 0, %entry ], [ %end, %loop ]
  %longer = icmp slt i64 %i, %rest
  %extra = zext i1 %longer to i64
  %length = add i64 %size, %extra
  %end = add i64 %begin, %length
  %next.at = getelementptr %pool, ptr %pool, i64 0, i32 20, i64 %i, i32 0
  %end.at = getelementptr %pool, ptr %pool, i64 0, i32 20, i64 %i, i32 1
  store atomic i64 %begin, ptr %next.at monotonic, align 8
  store i64 %end, ptr %end.at, align 8
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %partsx
  br i1 %more, label %loop, label %done
done:
  ret void
}

define internal void @tw_pool_parallel(ptr %fn, ptr %env, i64 %count) nounwind {
entry:
  %several = icmp sgt i64 %count, 1
  br i1 %several, label %find, label %serial
find:
  %pool = call ptr @tw_pool_here()
  %threads.at = getelementptr %pool, ptr %pool, i64 0, i32 11
  %threads = load atomic i32, ptr %threads.at monotonic, align 4
  %alone = icmp slt i32 %threads, 2
  br i1 %alone, label %serial, label %claim
claim:
  %pair = cmpxchg ptr %pool, i32 0, i32 1 acquire monotonic, align 4
  %mine = extractvalue { i32, i1 } %pair, 1
  br i1 %mine, label %staff, label %serial
staff:
  %workers = field i32, %pool %pool, 12
  %wanted = sub i32 %threads, 1
  %enough = icmp sge i32 %workers, %wanted
  br i1 %enough, label %publish, label %hire
hire:
  call void @tw_hire(ptr %pool, i32 %wanted)
  br label %publish

publish:
  %fn.at = getelementptr %pool, ptr %pool, i64 0, i32 5
  store ptr %fn, ptr %fn.at, align 8
  %env.at = getelementptr %pool, ptr %pool, i64 0, i32 6
  store ptr %env, ptr %env.at, align 8
  %threadsx = zext i32 %threads to i64
  %partsx = call i64 @llvm.smin.i64(i64 %threadsx, i64 %count)
  %parts = trunc i64 %partsx to i32
  %size = udiv i64 %count, %partsx
  %eighth = lshr i64 %size, 3
  %chunk = call i64 @llvm.smax.i64(i64 %eighth, i64 1)
  %chunk.at = getelementptr %pool, ptr %pool, i64 0, i32 7
  store i64 %chunk, ptr %chunk.at, align 8
  %parts.at = getelementptr %pool, ptr %pool, i64 0, i32 8
  store atomic i32 %parts, ptr %parts.at monotonic, align 8
  call void @tw_cut(ptr %pool, i64 %count, i64 %size, i32 %parts)
  %processor = call i32 @tw_processor()
  %processor.at = getelementptr %pool, ptr %pool, i64 0, i32 9
  store atomic i32 %processor, ptr %processor.at monotonic, align 4
  %generation.at = getelementptr %pool, ptr %pool, i64 0, i32 10
  %generation = load i64, ptr %generation.at, align 8
  %generation.next = add i64 %generation, 1
  store i64 %generation.next, ptr %generation.at, align 8
  %open.at = getelementptr %pool, ptr %pool, i64 0, i32 4
  store atomic i64 %generation.next, ptr %open.at seq_cst, align 8
  %sleepers.at = getelementptr %pool, ptr %pool, i64 0, i32 13
  %sleepers = load atomic i32, ptr %sleepers.at seq_cst, align 4
  %awake = icmp eq i32 %sleepers, 0
  br i1 %awake, label %work, label %wake
wake:
  %mutex = getelementptr %pool, ptr %pool, i64 0, i32 17
  %condition = getelementptr %pool, ptr %pool, i64 0, i32 18
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  %give = call i32 @sched_yield()                        ; to one that was woken on this processor: it leaves
  br label %work

work:
  call void @tw_chunks(ptr %pool, i32 0)
  store atomic i64 0, ptr %open.at seq_cst, align 8
  %active.at = getelementptr %pool, ptr %pool, i64 0, i32 2
  br label %wait
wait:
  %spin = phi i32 [ 0, %work ], [ %spin.next, %again ]
  %active = load atomic i32, ptr %active.at seq_cst, align 4
  %over = icmp eq i32 %active, 0
  br i1 %over, label %release, label %pause
pause:
  %spin.next = add i32 %spin, 1
  %short = icmp ult i32 %spin, 4000
  br i1 %short, label %relax, label %yield
relax:
  $PAUSE
  br label %again
yield:
  %y = call i32 @sched_yield()
  br label %again
again:
  br label %wait
release:
  store atomic i32 0, ptr %pool release, align 4
  ret void

serial:
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %serial.run, label %nothing
serial.run:
  call void %fn(i64 0, i64 %count, ptr %env)
  ret void
nothing:
  ret void
}

; A worker: %arg is the pool's address with the worker's number in the low 12 bits (the pool is aligned to 4096).
define internal ptr @tw_worker(ptr %arg) nounwind {
entry:
  %bits = ptrtoint ptr %arg to i64
  %number = and i64 %bits, 4095
  %number.short = trunc i64 %number to i32
  %me = add i32 %number.short, 1                         ; part 0 is the caller's
  %base = and i64 %bits, -4096
  %pool = inttoptr i64 %base to ptr
  %open.at = getelementptr %pool, ptr %pool, i64 0, i32 4
  %parts.at = getelementptr %pool, ptr %pool, i64 0, i32 8
  %active.at = getelementptr %pool, ptr %pool, i64 0, i32 2
  br label %look
look:
  %last = phi i64 [ 0, %entry ], [ %last, %idle.next ], [ %open, %skip ], [ %inside, %finished ], [ %last, %leave ], [ %last, %woken ]
  %idle = phi i32 [ 0, %entry ], [ %idle.up, %idle.next ], [ %idle, %skip ], [ 0, %finished ], [ %idle, %leave ], [ 0, %woken ]
  %open = load atomic i64, ptr %open.at seq_cst, align 8
  %closed = icmp eq i64 %open, 0
  %seen = icmp eq i64 %open, %last
  %nothing = or i1 %closed, %seen
  br i1 %nothing, label %rest, label %wanted
wanted:
  %parts = load atomic i32, ptr %parts.at monotonic, align 8
  %asked = icmp ult i32 %me, %parts
  br i1 %asked, label %enter, label %skip
skip:
  br label %look
enter:
  %e = atomicrmw add ptr %active.at, i32 1 seq_cst, align 4
  %inside = load atomic i64, ptr %open.at seq_cst, align 8
  %late = icmp eq i64 %inside, 0
  br i1 %late, label %leave, label %work
leave:
  %o = atomicrmw sub ptr %active.at, i32 1 seq_cst, align 4
  br label %look
work:
  call void @tw_chunks(ptr %pool, i32 %me)
  br label %finished
finished:
  %f = atomicrmw sub ptr %active.at, i32 1 seq_cst, align 4
  br label %look

rest:
  %idle.up = add i32 %idle, 1
  %spinning = icmp ult i32 %idle, 2000
  br i1 %spinning, label %relax, label %tired
relax:
  $PAUSE
  br label %idle.next
tired:
  %first = icmp eq i32 %idle, 2000
  br i1 %first, label %apart, label %weary
apart:
  call void @tw_part_from_caller(ptr %pool)
  br label %weary
weary:
  %yielding = icmp ult i32 %idle, 3000
  br i1 %yielding, label %yield, label %sleep
yield:
  %y = call i32 @sched_yield()
  br label %idle.next
idle.next:
  br label %look

sleep:
  call void @tw_sleep(ptr %pool, i64 %last)
  call void @tw_part_from_caller(ptr %pool)
  br label %woken
woken:
  br label %look
}

; Leave the processor of the caller.
define internal void @tw_part_from_caller(ptr %pool) nounwind {
entry:
  %processor.at = getelementptr %pool, ptr %pool, i64 0, i32 9
  %processor = load atomic i32, ptr %processor.at monotonic, align 4
  call void @tw_leave(i32 %processor)
  ret void
}

; Wait until a region other than `last` is open.
define internal void @tw_sleep(ptr %pool, i64 %last) noinline nounwind {
entry:
  %mutex = getelementptr %pool, ptr %pool, i64 0, i32 17
  %condition = getelementptr %pool, ptr %pool, i64 0, i32 18
  %sleepers.at = getelementptr %pool, ptr %pool, i64 0, i32 13
  %open.at = getelementptr %pool, ptr %pool, i64 0, i32 4
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %s = atomicrmw add ptr %sleepers.at, i32 1 seq_cst, align 4
  br label %check
check:
  %open = load atomic i64, ptr %open.at seq_cst, align 8
  %closed = icmp eq i64 %open, 0
  %seen = icmp eq i64 %open, %last
  %nothing = or i1 %closed, %seen
  br i1 %nothing, label %wait, label %up
wait:
  %w = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %up
up:
  %d = atomicrmw sub ptr %sleepers.at, i32 1 seq_cst, align 4
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}

; Start workers until there are `wanted`. They block every signal: Ctrl-C belongs to the main thread.
define internal void @tw_hire(ptr %pool, i32 %wanted) cold noinline optnone nounwind {
entry:
  %all = alloca [128 x i8], align 16
  %before = alloca [128 x i8], align 16
  %thread = alloca i64, align 8
  %f = call i32 @sigfillset(ptr %all)
  %m = call i32 @pthread_sigmask(i32 $SIG_SETMASK, ptr %all, ptr %before)
  %workers.at = getelementptr %pool, ptr %pool, i64 0, i32 12
  %base = ptrtoint ptr %pool to i64
  br label %loop
loop:
  %k = load i32, ptr %workers.at, align 4
  %more = icmp slt i32 %k, %wanted
  br i1 %more, label %start, label %done
start:
  %kx = zext i32 %k to i64
  %bits = or i64 %base, %kx
  %arg = inttoptr i64 %bits to ptr
  %status = call i32 @pthread_create(ptr %thread, ptr null, ptr @tw_worker, ptr %arg)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %done, label %started           ; fewer threads than asked for still do all the work
started:
  %id = load i64, ptr %thread, align 8
  %d = call i32 @pthread_detach(i64 %id)
  %k.next = add i32 %k, 1
  store i32 %k.next, ptr %workers.at, align 4
  br label %loop
done:
  %r = call i32 @pthread_sigmask(i32 $SIG_SETMASK, ptr %before, ptr null)
  ret void
}

; The pool of this process, made at the first call and after a fork.
define internal ptr @tw_pool_here() alwaysinline nounwind {
entry:
  %pool = load atomic ptr, ptr @tw_pool acquire, align 8
  %none = icmp eq ptr %pool, null
  br i1 %none, label %make, label %check
check:
  %process = field i32, %pool %pool, 14
  %alive = field ptr, %pool %pool, 15
  %marked = icmp ne ptr %alive, null
  br i1 %marked, label %page, label %ask
page:
  %mark = load volatile i32, ptr %alive, align 4
  %mark.same = icmp eq i32 %mark, %process
  br i1 %mark.same, label %found, label %make
ask:
  %id = call i32 @getpid()
  %id.same = icmp eq i32 %id, %process
  br i1 %id.same, label %found, label %make
make:
  %made = call ptr @tw_pool_make(ptr %pool)
  ret ptr %made
found:
  ret ptr %pool
}

; A new pool in the place of `old` (null, or the one of the parent process), unless another thread was faster.
define internal ptr @tw_pool_make(ptr %old) cold noinline optnone nounwind {
entry:
  %out = alloca ptr, align 8
  %status = call i32 @posix_memalign(ptr %out, i64 4096, i64 69632)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %exhausted, label %init
exhausted:
  call void @abort()
  unreachable
init:
  %pool = load ptr, ptr %out, align 8
  call void @llvm.memset.p0.i64(ptr align 4096 %pool, i8 0, i64 4096, i1 false)
  %mutex = getelementptr %pool, ptr %pool, i64 0, i32 17
  %condition = getelementptr %pool, ptr %pool, i64 0, i32 18
  %mi = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %ci = call i32 @pthread_cond_init(ptr %condition, ptr null)
  %process.at = getelementptr %pool, ptr %pool, i64 0, i32 14
  %alive.at = getelementptr %pool, ptr %pool, i64 0, i32 15
  %mark = call i32 @tw_mark_process(ptr %pool, ptr %alive.at)
  store i32 %mark, ptr %process.at, align 4
  %threads.at = getelementptr %pool, ptr %pool, i64 0, i32 11
  %first = icmp eq ptr %old, null
  br i1 %first, label %default, label %inherit
default:
  %available = call i32 @tw_default_threads()
  br label %publish
inherit:
  %inherited = field i32, %pool %old, 11
  br label %publish
publish:
  %threads = phi i32 [ %available, %default ], [ %inherited, %inherit ]
  store i32 %threads, ptr %threads.at, align 4
  %pair = cmpxchg ptr @tw_pool, ptr %old, ptr %pool acq_rel acquire, align 8
  %won = extractvalue { ptr, i1 } %pair, 1
  br i1 %won, label %mine, label %theirs
mine:
  ret ptr %pool
theirs:
  call void @free(ptr %pool)
  %other = extractvalue { ptr, i1 } %pair, 0
  ret ptr %other
}

define internal void @tw_pool_set(i32 %n) nounwind {
entry:
  %pool = call ptr @tw_pool_here()
  %threads.at = getelementptr %pool, ptr %pool, i64 0, i32 11
  %given = icmp sgt i32 %n, 0
  br i1 %given, label %set, label %default
default:
  %available = call i32 @tw_default_threads()
  br label %set
set:
  %wanted = phi i32 [ %n, %entry ], [ %available, %default ]
  %bounded = call i32 @llvm.smin.i32(i32 %wanted, i32 1024)
  store atomic i32 %bounded, ptr %threads.at monotonic, align 4
  ret void
}

define internal i32 @tw_pool_get() nounwind {
  %pool = call ptr @tw_pool_here()
  %threads.at = getelementptr %pool, ptr %pool, i64 0, i32 11
  %r = load atomic i32, ptr %threads.at monotonic, align 4
  ret i32 %r
}

declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i32 @llvm.smin.i32(i32, i32)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i32 @sched_yield()
declare i32 @getpid()
