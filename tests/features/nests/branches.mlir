// Each element comes from one of two sources; a guard stores a second result.
module {
  func.func @nest(%a: memref<100xf32>, %b: memref<100xf32>, %out: memref<100xf32>, %more: memref<100xf32>, %flag: memref<100xi1>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c100 = arith.constant 100 : index
    %one = arith.constant 1.0 : f32
    scf.parallel (%i) = (%c0) to (%c100) step (%c1) {
      %f = memref.load %flag[%i] : memref<100xi1>
      %v = scf.if %f -> (f32) {
        %x = memref.load %a[%i] : memref<100xf32>
        scf.yield %x : f32
      } else {
        %x = memref.load %b[%i] : memref<100xf32>
        %y = arith.mulf %x, %x : f32
        scf.yield %y : f32
      }
      memref.store %v, %out[%i] : memref<100xf32>
      scf.if %f {
        memref.store %one, %more[%i] : memref<100xf32>
      }
      scf.reduce
    }
    return
  }
}
