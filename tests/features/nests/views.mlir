// The second half of each row, negated: through expand_shape, a rank-reducing subview, collapse_shape and a cast.
module {
  func.func @nest(%x: memref<6x40xf32>, %y: memref<4x3x5xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c20 = arith.constant 20 : index
    %e = memref.expand_shape %x [[0, 1], [2, 3]] output_shape [2, 3, 8, 5] : memref<6x40xf32> into memref<2x3x8x5xf32>
    %s = memref.subview %e[1, 0, 4, 0] [1, 3, 4, 5] [1, 1, 1, 1] : memref<2x3x8x5xf32> to memref<3x4x5xf32, strided<[40, 5, 1], offset: 140>>
    %t = memref.subview %s[0, 0, 0] [3, 4, 5] [1, 1, 1] : memref<3x4x5xf32, strided<[40, 5, 1], offset: 140>> to memref<3x4x5xf32, strided<[40, 5, 1], offset: 140>>
    %u = memref.collapse_shape %t [[0], [1, 2]] : memref<3x4x5xf32, strided<[40, 5, 1], offset: 140>> into memref<3x20xf32, strided<[40, 1], offset: 140>>
    %d = memref.cast %u : memref<3x20xf32, strided<[40, 1], offset: 140>> to memref<3x20xf32, strided<[?, 1], offset: ?>>
    %z = memref.collapse_shape %y [[0, 1, 2]] : memref<4x3x5xf32> into memref<60xf32>
    scf.parallel (%i, %j) = (%c0, %c0) to (%c3, %c20) step (%c1, %c1) {
      %v = memref.load %d[%i, %j] : memref<3x20xf32, strided<[?, 1], offset: ?>>
      %n = arith.negf %v : f32
      %r = arith.muli %i, %c20 : index
      %p = arith.addi %r, %j : index
      memref.store %n, %z[%p] : memref<60xf32>
      scf.reduce
    }
    return
  }
}
