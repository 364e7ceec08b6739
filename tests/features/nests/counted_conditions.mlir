// Branches that loop counters decide: a triangle of a square, and one row without one column.
module {
  func.func @nest(%a: memref<10x10xf32>, %b: memref<10x10xf32>, %c: memref<10x10xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c10 = arith.constant 10 : index
    %one = arith.constant 1.0 : f32
    scf.parallel (%i, %j) = (%c0, %c0) to (%c10, %c10) step (%c1, %c1) {
      %below = arith.cmpi ule, %j, %i : index
      scf.if %below {
        memref.store %one, %a[%i, %j] : memref<10x10xf32>
      } else {
        memref.store %one, %b[%i, %j] : memref<10x10xf32>
      }
      %first = arith.cmpi eq, %i, %c0 : index
      %other = arith.cmpi ne, %j, %c3 : index
      %both = arith.andi %first, %other : i1
      scf.if %both {
        memref.store %one, %c[%i, %j] : memref<10x10xf32>
      }
      scf.reduce
    }
    return
  }
}
