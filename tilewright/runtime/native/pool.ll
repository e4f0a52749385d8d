; The thread pool: tw_parallel(fn, env, count) runs fn(begin, end, env) over [0, count) in chunks, on all threads.
;
; A region is open while its generation stands in %open. The caller publishes the region, works through the chunks
; itself, closes the region and waits for the workers that are inside; a worker that wakes late finds it closed and
; costs nothing. A worker enters by counting itself in %active *before* it looks at %open, the caller closes %open
; *before* it looks at %active (both sequentially consistent), so none is missed.
; While a region is open every other one (nested, or of another thread of the process) runs serially in its caller:
; nobody ever waits for a lock. Idle workers spin, then yield, then sleep.
; After fork() the child finds the page at %alive zeroed (without such a page: another process id) and makes itself
; a new pool.

%pool = type { i32, [15 x i32],                           ; 0 busy: a region is running
               i64, [7 x i64],                            ; 2 next: first iteration that nobody has taken
               i32, [15 x i32],                           ; 4 active: workers inside the region
               i64, ptr, ptr, i64, i64, i32, i32, i64,    ; 6 open, 7 fn, 8 env, 9 count, 10 chunk, 11 limit, 12 -, 13 -
               i64, i32, i32, i32, i32, ptr, [4 x i64],   ; 14 generation, 15 threads, 16 workers, 17 sleepers,
                                                          ; 18 process, 19 alive, 20 -
               [128 x i8], [128 x i8] }                   ; 21 mutex, 22 condition

@tw_pool = internal global ptr null, align 8

; fn(begin, end, env) for every chunk that is left.
define internal void @tw_chunks(ptr %pool) nounwind {
entry:
  %fn.at = getelementptr %pool, ptr %pool, i64 0, i32 7
  %fn = load ptr, ptr %fn.at, align 8
  %env.at = getelementptr %pool, ptr %pool, i64 0, i32 8
  %env = load ptr, ptr %env.at, align 8
  %count.at = getelementptr %pool, ptr %pool, i64 0, i32 9
  %count = load i64, ptr %count.at, align 8
  %chunk.at = getelementptr %pool, ptr %pool, i64 0, i32 10
  %chunk = load i64, ptr %chunk.at, align 8
  %next.at = getelementptr %pool, ptr %pool, i64 0, i32 2
  br label %loop
loop:
  %begin = atomicrmw add ptr %next.at, i64 %chunk monotonic, align 8
  %more = icmp slt i64 %begin, %count
  br i1 %more, label %run, label %done
run:
  %after = add i64 %begin, %chunk
  %end = call i64 @llvm.smin.i64(i64 %after, i64 %count)
  call void %fn(i64 %begin, i64 %end, ptr %env)
  br label %loop
done:
  ret void
}

