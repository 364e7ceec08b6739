// One row of a cache is written at a position that is an argument.
module {
  func.func @nest(%x: memref<?x64xf32>, %cache: memref<1024x64xf32>, %position: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %n = memref.dim %x, %c0 : memref<?x64xf32>
    %window = memref.subview %cache[%position, 0] [%n, 64] [1, 1] : memref<1024x64xf32> to memref<?x64xf32, strided<[64, 1], offset: ?>>
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %c64) step (%c1, %c1) {
      %v = memref.load %x[%i, %j] : memref<?x64xf32>
      memref.store %v, %window[%i, %j] : memref<?x64xf32, strided<[64, 1], offset: ?>>
      scf.reduce
    }
    return
  }
}
