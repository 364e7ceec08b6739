// c[b, i, j] = sum over k of p[b, i, k] * q[b, k, j].
module {
  func.func @nest(%p: memref<8x32x64xf32>, %q: memref<8x64x16xf32>, %c: memref<8x32x16xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    scf.parallel (%b, %i, %j) = (%c0, %c0, %c0) to (%c8, %c32, %c16) step (%c1, %c1, %c1) {
      scf.for %k = %c0 to %c64 step %c1 {
        %x = memref.load %p[%b, %i, %k] : memref<8x32x64xf32>
        %y = memref.load %q[%b, %k, %j] : memref<8x64x16xf32>
        %z = memref.load %c[%b, %i, %j] : memref<8x32x16xf32>
        %m = arith.mulf %x, %y : f32
        %s = arith.addf %z, %m : f32
        memref.store %s, %c[%b, %i, %j] : memref<8x32x16xf32>
      }
      scf.reduce
    }
    return
  }
}
