// A copy into the middle of each row, rows taken backwards and two at a time.
module {
  func.func @nest(%x: memref<8x16xf32>, %y: memref<8x48xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c7 = arith.constant 7 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %s = memref.subview %y[0, 16] [8, 16] [1, 2] : memref<8x48xf32> to memref<8x16xf32, strided<[48, 2], offset: 16>>
    scf.parallel (%i, %j) = (%c1, %c0) to (%c8, %c16) step (%c2, %c1) {
      %r = arith.subi %c7, %i : index
      %v = memref.load %x[%r, %j] : memref<8x16xf32>
      memref.store %v, %s[%i, %j] : memref<8x16xf32, strided<[48, 2], offset: 16>>
      scf.reduce
    }
    return
  }
}
