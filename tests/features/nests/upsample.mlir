// Nearest neighbour: out[i] = x[i / 2], no linear index.
module {
  func.func @nest(%x: memref<64xf32>, %out: memref<128xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c128 = arith.constant 128 : index
    scf.parallel (%i) = (%c0) to (%c128) step (%c1) {
      %h = arith.divui %i, %c2 : index
      %v = memref.load %x[%h] : memref<64xf32>
      memref.store %v, %out[%i] : memref<128xf32>
      scf.reduce
    }
    return
  }
}
