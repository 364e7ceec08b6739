// b[j, i] = a[i, j].
module {
  func.func @nest(%a: memref<64x32xf32>, %b: memref<32x64xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    scf.parallel (%i, %j) = (%c0, %c0) to (%c64, %c32) step (%c1, %c1) {
      %x = memref.load %a[%i, %j] : memref<64x32xf32>
      memref.store %x, %b[%j, %i] : memref<32x64xf32>
      scf.reduce
    }
    return
  }
}
