// Maximum over windows of 3 at stride 2, with a flattened index that is split again.
module {
  func.func @nest(%x: memref<6x17xf32>, %y: memref<6x8xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c6 = arith.constant 6 : index
    %c8 = arith.constant 8 : index
    scf.parallel (%u, %w) = (%c0, %c0) to (%c6, %c8) step (%c1, %c1) {
      %q = arith.muli %u, %c8 : index
      %p = arith.addi %q, %w : index
      %i = arith.divui %p, %c8 : index
      %j = arith.remui %p, %c8 : index
      scf.for %k = %c0 to %c3 step %c1 {
        %a = arith.muli %j, %c2 : index
        %b = arith.addi %a, %k : index
        %v = memref.load %x[%i, %b] : memref<6x17xf32>
        %t = memref.load %y[%i, %j] : memref<6x8xf32>
        %m = arith.maximumf %v, %t : f32
        memref.store %m, %y[%i, %j] : memref<6x8xf32>
      }
      scf.reduce
    }
    return
  }
}
