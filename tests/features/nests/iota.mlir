// out[i] = i: stores only, but of a value that the loop changes.
module {
  func.func @nest(%out: memref<500xi64>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c500 = arith.constant 500 : index
    scf.parallel (%i) = (%c0) to (%c500) step (%c1) {
      %v = arith.index_cast %i : index to i64
      memref.store %v, %out[%i] : memref<500xi64>
      scf.reduce
    }
    return
  }
}
