// Row sums of a lower triangle: the inner loop grows with the outer one.
module {
  func.func @nest(%x: memref<100x100xf32>, %out: memref<100xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c100 = arith.constant 100 : index
    scf.parallel (%i) = (%c0) to (%c100) step (%c1) {
      %end = arith.addi %i, %c1 : index
      scf.for %j = %c0 to %end step %c1 {
        %v = memref.load %x[%i, %j] : memref<100x100xf32>
        %s = memref.load %out[%i] : memref<100xf32>
        %n = arith.addf %s, %v : f32
        memref.store %n, %out[%i] : memref<100xf32>
      }
      scf.reduce
    }
    return
  }
}
