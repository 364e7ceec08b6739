// y[i] = sum over k of a[i, k] * x[k], operands in half precision.
module {
  func.func @nest(%a: memref<4096x1024xf16>, %x: memref<1024xf16>, %y: memref<4096xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c1024 = arith.constant 1024 : index
    %c4096 = arith.constant 4096 : index
    scf.parallel (%i) = (%c0) to (%c4096) step (%c1) {
      scf.for %k = %c0 to %c1024 step %c1 {
        %p = memref.load %a[%i, %k] : memref<4096x1024xf16>
        %q = memref.load %x[%k] : memref<1024xf16>
        %r = memref.load %y[%i] : memref<4096xf32>
        %pw = arith.extf %p : f16 to f32
        %qw = arith.extf %q : f16 to f32
        %m = arith.mulf %pw, %qw : f32
        %s = arith.addf %r, %m : f32
        memref.store %s, %y[%i] : memref<4096xf32>
      }
      scf.reduce
    }
    return
  }
}
