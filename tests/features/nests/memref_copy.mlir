// A residue: one memref.copy into the middle of a larger buffer.
module {
  func.func @nest(%x: memref<8x16xf32>, %y: memref<8x48xf32>) {
    %s = memref.subview %y[0, 16] [8, 16] [1, 1] : memref<8x48xf32> to memref<8x16xf32, strided<[48, 1], offset: 16>>
    memref.copy %x, %s : memref<8x16xf32> to memref<8x16xf32, strided<[48, 1], offset: 16>>
    return
  }
}
