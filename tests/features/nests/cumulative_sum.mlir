// A running sum down the rows of each column; the sum is kept in a local buffer.
module {
  func.func @nest(%x: memref<50x64xf32>, %out: memref<50x64xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c50 = arith.constant 50 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0.0 : f32
    scf.parallel (%j) = (%c0) to (%c64) step (%c1) {
      %sum = memref.alloca() : memref<f32>
      memref.store %zero, %sum[] : memref<f32>
      scf.for %i = %c0 to %c50 step %c1 {
        %v = memref.load %x[%i, %j] : memref<50x64xf32>
        %s = memref.load %sum[] : memref<f32>
        %n = arith.addf %s, %v : f32
        memref.store %n, %sum[] : memref<f32>
        memref.store %n, %out[%i, %j] : memref<50x64xf32>
      }
      scf.reduce
    }
    return
  }
}
