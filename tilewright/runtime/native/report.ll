; Where an error goes in a process of Tilewright: into tvm-ffi.

define void @tw_report(ptr %kind, ptr %text) cold noinline nounwind {
  call void @TVMFFIErrorSetRaisedFromCStr(ptr %kind, ptr %text)
  ret void
}

declare void @TVMFFIErrorSetRaisedFromCStr(ptr, ptr)
