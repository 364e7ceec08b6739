// Rotation of the two halves of each row: two accesses with the same steps, half a row apart.
module {
  func.func @nest(%x: memref<32x128xf32>, %y: memref<32x128xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    scf.parallel (%i, %j) = (%c0, %c0) to (%c32, %c64) step (%c1, %c1) {
      %k = arith.addi %j, %c64 : index
      %a = memref.load %x[%i, %j] : memref<32x128xf32>
      %b = memref.load %x[%i, %k] : memref<32x128xf32>
      %n = arith.negf %b : f32
      memref.store %n, %y[%i, %j] : memref<32x128xf32>
      memref.store %a, %y[%i, %k] : memref<32x128xf32>
      scf.reduce
    }
    return
  }
}
