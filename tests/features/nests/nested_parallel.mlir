// A residue: an outer loop over blocks of two, with a parallel range inside.
module {
  func.func @nest(%x: memref<10x64xf32>, %y: memref<10x64xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c10 = arith.constant 10 : index
    %c64 = arith.constant 64 : index
    scf.for %i = %c0 to %c10 step %c2 {
      scf.parallel (%j) = (%c0) to (%c64) step (%c1) {
        %v = memref.load %x[%i, %j] : memref<10x64xf32>
        %r = math.rsqrt %v : f32
        memref.store %r, %y[%i, %j] : memref<10x64xf32>
        scf.reduce
      }
    }
    return
  }
}
