// The same product with all sizes known only at run time.
module {
  func.func @nest(%a: memref<?x?xf32>, %b: memref<?x?xf32>, %c: memref<?x?xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %rows = memref.dim %c, %c0 : memref<?x?xf32>
    %columns = memref.dim %c, %c1 : memref<?x?xf32>
    %depth = memref.dim %a, %c1 : memref<?x?xf32>
    scf.parallel (%i, %j) = (%c0, %c0) to (%rows, %columns) step (%c1, %c1) {
      memref.store %zero, %c[%i, %j] : memref<?x?xf32>
      scf.for %k = %c0 to %depth step %c1 {
        %x = memref.load %a[%i, %k] : memref<?x?xf32>
        %y = memref.load %b[%k, %j] : memref<?x?xf32>
        %z = memref.load %c[%i, %j] : memref<?x?xf32>
        %m = arith.mulf %x, %y : f32
        %s = arith.addf %z, %m : f32
        memref.store %s, %c[%i, %j] : memref<?x?xf32>
      }
      scf.reduce
    }
    return
  }
}
