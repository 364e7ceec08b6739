// y = 2 x on a window of a larger tensor: static and dynamic strides, unknown offset.
module {
  func.func @nest(%x: memref<16x8xf32, strided<[64, 1], offset: ?>>, %y: memref<16x8xf32, strided<[?, 1], offset: ?>>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    scf.parallel (%i, %j) = (%c0, %c0) to (%c16, %c8) step (%c1, %c1) {
      %v = memref.load %x[%i, %j] : memref<16x8xf32, strided<[64, 1], offset: ?>>
      %d = arith.addf %v, %v : f32
      memref.store %d, %y[%i, %j] : memref<16x8xf32, strided<[?, 1], offset: ?>>
      scf.reduce
    }
    return
  }
}
