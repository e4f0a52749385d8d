; tw_guard(f, a, b, fault): f(a, b), with `fault` as the place in which kernels leave the message of an error.

define $LINKAGE void @tw_guard(ptr %f, ptr %a, ptr %b, ptr %fault) nounwind {
  %before = call ptr @tw_change_place(ptr %fault)
  call void %f(ptr %a, ptr %b)
  %after = call ptr @tw_change_place(ptr %before)
  ret void
}
