// Two loop trees under one parallel range: a row sum, then a scaled copy.
module {
  func.func @nest(%x: memref<20x30xf32>, %sum: memref<20xf32>, %y: memref<20x30xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c20 = arith.constant 20 : index
    %c30 = arith.constant 30 : index
    scf.parallel (%i) = (%c0) to (%c20) step (%c1) {
      scf.for %j = %c0 to %c30 step %c1 {
        %v = memref.load %x[%i, %j] : memref<20x30xf32>
        %s = memref.load %sum[%i] : memref<20xf32>
        %n = arith.addf %s, %v : f32
        memref.store %n, %sum[%i] : memref<20xf32>
      }
      scf.for %j = %c0 to %c30 step %c1 {
        %v = memref.load %x[%i, %j] : memref<20x30xf32>
        %s = memref.load %sum[%i] : memref<20xf32>
        %n = arith.mulf %s, %v : f32
        memref.store %n, %y[%i, %j] : memref<20x30xf32>
      }
      scf.reduce
    }
    return
  }
}
