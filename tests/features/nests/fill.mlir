// Every element is set to one value, which is an argument.
module {
  func.func @nest(%v: f32, %out: memref<30x20xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c20 = arith.constant 20 : index
    %c30 = arith.constant 30 : index
    scf.parallel (%i, %j) = (%c0, %c0) to (%c30, %c20) step (%c1, %c1) {
      memref.store %v, %out[%i, %j] : memref<30x20xf32>
      scf.reduce
    }
    return
  }
}
