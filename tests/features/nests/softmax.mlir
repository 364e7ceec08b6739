// Softmax over rows: maximum, exponential and sum, division, in three loops of one nest.
module {
  func.func @nest(%a: memref<128x1000xf32>, %b: memref<128x1000xf32>, %top: memref<128xf32>, %sum: memref<128xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %c1000 = arith.constant 1000 : index
    %zero = arith.constant 0.0 : f32
    %low = arith.constant 0xFF800000 : f32
    scf.parallel (%i) = (%c0) to (%c128) step (%c1) {
      memref.store %low, %top[%i] : memref<128xf32>
      scf.for %j = %c0 to %c1000 step %c1 {
        %x = memref.load %a[%i, %j] : memref<128x1000xf32>
        %t = memref.load %top[%i] : memref<128xf32>
        %m = arith.maximumf %x, %t : f32
        memref.store %m, %top[%i] : memref<128xf32>
      }
      memref.store %zero, %sum[%i] : memref<128xf32>
      scf.for %j = %c0 to %c1000 step %c1 {
        %x = memref.load %a[%i, %j] : memref<128x1000xf32>
        %t = memref.load %top[%i] : memref<128xf32>
        %d = arith.subf %x, %t : f32
        %e = math.exp %d : f32
        memref.store %e, %b[%i, %j] : memref<128x1000xf32>
        %s = memref.load %sum[%i] : memref<128xf32>
        %n = arith.addf %s, %e : f32
        memref.store %n, %sum[%i] : memref<128xf32>
      }
      scf.for %j = %c0 to %c1000 step %c1 {
        %e = memref.load %b[%i, %j] : memref<128x1000xf32>
        %s = memref.load %sum[%i] : memref<128xf32>
        %q = arith.divf %e, %s : f32
        memref.store %q, %b[%i, %j] : memref<128x1000xf32>
      }
      scf.reduce
    }
    return
  }
}
