// c[i, j] = sum over k of a[i, k] * b[k, j], with the fill of c in the same nest.
module {
  func.func @nest(%a: memref<256x512xf32>, %b: memref<512x128xf32>, %c: memref<256x128xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c128 = arith.constant 128 : index
    %c256 = arith.constant 256 : index
    %c512 = arith.constant 512 : index
    %zero = arith.constant 0.0 : f32
    scf.parallel (%i, %j) = (%c0, %c0) to (%c256, %c128) step (%c1, %c1) {
      memref.store %zero, %c[%i, %j] : memref<256x128xf32>
      scf.for %k = %c0 to %c512 step %c1 {
        %x = memref.load %a[%i, %k] : memref<256x512xf32>
        %y = memref.load %b[%k, %j] : memref<512x128xf32>
        %z = memref.load %c[%i, %j] : memref<256x128xf32>
        %m = arith.mulf %x, %y : f32
        %s = arith.addf %z, %m : f32
        memref.store %s, %c[%i, %j] : memref<256x128xf32>
      }
      scf.reduce
    }
    return
  }
}
