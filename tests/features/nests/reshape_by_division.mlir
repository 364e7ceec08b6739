// out[i, j] = in[p / 24, p % 24] with p = 8 i + j, an index that splits into linear parts.
module {
  func.func @nest(%x: memref<10x24xf32>, %out: memref<30x8xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c8 = arith.constant 8 : index
    %c30 = arith.constant 30 : index
    scf.parallel (%i, %j) = (%c0, %c0) to (%c30, %c8) step (%c1, %c1) {
      %r = arith.muli %i, %c8 : index
      %p = arith.addi %r, %j : index
      %q = arith.divui %p, %c8 : index
      %m = arith.remui %p, %c8 : index
      %f = arith.floordivsi %q, %c3 : index
      %g = arith.remsi %q, %c3 : index
      %h = arith.muli %g, %c8 : index
      %k = arith.addi %h, %m : index
      %v = memref.load %x[%f, %k] : memref<10x24xf32>
      memref.store %v, %out[%i, %j] : memref<30x8xf32>
      scf.reduce
    }
    return
  }
}