define internal void @tw_pool_parallel(ptr %fn, ptr %env, i64 %count) nounwind {
entry:
  %several = icmp sgt i64 %count, 1
  br i1 %several, label %find, label %serial
find:
  %pool = call ptr @tw_pool_here()
  %threads.at = getelementptr %pool, ptr %pool, i64 0, i32 15
  %threads = load atomic i32, ptr %threads.at monotonic, align 4
  %alone = icmp slt i32 %threads, 2
  br i1 %alone, label %serial, label %claim
claim:
  %pair = cmpxchg ptr %pool, i32 0, i32 1 acquire monotonic, align 4
  %mine = extractvalue { i32, i1 } %pair, 1
  br i1 %mine, label %staff, label %serial
staff:
  %workers.at = getelementptr %pool, ptr %pool, i64 0, i32 16
  %workers = load i32, ptr %workers.at, align 4
  %wanted = sub i32 %threads, 1
  %enough = icmp sge i32 %workers, %wanted
  br i1 %enough, label %publish, label %hire
hire:
  call void @tw_hire(ptr %pool, i32 %wanted)
  br label %publish

publish:
  %fn.at = getelementptr %pool, ptr %pool, i64 0, i32 7
  store ptr %fn, ptr %fn.at, align 8
  %env.at = getelementptr %pool, ptr %pool, i64 0, i32 8
  store ptr %env, ptr %env.at, align 8
  %count.at = getelementptr %pool, ptr %pool, i64 0, i32 9
  store i64 %count, ptr %count.at, align 8
  %threadsx = zext i32 %threads to i64
  %parts = shl i64 %threadsx, 3                          ; about eight chunks a thread
  %share = udiv i64 %count, %parts
  %chunk = call i64 @llvm.smax.i64(i64 %share, i64 1)
  %chunk.at = getelementptr %pool, ptr %pool, i64 0, i32 10
  store i64 %chunk, ptr %chunk.at, align 8
  %limit.at = getelementptr %pool, ptr %pool, i64 0, i32 11
  store atomic i32 %wanted, ptr %limit.at monotonic, align 4
  %next.at = getelementptr %pool, ptr %pool, i64 0, i32 2
  store atomic i64 0, ptr %next.at monotonic, align 8
  %generation.at = getelementptr %pool, ptr %pool, i64 0, i32 14
  %generation = load i64, ptr %generation.at, align 8
  %generation.next = add i64 %generation, 1
  store i64 %generation.next, ptr %generation.at, align 8
  %open.at = getelementptr %pool, ptr %pool, i64 0, i32 6
  store atomic i64 %generation.next, ptr %open.at seq_cst, align 8
  %sleepers.at = getelementptr %pool, ptr %pool, i64 0, i32 17
  %sleepers = load atomic i32, ptr %sleepers.at seq_cst, align 4
  %awake = icmp eq i32 %sleepers, 0
  br i1 %awake, label %work, label %wake
wake:
  %mutex = getelementptr %pool, ptr %pool, i64 0, i32 21
  %condition = getelementptr %pool, ptr %pool, i64 0, i32 22
  %l = call i32 @pthread_mutex_lock(ptr %mutex)
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  %u = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %work

work:
  call void @tw_chunks(ptr %pool)
  store atomic i64 0, ptr %open.at seq_cst, align 8
  %active.at = getelementptr %pool, ptr %pool, i64 0, i32 4
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
  %me = trunc i64 %number to i32
  %base = and i64 %bits, -4096
  %pool = inttoptr i64 %base to ptr
  %open.at = getelementptr %pool, ptr %pool, i64 0, i32 6
  %limit.at = getelementptr %pool, ptr %pool, i64 0, i32 11
  %active.at = getelementptr %pool, ptr %pool, i64 0, i32 4
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
  %limit = load atomic i32, ptr %limit.at monotonic, align 4
  %asked = icmp ult i32 %me, %limit
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
  call void @tw_chunks(ptr %pool)
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
  %yielding = icmp ult i32 %idle, 3000
  br i1 %yielding, label %yield, label %sleep
yield:
  %y = call i32 @sched_yield()
  br label %idle.next
idle.next:
  br label %look

sleep:
  call void @tw_sleep(ptr %pool, i64 %last)
  br label %woken
woken:
  br label %look
}

; Wait until a region other than `last` is open.
define internal void @tw_sleep(ptr %pool, i64 %last) noinline nounwind {
entry:
  %mutex = getelementptr %pool, ptr %pool, i64 0, i32 21
  %condition = getelementptr %pool, ptr %pool, i64 0, i32 22
  %sleepers.at = getelementptr %pool, ptr %pool, i64 0, i32 17
  %open.at = getelementptr %pool, ptr %pool, i64 0, i32 6
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
  %workers.at = getelementptr %pool, ptr %pool, i64 0, i32 16
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
  %process.at = getelementptr %pool, ptr %pool, i64 0, i32 18
  %process = load i32, ptr %process.at, align 4
  %alive.at = getelementptr %pool, ptr %pool, i64 0, i32 19
  %alive = load ptr, ptr %alive.at, align 8
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
  %status = call i32 @posix_memalign(ptr %out, i64 4096, i64 4096)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %exhausted, label %init
exhausted:
  call void @abort()
  unreachable
init:
  %pool = load ptr, ptr %out, align 8
  call void @llvm.memset.p0.i64(ptr align 4096 %pool, i8 0, i64 4096, i1 false)
  %mutex = getelementptr %pool, ptr %pool, i64 0, i32 21
  %condition = getelementptr %pool, ptr %pool, i64 0, i32 22
  %mi = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %ci = call i32 @pthread_cond_init(ptr %condition, ptr null)
  %process.at = getelementptr %pool, ptr %pool, i64 0, i32 18
  %alive.at = getelementptr %pool, ptr %pool, i64 0, i32 19
  %mark = call i32 @tw_mark_process(ptr %pool, ptr %alive.at)
  store i32 %mark, ptr %process.at, align 4
  %threads.at = getelementptr %pool, ptr %pool, i64 0, i32 15
  %first = icmp eq ptr %old, null
  br i1 %first, label %default, label %inherit
default:
  %available = call i32 @tw_default_threads()
  br label %publish
inherit:
  %old.at = getelementptr %pool, ptr %old, i64 0, i32 15
  %inherited = load i32, ptr %old.at, align 4
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
  %threads.at = getelementptr %pool, ptr %pool, i64 0, i32 15
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
  %threads.at = getelementptr %pool, ptr %pool, i64 0, i32 15
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
